package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// children returns the processes that pid has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for f := range strings.FieldsSeq(string(text)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}

// The workers do not survive the demo, however it ends.
func TestDemoWorkersDieWithIt(t *testing.T) {
	t.Parallel()
	j, _, _ := startDemo(t)
	var workers []int // the first one may be at work before the others have been started
	eventually(t, "four workers", func() bool {
		workers = children(t, j.cmd.Process.Pid)
		return len(workers) == 4
	}, j.output)
	j.signal(unix.SIGKILL)
	j.wait()
	for _, pid := range workers {
		noProcess(t, pid)
	}
}

// onTerminalDemo starts a demo with a live view, and waits until it shows what
// goes on.
func onTerminalDemo(t *testing.T, dir string, env ...string) *terminal {
	t.Helper()
	cmd := (&redis{}).command("demo", "--watchdog", "1m")
	cmd.Env = append(append(cmd.Env, "TERM=xterm", "TMPDIR="+dir), env...)
	term := onTerminal(t, cmd)
	term.says("\x1b[?1049h") // a screen of its own
	for _, text := range []string{"q quits", "held by worker", "HOLDS", "waiting", "0 violations in the workers' own records"} {
		term.says(text)
	}
	return term
}

// wantRestored expects the terminal as it was before the view, with the story on
// it.
func (term *terminal) wantRestored() {
	t := term.t
	t.Helper()
	term.says("0 violations, 0 losses\r\n") // the screen may be read after the program's end
	text := term.output()
	modes := map[string]string{}
	for _, m := range regexp.MustCompile(`\x1b\[\?(\d+)([hl])`).FindAllStringSubmatch(text, -1) {
		modes[m[1]] = m[2]
	}
	for mode, set := range modes {
		if visible := mode == "25"; visible != (set == "h") {
			t.Errorf("mode %s is left at %q", mode, set)
		}
	}
	if n := strings.Count(text, "\x1b[>1u") - strings.Count(text, "\x1b[<1u"); n != 0 {
		t.Errorf("%d keyboard modes are left", n)
	}
	if i := strings.LastIndex(text, "\x1b[>4"); !strings.HasPrefix(text[i:], "\x1b[>4m") {
		t.Errorf("the keyboard is left with %q", text[i:])
	}
	view, story, _ := strings.Cut(text, "\x1b[?1049l")
	if at := strings.Index(story, "worker processes; one lock"); at < strings.LastIndex(story, "\x1b") {
		t.Errorf("after the view %q: %q", view, story)
	}
	if !echoes(t, term.master) {
		t.Error("the terminal does not echo any more")
	}
}

// The live view, and what ends it.
func TestDemoOnTerminal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys   string
		signal unix.Signal
		code   int
	}{
		"q":         {keys: "xq"},
		"Q":         {keys: "Q"},
		"Ctrl-C":    {keys: ctrlC},
		"interrupt": {signal: unix.SIGINT, code: 130},
		"terminate": {signal: unix.SIGTERM, code: 143},
		"hang up":   {signal: unix.SIGHUP, code: 129},
		"quit":      {signal: unix.SIGQUIT, code: 131},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			term := onTerminalDemo(t, dir)
			if tc.keys != "" {
				term.types(tc.keys)
			} else {
				term.signal(tc.signal)
			}
			if code := term.wait(); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			term.wantRestored()
			if rest, _ := os.ReadDir(dir); len(rest) > 0 {
				t.Errorf("left behind: %v", rest)
			}
		})
	}
}

func ignoresHangUp(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	ignored, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return ignored&(1<<(unix.SIGHUP-1)) != 0
}

// A terminal that goes away ends the demo, and all that belongs to it.
func TestDemoWhoseTerminalIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := onTerminalDemo(t, dir)
	workers := children(t, term.cmd.Process.Pid)
	for _, pid := range workers {
		// One that has only been started would end of the signal that is for its parent.
		eventually(t, "worker ignores SIGHUP", func() bool { return ignoresHangUp(t, pid) }, term.output)
	}
	if err := term.master.Close(); err != nil {
		t.Fatal(err)
	}
	term.ends(129)
	for _, pid := range workers {
		noProcess(t, pid)
	}
	if rest, _ := os.ReadDir(dir); len(rest) > 0 || len(workers) != 4 {
		t.Errorf("left behind: %v; workers: %v", rest, workers)
	}
}

// NO_COLOR is any value; a view without colours has no bold either.
func TestDemoOnTerminalWithoutColor(t *testing.T) {
	t.Parallel()
	style := regexp.MustCompile(`\x1b\[[0-9;:]*m`)
	for _, env := range []string{"NO_COLOR=", "NO_COLOR=1", "NO_COLOR=yes"} {
		term := onTerminalDemo(t, t.TempDir(), env)
		term.types("q")
		term.wait()
		if colorful := style.MatchString(term.output()); colorful != (env == "NO_COLOR=") {
			t.Errorf("%s: colours: %t", env, colorful)
		}
	}
}
