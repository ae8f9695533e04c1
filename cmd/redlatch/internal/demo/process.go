package demo

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// A process is one worker process, seen from its parent.
type process struct {
	id, pid int
	proxy   *faultnet.Proxy
	stdin   io.WriteCloser
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended and all it said was read
	stderr  *opening
	// expected is set before this process ends the worker.
	expected atomic.Bool
}

var errNoReason = errors.New("without a reason")

// startProcess starts worker id. Its events go to the board.
func (d *demo) startProcess(id int) (*process, error) {
	p := &process{id: id, done: make(chan struct{}), stderr: &opening{}}
	p.proxy = faultnet.New(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", d.server.Addr())
	})
	stdout, err := d.prepare(p)
	if err == nil {
		started := make(chan error)
		go d.follow(p, stdout, started)
		err = <-started
	}
	if err != nil {
		p.proxy.Close()
		return nil, err
	}
	return p, nil
}

// prepare makes the command of a worker, and returns what that will say.
func (d *demo) prepare(p *process) (stdout io.Reader, err error) {
	address, err := p.proxy.Listen()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(exe, WorkerCommand, "--id", strconv.Itoa(p.id), "--records", d.records, "--watchdog", d.Watchdog.String())
	// The embedded server cannot subscribe and answer on one RESP3 connection.
	p.cmd.Env = append(os.Environ(), "REDLATCH_URL=redis://"+address+"?protocol=2")
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = dieWithParent()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p.cmd.StdoutPipe()
}

// follow runs a worker, and returns when it has ended. It tells whether it has
// started.
func (d *demo) follow(p *process, stdout io.Reader, started chan<- error) {
	// The kernel ends a child with the thread that started it, so this one
	// must live as long (see dieWithParent).
	runtime.LockOSThread()
	err := p.cmd.Start()
	if err != nil {
		started <- err
		return
	}
	p.pid = p.cmd.Process.Pid
	d.board.update(p.id, func(r *row) {
		*r = row{id: p.id, pid: p.pid, state: starting, since: time.Now(), acquired: r.acquired}
	})
	started <- nil
	defer close(p.done)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil { // half a line: it was killed
			d.board.event(p.id, p.pid, e)
		}
	}
	err = p.cmd.Wait()
	if !p.expected.Load() {
		d.fail(fmt.Errorf("worker %d ended by itself: %w: %s", p.id, cmp.Or(err, errNoReason), p.stderr))
	}
}

// say sends the worker a command. A worker that is gone hears nothing.
func (p *process) say(command string) { _, _ = io.WriteString(p.stdin, command+"\n") }

// kill ends the process without a chance to clean up, and waits for its end.
func (p *process) kill() {
	p.expected.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// dismiss asks the worker to finish its section and end.
func (p *process) dismiss() {
	p.expected.Store(true)
	_ = p.stdin.Close()
}

// ended waits for the worker's end, for as long as ctx lasts.
func (p *process) ended(ctx context.Context) bool {
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// An opening keeps the first of what a worker writes to standard error: a crash of
// the worker explains itself there.
type opening struct {
	mu   sync.Mutex
	text []byte
}

func (t *opening) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4096 - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *opening) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
