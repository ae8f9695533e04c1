package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// onTerminalTop starts top on a terminal.
func (r *redis) onTerminalTop(t *testing.T, env ...string) *terminal {
	t.Helper()
	cmd := r.command("top", "--interval", "1s")
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), env...)
	return onTerminal(t, cmd)
}

// What a user does with it, on a server that goes away and comes back.
func TestTop(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders\x1b[2J", time.Hour)
	run := start(t, r.command("run", "stock", "--", "sleep", "1000"))
	eventually(t, "the lock is held", func() bool { return r.Exists("stock") })
	term := r.onTerminalTop(t)
	for _, text := range []string{"\x1b[?1049h", "2 listed", `orders\x1b[2J`, "redisson", "sleep@", "sort: waiters"} {
		term.says(text)
	}
	r.hold("third", time.Hour)
	term.says("third")
	r.Close()
	term.says("trying again: ")
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	r.hold("fourth", time.Hour)
	term.says("fourth")
	term.types("j\r") // down to stock, and that by itself
	for _, text := range []string{"renewed while it lives", "waiters  ", "esc back"} {
		term.says(text)
	}
	term.types("r")
	term.says("Take the lock away?")
	term.types("y")
	term.says("stock is released")
	run.wait()
	term.types("q")
	term.ends(0)
	term.says("\x1b[?1049l") // may be read only after the end of the process
	text := term.output()
	if i := strings.LastIndex(text, "\x1b[?1049"); !strings.HasPrefix(text[i:], "\x1b[?1049l") || !echoes(t, term.master) || strings.Contains(text, "orders\x1b") {
		t.Errorf("the terminal is left as %q", text[max(0, len(text)-200):])
	}
}

func TestTopWithoutColor(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders", time.Hour)
	term := r.onTerminalTop(t, "NO_COLOR=1")
	term.says("1 listed")
	term.types(ctrlC)
	term.ends(0)
	if regexp.MustCompile(`\x1b\[[0-9;:]*m`).MatchString(term.output()) {
		t.Errorf("%q", term.output())
	}
}

func TestTopNeedsATerminalAndAServer(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if res := r.run(t, "top"); res.code != exitUsage || !strings.Contains(res.err, "ls --watch") {
		t.Errorf("%+v", res)
	}
	r.Close()
	term := r.onTerminalTop(t)
	term.ends(exitUnavailable)
	term.says("cannot connect")
}
