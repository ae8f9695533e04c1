package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf16"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/overview"
)

// The output policy, in one place:
//
//   - results go to standard output, everything else to standard error;
//   - every line on standard error starts with "redlatch: ", so that it can be
//     told from the lines of a command that runs under a lock;
//   - what comes from the server is shown without control characters, so that
//     a name cannot move the cursor or change colours;
//   - credentials are masked in all of standard error, whoever wrote the text, but
//     for short ones in our own words;
//   - colour only on a terminal, and never with NO_COLOR set.
type ui struct {
	out, err io.Writer
	color    bool // standard error is a terminal that may be coloured
	quiet    bool // it has only why the program ends
	secrets  []string
}

func newUI(out, err *os.File) *ui {
	return &ui{out: out, err: err, color: colorful(err)}
}

// colorful reports whether f is a terminal that may be coloured.
func colorful(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(f)
}

// paints reports whether f is a terminal on which one picture can take the place
// of another: one that understands escape sequences. Windows consoles often do
// not.
func paints(f *os.File) bool { return runtime.GOOS != "windows" && isTerminal(f) }

func isTerminal(f *os.File) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// shortestHidden is how many bytes a secret has that hide hides. A shorter one is
// a part of many words, which would be unreadable, and would tell it. What servers
// and drivers say has been masked by then, whatever the length.
const shortestHidden = 4

// unread is the failure to take what only a reader of out can give back, if out
// was closed when this program was started. The Go runtime has opened the null
// device in its place, for reading as well, which a shell's >/dev/null does not.
func unread(out *os.File) error {
	is, err := out.Stat()
	null, _ := os.Stat(os.DevNull) // without one nothing is the same
	if err != nil || !os.SameFile(is, null) {
		return written(err)
	}
	if _, err := out.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil
	}
	return written(errors.New("standard output is closed, or is the null device opened for reading as well, and nobody would know what to release; to discard the owner use >/dev/null"))
}

// hide masks the secrets in everything that goes to standard error from now on.
func (u *ui) hide(secrets ...string) {
	for _, s := range secrets {
		if len(s) >= shortestHidden {
			u.secrets = append(u.secrets, s)
		}
	}
}

// note tells the user something, unless he wants to hear nothing.
func (u *ui) note(format string, args ...any) {
	if u.quiet {
		return
	}
	u.line("redlatch: ", sayOnce(fmt.Sprintf(format, args...)))
}

// fail shows why the program ends, and what to do about it.
func (u *ui) fail(f *failure) {
	if f.err == nil || u.quiet && f.code == 0 { // run -E 0 has not failed
		return
	}
	prefix := "redlatch:"
	if u.color {
		prefix = lipgloss.NewStyle().Foreground(lipgloss.Red).Render(prefix)
	}
	u.line(prefix+" ", sayOnce(f.err.Error()))
	if f.hint != "" {
		u.line("redlatch: ", f.hint)
	}
}

// sayOnce is a text in one line, that of several errors too, which does not say
// who speaks.
func sayOnce(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "redlatch: ")
	}
	return strings.Join(lines, "; ")
}

func (u *ui) line(prefix, text string) {
	// One Write: lines of ours and of the command must not mix.
	_, _ = io.WriteString(u.err, prefix+u.safe(text)+"\n")
}

// safe is a text without credentials and control characters.
func (u *ui) safe(text string) string { return overview.Printable(u.mask(text)) }

// mask is a text without credentials.
func (u *ui) mask(text string) string { return maskUserinfo(connect.Mask(text, u.secrets...)) }

// maskUserinfo hides what stands between "://" and the last "@" of the same
// word: a URL that was given where none belongs, and that nobody has parsed.
func maskUserinfo(text string) string {
	words := strings.SplitAfter(text, " ")
	for i, w := range words {
		scheme := strings.Index(w, "://")
		at := strings.LastIndex(w, "@")
		if scheme >= 0 && at > scheme {
			words[i] = w[:scheme+3] + "***" + w[at:]
		}
	}
	return strings.Join(words, "")
}

// json writes v as one indented document. What could move a terminal's cursor is
// escaped, as JSON allows in its strings.
func (u *ui) json(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range b.String() {
		if unicode.IsPrint(r) || r == '\n' {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	_, err := io.WriteString(u.out, safe.String())
	return err
}

// table writes rows in columns, with two spaces between them.
func (u *ui) table(rows [][]string) error {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			cell = overview.Printable(cell)
			row[i] = cell
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-ansi.StringWidth(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(u.out, b.String())
	return err
}
