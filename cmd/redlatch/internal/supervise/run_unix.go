//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupPoll is how often the end of a group is looked for when the command has
// ended. To wait for the group's processes would be to wait for ever if the last
// one leaves it, as a daemon does: nobody tells the waiter.
const groupPoll = 10 * time.Millisecond

// lingerNotice is how long after the command's end its group may go on before the
// user is told what Run is waiting for.
const lingerNotice = 2 * time.Second

// Run runs the command and returns when its process group has ended. An error
// means that the command was not started.
func Run(c Command) (Result, error) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGCHLD) // no longer ignored
	defer leaveOrphans()
	g, err := startGuard()
	if err != nil {
		return Result{}, fmt.Errorf("starting the guard process: %w", err)
	}
	defer g.dismiss()

	r := &runner{Command: c, term: openTerminal(), changes: make(chan change, 1)}
	defer r.term.close()
	notify(c.Signals, running)
	defer signal.Stop(c.Signals)
	if err := r.start(g); err != nil {
		return Result{}, err
	}
	return r.loop(), nil
}

// A change is news of the command or its group.
type change struct {
	stopped syscall.Signal // the command was stopped by it
	exited  bool           // the command has ended, with status
	status  unix.WaitStatus
	ended   bool // no process of the group is left
}

// A runner is one command under supervision. Its fields belong to the
// goroutine that called Run; watch only sends changes.
type runner struct {
	Command
	term    *terminal // nil without a controlling terminal
	pgid    int       // also the command's pid
	changes chan change

	terms  int  // TERM signals received
	ctrlC  bool // INT came while our group had the terminal
	tstp   bool // TSTP was forwarded
	ending bool // TERM or KILL was sent for Stop
	wanted bool // the group had, or asked for, the terminal when it was stopped
	kill   *time.Timer
}

// start starts the command, and the goroutine that watches it.
func (r *runner) start(g *guard) error {
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread ends that started the
		// process, so this one stays for as long as the group lives.
		runtime.LockOSThread()
		p, err := os.StartProcess(r.Path, r.Args, &os.ProcAttr{
			Env:   r.Env,
			Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			Sys:   processAttributes(),
		})
		if err != nil {
			started <- err
			return
		}
		g.tell(strconv.Itoa(p.Pid)) // before anything else: until here only the kernel protects us
		r.pgid = p.Pid
		// Waited for below, by number: os.Process cannot tell of stops.
		_ = p.Release()
		started <- nil
		r.watch()
	}()
	return <-started
}

// watch reports what becomes of the command, then waits for the whole group.
func (r *runner) watch() {
	for {
		var ws unix.WaitStatus
		// Orphans of the command become our children where the system can do that (see
		// processAttributes), also those that have left the group. Those that have ended
		// go now, or they would fill the table of processes.
		pid, err := unix.Wait4(-1, &ws, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && pid != r.pgid:
			continue
		case err != nil:
			// Somebody else reaped our child; nobody does. Its status is lost.
			r.changes <- change{exited: true, status: unix.WaitStatus(1 << 8)}
		case ws.Stopped():
			r.changes <- change{stopped: ws.StopSignal()}
			continue
		default:
			r.changes <- change{exited: true, status: ws}
		}
		break
	}
	for !groupEnded(r.pgid) {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid == 0 {
			time.Sleep(groupPoll)
		}
	}
	r.changes <- change{ended: true}
}

// leaveOrphans has the kernel take note of the orphans that end after their
// command, as it does for who ignores CHLD.
func leaveOrphans() {
	signal.Ignore(unix.SIGCHLD)
	for pid := 1; pid > 0; { // those that have ended before
		pid, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
	}
}

func groupEnded(pgid int) bool {
	err := unix.Kill(-pgid, 0)
	// macOS says EPERM for a group of which only zombies are left.
	return errors.Is(err, unix.ESRCH) || runtime.GOOS == "darwin" && errors.Is(err, unix.EPERM)
}

// loop supervises until the group has ended.
func (r *runner) loop() Result {
	var res Result
	var linger <-chan time.Time
	stop := r.Stop
	r.kill = time.NewTimer(time.Hour)
	r.kill.Stop()
	for {
		select {
		case sig := <-r.Signals:
			r.forward(sig)
		case <-stop:
			stop = nil
			r.end()
		case <-r.kill.C:
			r.signal(unix.SIGKILL)
		case <-linger:
			if r.Notice != nil {
				r.Notice(r.Args[0] + " has ended, but processes that it started are running; the lock is held until they end")
			}
		case ch := <-r.changes:
			switch {
			case ch.stopped != 0:
				r.stopped(ch.stopped)
			case ch.exited:
				res = result(ch.status)
				res.Interrupted = r.ctrlC && res.Code == 128+int(unix.SIGINT)
				linger = time.After(lingerNotice)
			case ch.ended:
				r.term.reclaim(r.ending || r.terms > 1)
				res.Stopped = r.ending
				return res
			}
		}
	}
}

func result(ws unix.WaitStatus) Result {
	if ws.Signaled() {
		return Result{Code: 128 + int(ws.Signal())}
	}
	return Result{Code: ws.ExitStatus()}
}

// signal sends sig to the group. It fails only when the group has ended, which
// watch reports.
func (r *runner) signal(sig syscall.Signal) { _ = unix.Kill(-r.pgid, sig) }

// forward passes on what was sent to this process.
func (r *runner) forward(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch s {
	case unix.SIGINT:
		r.ctrlC = r.term.ours()
		r.signal(s)
	case unix.SIGTERM:
		if r.terms++; r.terms > 1 {
			r.signal(unix.SIGKILL)
			return
		}
		r.signal(s)
		r.signal(unix.SIGCONT) // a stopped command ends, too
	case unix.SIGCONT:
		r.wake()
	case unix.SIGTSTP:
		r.tstp = true
		r.signal(s)
	default:
		r.signal(s)
	}
}

// end ends the group: TERM, and KILL after a while.
func (r *runner) end() {
	if r.ending {
		return
	}
	r.ending = true
	if r.KillAfter <= 0 {
		r.signal(unix.SIGKILL)
		return
	}
	r.kill.Reset(r.KillAfter)
	r.signal(unix.SIGTERM)
	r.signal(unix.SIGCONT) // a stopped process takes no TERM
}

// Raise ends this process by SIGINT if that is how the command ended: a shell
// that runs a script goes on after Ctrl-C if the program it waited for exits,
// even with 130, and stops only if the signal killed it. Otherwise it returns.
func (res Result) Raise() {
	if !res.Interrupted {
		return
	}
	signal.Reset(unix.SIGINT)
	if unix.Kill(os.Getpid(), unix.SIGINT) == nil {
		time.Sleep(100 * time.Millisecond) // another thread may be taking it
	}
}
