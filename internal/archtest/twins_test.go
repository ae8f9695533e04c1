package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// twinLines is how many lines two places share if they are twins. Lines that say
// nothing do not count: empty ones, comments, imports, brackets.
const twinLines = 10

// twins may be. The names of two files that are in order, with a reason.
var twins = map[string]string{}

// Where the same thing stands twice, one of them is mended, and the other is not.
func TestNothingStandsTwice(t *testing.T) {
	got := map[string]string{}
	where := map[string]place{} // by the text of so many lines
	for _, f := range texts(t) {
		for i := 0; i+twinLines <= len(f.lines); i++ {
			at := place{f, i}
			text := at.text()
			first, ok := where[text]
			switch {
			case !ok:
				where[text] = at
			case first.file != f || first.i+twinLines <= i: // what repeats itself line by line is a table
				if pair := first.file.name + " ~ " + f.name; got[pair] == "" {
					got[pair] = fmt.Sprintf("%s and %s", first, at)
				}
			}
		}
	}
	for pair, places := range got {
		if twins[pair] == "" {
			t.Errorf("%s share %d lines or more: give them one place, or an entry in the table twins", places, twinLines)
		}
	}
	for pair := range twins {
		if got[pair] == "" {
			t.Errorf("the table twins still has %s, which are none any more", pair)
		}
	}
}

// A text is a file of Go or Lua that is not generated, in whatever module.
type text struct {
	name    string
	lines   []string // those that count, without space around them
	numbers []int    // of each, in the file
}

// A place is where so many lines begin.
type place struct {
	file *text
	i    int
}

func (p place) text() string { return strings.Join(p.file.lines[p.i:p.i+twinLines], "\n") }

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file.name, p.file.numbers[p.i]) }

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	imported  = regexp.MustCompile(`(?ms)^import \(\n.*?^\)$`)
	spoken    = regexp.MustCompile(`\w`) // there is a word in it, or a number
)

func texts(t *testing.T) (all []*text) {
	t.Helper()
	written(t, func(name string, content []byte) { all = append(all, newText(name, content)) })
	return all
}

// written calls f with each file of Go or Lua that is not generated, in whatever
// module, and its name seen from the root.
func written(t *testing.T, f func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if file != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".lua") && !strings.HasSuffix(file, ".luainc"):
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || generated.Match(content) {
			return err
		}
		name, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(name), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newText(name string, content []byte) *text {
	content = imported.ReplaceAllFunc(content, func(imports []byte) []byte {
		return bytes.Repeat([]byte("\n"), bytes.Count(imports, []byte("\n")))
	})
	f := &text{name: name}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if spoken.MatchString(line) && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "--") {
			f.lines, f.numbers = append(f.lines, line), append(f.numbers, n)
		}
	}
	return f
}
