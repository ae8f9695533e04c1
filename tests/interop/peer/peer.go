// Package peer runs the real Redisson: a Java process that obeys one JSON
// request per line. The Java side is in src, and built by ../build.sh.
//
// The process ends with [Peer.Close] or [Peer.Kill], when this process ends in
// any way (on Linux), and when its input ends.
package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// The Redisson versions that ../build.sh builds.
const (
	Newest = "4.7.0"
	Oldest = "3.18.1"
)

// grace is how long an asked process may take to end before it is killed.
const grace = 5 * time.Second

// ErrEnded is the error of calls that the process did not answer before it
// ended.
var ErrEnded = errors.New("the Java peer has ended")

// An Error is an exception that the op threw in Java.
type Error struct {
	Name string // the simple class name, such as "IllegalMonitorStateException"
	Msg  string
}

func (e *Error) Error() string { return e.Name + ": " + e.Msg }

// A Peer is one Java process. Safe for concurrent use.
type Peer struct {
	// Version is the version of Redisson that it runs.
	Version string

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone and its output is read

	mu      sync.Mutex
	in      io.WriteCloser
	last    int64
	pending map[int64]chan answer
	open    int // how many clients have been opened, for their names
}

// answer is what the process says to a request. The fields after Msg belong to
// some ops only.
type answer struct {
	ID  int64  `json:"id"`
	OK  bool   `json:"ok"`
	Err string `json:"err"`
	Msg string `json:"msg"`

	UUID    string            `json:"uuid"`
	Version string            `json:"version"`
	Owner   string            `json:"owner"`
	Count   int               `json:"count"`
	TTL     int64             `json:"ttl"`
	Token   int64             `json:"token"`
	Names   map[string]string `json:"names"`
	LoopResult
	syncAnswer
}

// request is one line to the process; see Ops.java, Sync.java and Loop.java.
type request struct {
	ID     int64  `json:"id"`
	Op     string `json:"op"`
	Client string `json:"client,omitempty"`
	Thread string `json:"thread,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`

	URL        string   `json:"url,omitempty"`
	Sentinels  []string `json:"sentinels,omitempty"`
	Master     string   `json:"master,omitempty"`
	Cluster    []string `json:"cluster,omitempty"`
	Sharded    string   `json:"sharded,omitempty"`
	WatchdogMs int64    `json:"watchdogMs,omitempty"`
	TimeoutMs  int64    `json:"timeoutMs,omitempty"`
	ClientName string   `json:"clientName,omitempty"`
	Idle       int      `json:"idle,omitempty"`

	WaitMs  int64 `json:"waitMs,omitempty"`
	LeaseMs int64 `json:"leaseMs,omitempty"`

	Members []member `json:"members,omitempty"`
	Values  []string `json:"values,omitempty"`

	syncRequest

	Threads       int    `json:"threads,omitempty"`
	DurationMs    int64  `json:"durationMs,omitempty"`
	MaxOps        int64  `json:"maxOps,omitempty"`
	SectionUs     int64  `json:"sectionUs,omitempty"`
	PauseUs       int64  `json:"pauseUs,omitempty"`
	PerThreadKeys bool   `json:"perThreadKeys,omitempty"`
	Counter       string `json:"counter,omitempty"`
	Control       string `json:"control,omitempty"`
}

// Start runs the peer that was built with this version of Redisson; it has no
// client yet. What Redisson logs goes to log. It fails if that peer has not
// been built.
func Start(version string, log io.Writer) (*Peer, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return nil, errors.New("where the peer was built is unknown")
	}
	jar := filepath.Join(filepath.Dir(here), "target", version, "peer.jar")
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("no peer with Redisson %s (run tests/interop/build.sh): %w", version, err)
	}
	// Its performance data would stay in the system's temporary directory when
	// it is killed.
	cmd := exec.Command("java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms64m", "-Xmx512m", "-jar", jar)
	cmd.Stderr = log
	cmd.SysProcAttr = DieWithUs()
	cmd.WaitDelay = grace
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Peer{
		Version: version,
		cmd:     cmd,
		ended:   make(chan struct{}),
		in:      in,
		pending: make(map[int64]chan answer),
	}
	started := make(chan error, 1)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("the Java peer did not start: %w", err)
	}
	return p, nil
}

// run starts the process and stays until it is gone, on a thread of its own:
// the kernel ends the process when the thread that started it ends.
func (p *Peer) run(out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(out)
	}()
	<-read           // Wait would close the pipe under the reader
	_ = p.cmd.Wait() // how it ended is not ours to judge: tests kill it
}

// read hands each answer to its caller, until the process ends.
func (p *Peer) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			fmt.Fprintf(os.Stderr, "peer: not an answer: %q: %v\n", line, err)
			continue
		}
		p.mu.Lock()
		to := p.pending[a.ID]
		delete(p.pending, a.ID)
		p.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
}

// call sends a request and waits for the answer, at most until ctx ends; the
// process then still carries the request out.
func (p *Peer) call(ctx context.Context, r request) (answer, error) {
	to := make(chan answer, 1)
	if err := p.send(r, to); err != nil {
		return answer{}, err
	}
	select {
	case a := <-to:
		return a, failure(a)
	case <-ctx.Done():
		return answer{}, fmt.Errorf("peer: %s of %q is not answered: %w", r.Op, r.Name, context.Cause(ctx))
	case <-p.ended:
	}
	select {
	case a := <-to: // its last words
		return a, failure(a)
	default:
		return answer{}, ErrEnded
	}
}

func (p *Peer) send(r request, to chan answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	r.ID = p.last
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.pending[r.ID] = to
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		delete(p.pending, r.ID)
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

func failure(a answer) error {
	if a.Err != "" {
		return &Error{Name: a.Err, Msg: a.Msg}
	}
	return nil
}

// Kill ends the process as kill -9 does: it releases nothing and closes
// nothing. It returns when the process is gone.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Pause stops the process (SIGSTOP), as a long collection of garbage or a
// suspended machine would.
func (p *Peer) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Peer) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Close asks the process to end and kills it if it does not. Locks are not
// released. It may be called more than once and after Kill.
func (p *Peer) Close() {
	p.mu.Lock()
	p.in.Close() // the end of its input is its end
	p.mu.Unlock()
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
	}
}
