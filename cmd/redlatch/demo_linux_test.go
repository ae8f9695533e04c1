package main

import (
	"os"
	"path/filepath"
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
	dir := t.TempDir()
	cmd := (&redis{}).command("demo", "--watchdog", "1m")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	j := start(t, cmd)
	records(t, dir, j)
	workers := children(t, cmd.Process.Pid)
	if len(workers) != 4 {
		t.Fatalf("workers: %v", workers)
	}
	j.signal(unix.SIGKILL)
	j.wait()
	for _, pid := range workers {
		noProcess(t, pid)
	}
}

// The live view, and its quit key.
func TestDemoOnTerminal(t *testing.T) {
	t.Parallel()
	cmd := (&redis{}).command("demo", "--watchdog", "1m")
	cmd.Env = append(cmd.Env, "TERM=xterm", "TMPDIR="+t.TempDir())
	term := onTerminal(t, cmd)
	term.says("\x1b[?1049h")
	term.says("q quits")
	term.says("held by worker")
	term.says("HOLDS")
	term.says("waiting")
	term.says("0 violations in the workers' own records")
	term.types("xq")
	if code := term.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	term.says("0 violations, 0 losses\r\n")
	_, after, ok := strings.Cut(term.output(), "\x1b[?1049l")
	if !ok || strings.Contains(after, "\x1b") || !strings.Contains(after, "worker processes; one lock") {
		t.Errorf("after the view: %q", after)
	}
	if !echoes(t, term.master) {
		t.Error("the terminal does not echo any more")
	}
}

func TestDemoOnTerminalWithoutColor(t *testing.T) {
	t.Parallel()
	cmd := (&redis{}).command("demo", "--watchdog", "1m")
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1", "TMPDIR="+t.TempDir())
	term := onTerminal(t, cmd)
	term.says("HOLDS")
	term.types("q")
	term.wait()
	if strings.Contains(term.output(), "\x1b[3") || strings.Contains(term.output(), "\x1b[1m") {
		t.Error("colours in spite of NO_COLOR")
	}
}
