package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/heldport"
)

// A terminal is a pseudo-terminal with a program on it; its job collects what
// the screen shows.
type terminal struct {
	*job
	master *os.File
}

// onTerminal starts cmd as the leader of a session whose terminal is a new
// pseudo-terminal of 40 lines.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	term := &terminal{job: &job{t: t, cmd: cmd, done: make(chan struct{})}, master: master}
	term.watch()
	// It ends when the last process has let go of the terminal.
	go func() { _, _ = io.Copy(term, master) }()
	return term
}

// types sends keys.
func (term *terminal) types(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

const ctrlC, ctrlZ = "\x03", "\x1a"

// A command in a process group of its own gets the terminal when it reads.
func TestTerminalReading(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.command("run", "x", "--", "sh", "-c", "echo ready; read a; echo \"<$a>\"; read b; echo \"<$b>\"; exit 5"))
	term.says("ready")
	term.types("one\n")
	term.says("<one>")
	term.types("two\n")
	term.says("<two>")
	term.ends(5)
}

// Changing the terminal's modes is also a reason to get it, and redlatch's
// shell has it again afterwards.
func TestTerminalModesAndAfter(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.shell("-c", `"$R" run x -c 'stty -echo; read a; stty echo; echo "<$a>"'; read b; echo "after: $b"`))
	eventually(t, "no echo", func() bool { return !echoes(t, term.master) }, term.output)
	term.types("secret\n")
	term.says("<secret>")
	term.types("next\n")
	term.says("after: next")
	term.wait()
	if strings.Count(term.output(), "secret") != 1 {
		t.Errorf("echoed:\n%s", term.output())
	}
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	tio, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return tio.Lflag&unix.ECHO != 0
}

// Ctrl-C ends the command, the wait of the shell, and the script around it.
func TestTerminalCtrlC(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for name, shell := range map[string]string{"sh": "/bin/sh", "bash": "/bin/bash"} {
		t.Run(name, func(t *testing.T) {
			cmd := r.shell("-c", `for i in 1 2; do "$R" run x -c 'echo ready; while :; do sleep 0.02; done'; echo "then $?"; done`)
			cmd.Path = shell
			term := onTerminal(t, cmd)
			term.says("ready")
			term.types(ctrlC)
			if code := term.wait(); code != -1 && code != 130 {
				t.Errorf("exit %d", code)
			}
			if strings.Contains(term.output(), "then") {
				t.Errorf("the script went on:\n%s", term.output())
			}
			r.isFree(t, "x")
		})
	}
}

// Ctrl-C for a command that has the terminal, and handles it.
func TestTerminalCtrlCHandled(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.command("run", "x", "-c", "trap 'echo handled; exit 9' INT; read a; echo got; read b"))
	term.types("one\n")
	term.says("got")
	term.types(ctrlC)
	term.ends(9)
	term.says("handled")
}

// Ctrl-Z stops the command and redlatch, and fg continues both: whether the
// command had the terminal or not. (The commands here start no processes: a
// shell that is stopped while it starts one by vfork does not look stopped,
// whoever its parent is.)
func TestTerminalCtrlZ(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, tc := range []struct{ name, script, before string }{
		{"in the background of the terminal", "echo ready; while ! [ -e $DONE ]; do :; done; echo over; exit 5", ""},
		{"with the terminal", "read a; echo ready; read b; echo over; exit 5", "one\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			done := t.TempDir() + "/done"
			cmd := r.shell("", "")
			cmd.Env = append(cmd.Env, "DONE="+done)
			term := onTerminal(t, cmd)
			term.says("prompt> ")
			term.types("\"$R\" run x -c '" + tc.script + "'; echo rc=$?\n")
			if tc.before != "" {
				term.types(tc.before)
			}
			// Once in the line that was typed, once said by the command.
			eventually(t, "ready", func() bool { return strings.Count(term.output(), "ready") == 2 }, term.output)
			term.types(ctrlZ)
			term.says("Stopped")
			if !r.Exists("x") {
				t.Error("the lock is gone before its lease")
			}
			term.types("fg\n")
			if tc.before != "" {
				term.types("two\n")
			} else if err := os.WriteFile(done, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			term.types("echo a''gain; exit\n")
			term.says("again") // the shell has its terminal back
			term.says("\r\nover\r\n")
			term.wait()
		})
	}
}

// One redlatch run under another passes the terminal, and Ctrl-Z, on.
func TestTerminalNested(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.shell("", ""))
	term.says("prompt> ")
	term.types("\"$R\" run x -- \"$R\" run y -c 'read a; echo \"<$a>\"; read b; echo \"<$b>\"; exit 5'; echo rc=$?\n")
	eventually(t, "both locks", func() bool { return r.Exists("x") && r.Exists("y") }, term.output)
	term.types("one\n")
	term.says("<one>")
	term.types(ctrlZ)
	term.says("Stopped")
	term.types("fg; echo code=$?\n")
	term.types("two\n")
	term.says("<two>")
	term.says("code=5")
}

// A user at a terminal is told what a wait is for, and of each new holder.
func TestTerminalTellsOfAWait(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	first := start(t, r.command("run", "x", "-c", "trap 'exit 0' USR1; echo ready; while :; do sleep 0.02; done"))
	first.says("ready")
	term := onTerminal(t, r.command("run", "x", "--", "echo", "had it"))
	term.says("redlatch: waiting for x, held by sh@")
	term.says(" for ")
	first.signal(unix.SIGUSR1)
	first.ends(0)
	term.says("had it")
	term.ends(0)
}

// So are users that wait for a synchronizer: how it stands, for whose the permits
// are is mostly not known.
func TestTerminalTellsOfAWaitForPermits(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, args := range [][]string{{"semaphore", "acquire", "pool", "--of", "1", "--lease", "10m"}, {"rate", "take", "api", "--rate", "1/10m"}} {
		if res := r.run(t, args...); res.code != 0 {
			t.Fatalf("%+v", res)
		}
	}
	for text, args := range map[string][]string{
		"waiting for pool: expirable semaphore, 0 of 1 free": {"semaphore", "acquire", "pool", "--lease", "10m"},
		"waiting for api: rate limiter, 0 of 1 free":         {"rate", "take", "api"},
	} {
		term := onTerminal(t, r.command(append(args, "--wait", "20m")...)) // no less: the limiter would not wait in vain
		term.says(text)
		term.types(ctrlC)
		term.wait()
		if text := term.output(); strings.Contains(text, "unknown") {
			t.Errorf("%q", text)
		}
	}
}

// What a number counts is not stored, so to count down may take a permit away. A
// user at a terminal hears of it.
func TestTerminalTellsThatANumberMayBeSomethingElse(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if err := r.Set("jobs", "3"); err != nil {
		t.Fatal(err)
	}
	term := onTerminal(t, r.command("latch", "down", "jobs"))
	term.says("redlatch: jobs is a number, and nothing that is stored says that it is a latch")
	term.ends(0)
	term = onTerminal(t, r.command("run", "jobs", "--permits", "1/2", "-c", "echo had it"))
	term.says("had it")
	term.ends(0)
	if text := term.output(); strings.Contains(text, "is a number") {
		t.Errorf("run --permits gives back what it takes, and says %q", text)
	}
}

// A server that is not there is no lock that somebody has.
func TestTerminalTellsOfNoServer(t *testing.T) {
	t.Parallel()
	addr := heldport.Refusing(t)
	nowhere := &redis{nil, "redis://" + addr}
	for _, args := range [][]string{
		{"run", "x", "--", "true"},
		{"semaphore", "acquire", "x", "--lease", "1m"},
		{"latch", "wait", "x"},
		{"rate", "take", "x"},
	} {
		term := onTerminal(t, nowhere.command(append([]string{"--outage", "2s"}, args...)...))
		term.says("waiting for x: the server does not answer: cannot connect to " + addr)
		term.ends(69)
	}
}

// A user is asked about what is going to be deleted: after he has heard what it
// may be.
func TestTerminalAsksBeforeItDeletes(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if err := r.Set("jobs", "3"); err != nil {
		t.Fatal(err)
	}
	const doubt, question = "jobs is a number, and nothing that is stored says that it is a latch", "Delete the latch jobs, "
	term := onTerminal(t, r.command("latch", "delete", "jobs"))
	term.says(question)
	if text := term.output(); !strings.Contains(text, doubt) || strings.Index(text, doubt) > strings.Index(text, question) {
		t.Errorf("the doubt comes late: %q", text)
	}
	term.types("n\n")
	term.ends(64)
	for _, family := range []string{"rate", "semaphore", "latch"} {
		r.hold("held", time.Hour)
		term = onTerminal(t, r.command(family, "delete", "held"))
		term.ends(65)
		if text := term.output(); strings.Contains(text, "Delete the") || !r.Exists("held") {
			t.Errorf("%s: %q", family, text)
		}
	}
}

// A shell with job control takes the terminal for groups of its own.
func TestTerminalShell(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.shell("", ""))
	term.says("prompt> ")
	term.types("PS1='i''n> ' \"$R\" run x -- sh -i\n")
	term.says("in> ")
	term.types("cat\n")
	term.types("one\n")
	eventually(t, "cat", func() bool { return strings.Count(term.output(), "one\r\n") == 2 }, term.output)
	term.types("\x04")
	term.types("kill -TERM $$; echo still he''re; exit 3\n") // which it ignores
	term.says("still here")
	term.types("echo code=$?\n")
	term.says("code=3")

	term.types("\"$R\" run x --lease 500ms --kill-after 100ms -- sh -i; echo code=$?\n")
	term.says("code=74")
	term.types("echo o''ver; exit\n")
	term.says("over")
	term.wait()
}

// A stopped program renews nothing. When it is continued too late, the command
// must not go on.
func TestTerminalStoppedForLongerThanTheLease(t *testing.T) {
	long(t)
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.shell("", ""))
	term.says("prompt> ")
	term.types("\"$R\" run x --lease 10s -c 'echo ready; exec sleep 60'; echo rc=$?\n")
	eventually(t, "ready", func() bool { return strings.Count(term.output(), "ready") == 2 }, term.output)
	term.types(ctrlZ)
	term.says("Stopped")
	eventually(t, "end of the lease", func() bool { return !r.Exists("x") })
	term.types("fg; echo code=$?\n")
	term.says("code=74")
	term.says("its Lease was over")
}

// Of two commands in a pipeline, the one that wants the terminal gets it.
func TestTerminalPipeline(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.shell("-c", `"$R" run x -- echo piped | { read a; read b </dev/tty; echo "$a and $b"; }`))
	term.types("typed\n")
	term.says("piped and typed")
	term.ends(0)
}

// TSTP to redlatch itself, without a terminal: the command is stopped, the lock
// is kept, and CONT continues.
func TestRunStopAndContinue(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "x", "-c", "echo pid $$; while :; do :; done"))
	j.says("pid ")
	pid := pidOf(t, j.output())
	is := func(state string) func() bool {
		return func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, rest, _ := strings.Cut(string(stat), ") ")
			return err == nil && strings.HasPrefix(rest, state)
		}
	}
	j.signal(unix.SIGTSTP)
	eventually(t, "stopped", is("T"))
	if !r.Exists("x") {
		t.Error("the lock is gone")
	}
	j.signal(unix.SIGCONT)
	eventually(t, "running", is("R"))
	j.signal(unix.SIGTERM)
	j.ends(143)
}

// Colour is for terminals, and not with NO_COLOR.
func TestColor(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	term := onTerminal(t, r.command("run"))
	term.wait()
	term.says("\x1b[31mredlatch:\x1b[m run needs") // the screen may be read after the program's end
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		cmd := r.command("run")
		cmd.Env = append(cmd.Env, env)
		term := onTerminal(t, cmd)
		term.wait()
		term.says("run needs")
		if strings.Contains(term.output(), "\x1b") {
			t.Errorf("%s: %q", env, term.output())
		}
	}
}
