//go:build unix

package supervise

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardArg is the only argument of a guard: a copy of this program that kills
// the command's group when this process has died without a word (KILL, out of
// memory). The kernel alone could only kill the command itself, and only on
// Linux; under "sh -c 'dump | gzip'" the work would go on without the lock.
const guardArg = "__guard"

// done is what a guard is told when the group has ended.
const done = "done"

// A guard is the parent's side: a pipe to the guard's standard input.
type guard struct {
	process *os.Process
	pipe    *os.File
}

// startGuard starts a guard, in a process group of its own: out of reach of
// Ctrl-C and of what the command's group is sent.
func startGuard() (*guard, error) {
	exe := "/proc/self/exe" // right even when the file has been replaced since
	if _, err := os.Stat(exe); err != nil {
		if exe, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p, err := os.StartProcess(exe, []string{"redlatch", guardArg}, &os.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []*os.File{in, null, null},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		out.Close()
		return nil, err
	}
	return &guard{process: p, pipe: out}, nil
}

// tell writes a line to the guard. If it was killed, nobody hears it; we can do
// without.
func (g *guard) tell(line string) { _, _ = g.pipe.WriteString(line + "\n") }

// dismiss ends the guard; the group has ended, or never was.
func (g *guard) dismiss() {
	g.tell(done)
	_ = g.pipe.Close()
	_, _ = g.process.Wait()
}

// Helper is the main function of a guard. It returns false at once if arg does
// not ask for one.
func Helper(arg string) bool {
	if arg != guardArg {
		return false
	}
	watchParent()
	return true
}

// watchParent returns when the parent has dismissed it, or has died and the group
// has been killed.
func watchParent() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return
	}
	pgid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pgid <= 1 {
		return
	}
	if rest, _ := io.ReadAll(in); string(rest) != done+"\n" {
		_ = unix.Kill(-pgid, unix.SIGKILL)
	}
}
