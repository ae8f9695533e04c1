package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

const (
	columns   = 104
	mostLines = 24
)

// A terminal is a pseudo-terminal with a program on it.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	done   chan struct{} // closed when the program has let go of the terminal

	mu     sync.Mutex
	screen *screen
	parser *ansi.Parser
}

func newTerminal(cmd *exec.Cmd, lines int) (*terminal, error) {
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(lines), Cols: columns}) //nolint:gosec // at most mostLines
	if err != nil {
		return nil, err
	}
	t := &terminal{cmd: cmd, master: master, done: make(chan struct{}), screen: newScreen(lines)}
	t.parser = t.screen.parser()
	go func() {
		defer close(t.done)
		written := make([]byte, 4096)
		for {
			n, err := master.Read(written)
			t.mu.Lock()
			for _, b := range written[:n] {
				t.parser.Advance(b)
			}
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return t, nil
}

func (t *terminal) close() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	_ = t.cmd.Wait()
	<-t.done
	_ = t.master.Close()
}

// until waits until the screen has what is wanted, and does not change meanwhile.
func (t *terminal) until(ctx context.Context, wanted func(text string) bool) error {
	last := ""
	for {
		text, err := t.text()
		if err != nil {
			return err
		}
		if text == last && wanted(text) {
			return nil
		}
		last = text
		select {
		case <-ctx.Done():
			return fmt.Errorf("never seen on the terminal, which shows\n%s", text)
		case <-t.done:
			return fmt.Errorf("the program has ended, and the terminal shows\n%s", text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (t *terminal) text() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.text(), t.screen.err
}

// page is the URL of a page that shows what is on the screen.
func (t *terminal) page() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return "data:text/html;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(t.screen.html()))
}

// A screen knows the sequences that redlatch top draws with, and notes any other
// as an error: what it shows is either right or not shown.
type screen struct {
	cells       [mostLines][columns]cell
	lines       int // so many of them
	line, col   int
	top, bottom int // the lines that scroll: from top to before bottom
	style       style
	err         error
	lastPrinted rune
}

type cell struct {
	r     rune
	style style
}

type style struct{ bold, faint, reverse, red, green bool }

func newScreen(lines int) *screen {
	s := &screen{lines: lines, bottom: lines}
	s.erase(0, lines*columns)
	return s
}

// erase makes cells blank, counted from the upper left corner.
func (s *screen) erase(from, to int) {
	for i := max(from, 0); i < min(to, s.lines*columns); i++ {
		s.cells[i/columns][i%columns] = cell{r: ' '}
	}
}

func (s *screen) unknown(format string, args ...any) {
	s.err = errors.Join(s.err, fmt.Errorf("the screen does not know "+format, args...))
}

func (s *screen) parser() *ansi.Parser {
	p := ansi.NewParser()
	p.SetHandler(ansi.Handler{Print: s.print, Execute: s.control, HandleCsi: s.sequence, HandleEsc: s.escape})
	return p
}

func (s *screen) print(r rune) {
	if ansi.StringWidth(string(r)) != 1 {
		s.unknown("the width of %q", r)
	}
	if s.col == columns { // the cursor stays behind the last column until more comes
		s.col = 0
		s.feed()
	}
	s.cells[s.line][s.col] = cell{r, s.style}
	s.lastPrinted = r
	s.col++
}

// feed goes to the next line, and scrolls at the last one that scrolls.
func (s *screen) feed() {
	if s.line == s.bottom-1 {
		s.scroll(1)
	} else {
		s.line = min(s.line+1, s.lines-1)
	}
}

// scroll moves the lines that scroll up, or down if n is negative.
func (s *screen) scroll(n int) {
	old := s.cells
	for line := s.top; line < s.bottom; line++ {
		if from := line + n; from >= s.top && from < s.bottom {
			s.cells[line] = old[from]
		} else {
			s.erase(line*columns, (line+1)*columns)
		}
	}
}

func (s *screen) control(b byte) {
	switch b {
	case '\r':
		s.col = 0
	case '\n':
		s.feed()
	case '\b':
		s.col = max(s.col-1, 0)
	case '\t':
		s.col = min(s.col/8*8+8, columns-1)
	default:
		s.unknown("the control character %q", b)
	}
}

// escape does what a short sequence asks for.
func (s *screen) escape(cmd ansi.Cmd) {
	switch cmd.Final() {
	case 'M':
		if s.line == s.top {
			s.scroll(-1)
		} else {
			s.to(s.line-1, s.col)
		}
	case '=', '>', '\\': // keys, and the end of another sequence
	default:
		s.unknown("the escape sequence %c", cmd.Final())
	}
}

// sequence does what a control sequence asks for.
func (s *screen) sequence(cmd ansi.Cmd, params ansi.Params) {
	n, _, _ := params.Param(0, 1)
	n = max(n, 1)
	at := s.line*columns + min(s.col, columns-1)
	switch final := cmd.Final(); {
	case cmd.Prefix() == '?' && n == 1049: // another page, or back
		s.erase(0, s.lines*columns)
		s.to(0, 0)
	case cmd.Prefix() != 0 || cmd.Intermediate() != 0: // modes and questions, which draw nothing
	case strings.ContainsRune("hlcnt", rune(final)): // and these
	case final == 'm':
		s.dress(params)
	case final == 'H':
		column, _, _ := params.Param(1, 1)
		s.to(n-1, max(column, 1)-1)
	case final == 'A':
		s.to(s.line-n, s.col)
	case final == 'B':
		s.to(s.line+n, s.col)
	case final == 'C':
		s.to(s.line, s.col+n)
	case final == 'D':
		s.to(s.line, s.col-n)
	case final == 'G', final == '`':
		s.to(s.line, n-1)
	case final == 'd':
		s.to(n-1, s.col)
	case final == 'Z':
		s.to(s.line, (s.col-1)/8*8-8*(n-1))
	case final == 'S':
		s.scroll(n)
	case final == 'T':
		s.scroll(-n)
	case final == 'M', final == 'L': // as if only the lines from here on scrolled
		if final == 'L' {
			n = -n
		}
		top := s.top
		s.top = s.line
		s.scroll(n)
		s.top = top
	case final == 'r':
		bottom, _, _ := params.Param(1, s.lines)
		s.top, s.bottom = n-1, bottom
		s.to(0, 0)
	case final == 'P':
		line := s.cells[s.line][:]
		copy(line[min(s.col, columns):], line[min(s.col+n, columns):])
		s.erase((s.line+1)*columns-n, (s.line+1)*columns)
	case final == 'X':
		s.erase(at, min(at+n, (s.line+1)*columns))
	case final == 'b':
		for range n {
			s.print(s.lastPrinted)
		}
	case final == 'J', final == 'K':
		from, to := 0, s.lines*columns
		if final == 'K' {
			from, to = s.line*columns, (s.line+1)*columns
		}
		switch which, _, _ := params.Param(0, 0); which {
		case 0:
			from = at
		case 1:
			to = at + 1
		}
		s.erase(from, to)
	default:
		s.unknown("the sequence %c with %v", final, params)
	}
}

func (s *screen) to(line, col int) {
	s.line, s.col = min(max(line, 0), s.lines-1), min(max(col, 0), columns-1)
}

// dress sets how the next letters look.
func (s *screen) dress(params ansi.Params) {
	if len(params) == 0 {
		s.style = style{}
	}
	params.ForEach(0, func(_, p int, _ bool) {
		switch p {
		case 0:
			s.style = style{}
		case 1:
			s.style.bold = true
		case 2:
			s.style.faint = true
		case 22:
			s.style.bold, s.style.faint = false, false
		case 7, 27:
			s.style.reverse = p == 7
		case 31, 32, 39:
			s.style.red, s.style.green = p == 31, p == 32
		default:
			s.unknown("the style %d", p)
		}
	})
}

func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.cells[:s.lines] {
		for _, c := range line {
			b.WriteRune(c.r)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const head = `<!doctype html><meta charset="utf-8"><style>
body { margin: 0 }
main { background: #1a1e26; color: #d5dae3; border-radius: 10px; padding: 0 22px 18px; overflow: hidden }
header { display: flex; gap: 8px; align-items: center; height: 36px; margin: 0 -6px }
header i { width: 11px; height: 11px; border-radius: 50%; background: #454c5a }
pre { margin: 0; font: 14.6px/1.42 "DejaVu Sans Mono", monospace }
.bold { font-weight: bold; color: #fff }
.faint { color: #8d96a7 }
.red { color: #ff8a80 }
.green { color: #9ece6a }
.reverse { background: #cfd8e8; color: #161a21; padding: 2px 0 }
</style><main><header><i></i><i></i><i></i></header><pre>`

// html is a page that shows the screen.
func (s *screen) html() string {
	var b strings.Builder
	b.WriteString(head)
	for _, line := range s.cells[:s.lines] {
		for from := 0; from < columns; {
			to := from + 1
			for to < columns && line[to].style == line[from].style {
				to++
			}
			var text strings.Builder
			for _, c := range line[from:to] {
				text.WriteRune(c.r)
			}
			fmt.Fprintf(&b, `<span class="%s">%s</span>`, line[from].style.classes(), html.EscapeString(text.String()))
			from = to
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s style) classes() string {
	var all []string
	for class, on := range map[string]bool{"bold": s.bold, "faint": s.faint, "red": s.red, "green": s.green, "reverse": s.reverse} {
		if on {
			all = append(all, class)
		}
	}
	return strings.Join(all, " ")
}
