package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// holderEnv makes the test binary a process that holds a lock.
const holderEnv = "REDLATCH_INTEROP_HOLDER"

// A holderJob is what such a process does.
type holderJob struct {
	Driver, Addr, Kind, Name string
	Watchdog                 time.Duration
	Wait                     time.Duration // for the lock
}

// holderMain acquires the lock, says "held OWNER", then "lost" if that happens,
// and ends with its input.
func holderMain(text string) int {
	var j holderJob
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	c, closeClient, err := openGoClient(j.Driver, single(j.Addr), redlatch.Config{WatchdogTimeout: j.Watchdog})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer closeClient() //nolint:errcheck // the process ends
	owner, held, err := j.acquire(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("held", owner)
	go func() {
		<-held.Done()
		if errors.Is(context.Cause(held), redlatch.ErrLost) {
			fmt.Println("lost")
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// acquire returns the owner, or the permit's id, and the context of the hold.
func (j holderJob) acquire(c *redlatch.Client) (string, context.Context, error) {
	ctx := context.Background()
	if j.Kind == peer.Permits {
		p, err := semaphore.NewExpirable(c, j.Name, 0).TryAcquire(ctx, 1, j.Wait)
		if err != nil {
			return "", nil, err
		}
		return p.ID(), p.Context(), nil
	}
	h, err := goLock(c, j.Kind, j.Name).TryAcquire(ctx, j.Wait)
	if err != nil {
		return "", nil, err
	}
	return h.ID(), h.Context(), nil
}

// A holder is a Go process that holds the story's lock.
type holder struct {
	owner string
	proc  *os.Process
	in    io.Closer // its end is the end of the process
	lines chan string
	ended chan struct{}
}

// goProcessHolds starts a Go process that acquires the lock. It ends with the
// test at the latest.
func (w *world) goProcessHolds() *holder {
	w.t.Helper()
	h := w.goProcess(generous)
	var ok bool
	if h.owner, ok = strings.CutPrefix(w.said(h), "held "); !ok {
		w.t.Fatal("the Go process did not get the lock")
	}
	return h
}

// goProcess starts a Go process that waits for the lock, at most for wait, and
// holds it then.
func (w *world) goProcess(wait time.Duration) *holder {
	w.t.Helper()
	job, err := json.Marshal(holderJob{w.driver, w.server.Addr(), w.kind, w.name, goWatchdog, wait})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+string(job))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = peer.DieWithUs()
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	h := &holder{in: in, lines: make(chan string, 8), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel watches this thread
		defer runtime.UnlockOSThread()
		defer close(h.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_, _ = cmd.Process.Wait() // it is killed
		}
	}()
	if err := <-started; err != nil {
		w.t.Fatal(err)
	}
	h.proc = cmd.Process
	w.t.Cleanup(h.kill)
	go func() {
		defer close(h.lines)
		for said := bufio.NewScanner(out); said.Scan(); {
			h.lines <- said.Text()
		}
	}()
	return h
}

// said returns the next line that the process says, "" when it says no more.
func (w *world) said(h *holder) string {
	w.t.Helper()
	select {
	case line := <-h.lines:
		return line
	case <-w.ctx.Done():
		w.t.Fatal("the Go process says nothing")
		return ""
	}
}

// kill ends the process as kill -9 does.
func (h *holder) kill() {
	_ = h.proc.Kill()
	<-h.ended
	h.in.Close()
}

func (h *holder) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.proc.Signal(s); err != nil {
		t.Fatal(err)
	}
}
