package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// A screen is what a terminal shows to which a program writes. It knows only what
// a list that is painted again and again may use: anything else is wrong.
type screen struct {
	columns, row, column int
	lines                []string // what was printed; all of it in cells from the left
	wrong                string
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// shows returns what stands on a terminal of so many columns when all of text that
// belongs to whole pages was written.
func shows(text string, columns, rows int) *screen {
	s := &screen{columns: columns, lines: make([]string, rows)}
	end := strings.LastIndex(text, "\x1b[J")
	if end < 0 {
		return s
	}
	for text = text[:end+len("\x1b[J")]; text != "" && s.wrong == ""; {
		text = text[s.next(text):]
	}
	return s
}

// next does what the beginning of text says, and returns how long that was.
func (s *screen) next(text string) int {
	if m := sequence.FindStringSubmatch(text); m != nil {
		switch m[1] + m[2] {
		case "H":
			s.row, s.column = 0, 0
		case "K":
			s.cut()
		case "J":
			s.cut()
			clear(s.lines[s.row+1:])
		default:
			if m[2] != "m" { // that is a colour
				s.wrong = fmt.Sprintf("the sequence %q", m[0])
			}
		}
		return len(m[0])
	}
	r := []rune(text[:min(len(text), 4)])[0]
	switch {
	case r == '\r':
		s.column = 0
	case r == '\n' && s.row == len(s.lines)-1:
		s.wrong = "it scrolls"
	case r == '\n':
		s.row++
	case r < ' ' || r >= 0x7f && r < 0xa0:
		s.wrong = fmt.Sprintf("the control character %q", r)
	case s.column+ansi.StringWidth(string(r)) > s.columns:
		s.wrong = fmt.Sprintf("line %d wraps: %q", s.row, s.lines[s.row])
	default:
		s.print(r)
	}
	return len(string(r))
}

// print puts a character where the cursor is, over what stands there.
func (s *screen) print(r rune) {
	line := s.lines[s.row]
	w := ansi.StringWidth(string(r))
	s.lines[s.row] = ansi.Cut(line, 0, s.column) + string(r) + ansi.Cut(line, s.column+w, s.columns)
	s.column += w
}

// cut removes what stands from the cursor on.
func (s *screen) cut() { s.lines[s.row] = ansi.Cut(s.lines[s.row], 0, s.column) }

// A list that is watched stands on the terminal's screen, always the last one,
// whatever the locks are called. It says that the server is away, and is there
// again. Ctrl-C ends it, and that is no failure.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	const columns, rows = 80, 12
	r := newRedis(t)
	cmd := r.command("ls", "--watch", "--interval", "1s")
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=", "COLUMNS=", "LINES=")
	r.hold("one", time.Hour)
	term := onTerminal(t, cmd)
	if err := pty.Setsize(term.master, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	// The first page may have the size of before.
	eventually(t, "first list", func() bool { return strings.HasSuffix(term.output(), "\x1b[J") }, term.output)
	term.forget()
	seen, last := "", ""
	text := func() string {
		if out := term.output(); out != seen || last == "" { // to draw it costs more than all else here
			s := shows(out, columns, rows)
			if s.wrong != "" {
				t.Fatalf("%s in %q", s.wrong, out)
			}
			seen, last = out, strings.Join(s.lines, "\n")
		}
		return last
	}
	until := func(what string, ok func(text string) bool) {
		t.Helper()
		eventually(t, what, func() bool { return ok(text()) }, text)
	}
	has := func(name string) func(string) bool {
		return func(text string) bool { return strings.Contains(text, "\n"+name+" ") }
	}

	until("the head", func(text string) bool { return strings.Contains(text, "  every 1s, until ctrl-C\n") })
	until("the lock that is held", has("one"))
	r.hold("two", time.Hour)
	until("the next lock", func(text string) bool { return has("one")(text) && has("two")(text) })
	r.Del("one")
	until("the lock that was released to be gone", func(text string) bool { return !has("one")(text) && has("two")(text) })

	r.hold("\x1b[2J\x1b]0;title\x07\x9b31m\r\nthree\b\u202e", time.Hour)
	r.hold(strings.Repeat("long", 50), time.Hour)
	r.hold(strings.Repeat("\u6f22\u5b57", 50), time.Hour)
	until("the names", func(text string) bool {
		return has("two")(text) && strings.Contains(text, "three") && strings.Contains(text, "longlong") && strings.Contains(text, "\u6f22\u5b57\u6f22\u5b57") &&
			!strings.Contains(text, "\nthree") && strings.Contains(text, "…") && !strings.Contains(text, "\u202e")
	})
	for i := range 2 * rows {
		r.hold(fmt.Sprint("many:", i), time.Hour)
	}
	until("what does not fit to be counted", func(text string) bool { return strings.Contains(text, "\nand ") && strings.Contains(text, " more") })

	r.Close()
	until("the server to be missed", func(text string) bool {
		return strings.HasPrefix(text, "as of ") && strings.Contains(text, ", trying again: ") && strings.Contains(text, " more")
	})
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	until("the server to be back", func(text string) bool { return strings.Contains(text, "  every 1s, until ctrl-C\n") })
	term.types(ctrlC)
	term.ends(0)
}
