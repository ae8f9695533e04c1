//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A terminal is the controlling terminal. Only one process group may read from
// it or change its modes, the foreground group; the kernel stops the others
// when they try. Since the command has a group of its own, it gets the
// terminal when it has been stopped for wanting it, and not before: somebody
// else in our group may need it (redlatch run x -- cmd | less), and Ctrl-C is
// to reach a script that runs us.
//
// A command that Ctrl-Z has stopped must stop this process too, or the shell
// would wait for us for ever. While we are stopped nothing renews the lock, so
// MayContinue is asked before the command goes on.
//
// A nil *terminal is none: its methods say no and do nothing.
type terminal struct {
	tty   *os.File
	own   int         // our process group
	state *term.State // as it was before the command
	lent  bool        // to the command
}

func openTerminal() *terminal {
	// os.Open* would put the terminal into non-blocking mode, for every
	// process that shares it.
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	t := &terminal{tty: os.NewFile(uintptr(fd), "/dev/tty"), own: unix.Getpgrp()}
	t.state, _ = term.GetState(t.fd())
	return t
}

func (t *terminal) close() {
	if t != nil {
		_ = t.tty.Close()
	}
}

func (t *terminal) fd() int { return int(t.tty.Fd()) }

// has reports whether the group has the terminal.
func (t *terminal) has(pgid int) bool {
	if t == nil {
		return false
	}
	fg, err := unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP)
	return err == nil && fg == pgid
}

// ours reports whether our own group has it.
func (t *terminal) ours() bool { return t != nil && t.has(t.own) }

// give makes pgid the foreground group.
func (t *terminal) give(pgid int) {
	// A background process that does this is stopped by TTOU, unless it
	// ignores it. The command has been started: it does not inherit that.
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, pgid)
}

// reclaim takes the terminal back if it was lent; restore also brings back its
// modes, for a command that had no chance to do so.
func (t *terminal) reclaim(restore bool) {
	if t == nil || !t.lent {
		return
	}
	t.lent = false
	if !t.ours() {
		t.give(t.own)
	}
	if restore && t.state != nil {
		_ = term.Restore(t.fd(), t.state)
	}
}

// stopped is called when the command was stopped by sig.
func (r *runner) stopped(sig syscall.Signal) {
	if r.term == nil || r.ending {
		return
	}
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		r.wanted = true
		if r.term.ours() {
			r.lend()
			return
		}
		// We are in the background as well. Whoever can bring us to the front
		// learns it in the same way (by TTIN: we may be ignoring TTOU, see
		// give). Without anybody the kernel drops the signal, and the command
		// waits for ever, as it would without us.
		_ = unix.Kill(0, unix.SIGTTIN)
		return
	case unix.SIGTSTP:
	default:
		// STOP is somebody's business with the command and not with us, unless
		// it has the terminal, or it is the answer of another redlatch run to
		// our TSTP.
		if !r.term.lent && !r.tstp {
			return
		}
	}
	r.wanted = r.term.lent
	r.term.reclaim(false)
	if sid, err := unix.Getsid(0); err == nil && sid == r.term.own {
		r.wake() // we lead the session: no shell could continue us
		return
	}
	// Stop all of our group, as the kernel would have done, but with STOP: Go
	// does not give TSTP its default action back once it was caught.
	_ = unix.Kill(0, unix.SIGSTOP)
}

// lend gives the terminal to the command and lets it go on.
func (r *runner) lend() {
	r.term.lent = true
	r.term.give(r.pgid)
	r.signal(unix.SIGCONT)
}

// wake continues the command after this process got CONT.
func (r *runner) wake() {
	r.tstp = false
	if r.MayContinue != nil && !r.MayContinue() {
		r.end()
		return
	}
	if r.wanted && r.term.ours() {
		r.wanted = false
		r.lend()
		return
	}
	// In the background it is stopped again if it still wants the terminal,
	// and we with it: that is how a shell shows it.
	r.signal(unix.SIGCONT)
}
