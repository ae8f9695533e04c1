package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallLines is how many lines of code a package has that needs no reason to be
// one, without comments and empty lines.
const smallLines = 60

// small are the packages that have fewer, each with the reason why it is no part
// of a package that uses it.
var small = map[string]string{
	"internal/args":           "the root and the packages beside it check the same things, and none of them may import another",
	"internal/bounded":        "package connect and the module redissonyaml read files, and what they share must not be public",
	"internal/callsite":       "it is the type of a field of nearly every engine, none of which may import another",
	"internal/fact":           "every engine says these things, and the root makes errors of them; no engine may import another for that",
	"internal/invalid":        "nearly every package refuses arguments",
	"internal/lastuser":       "it counts the users of the whole process, which is no state of a client",
	"internal/mask":           "package connect and the adapters log in, and what they share must not be public",
	"internal/nameclash":      "three engines and two public packages tell it names, and it has a state of its own",
	"internal/promtext":       "the dashboard, the Prometheus module and the command write the same format",
	"tests/internal/commands": "two simulated servers refuse the same commands, and a third test asks real ones",
	"tests/internal/folder":   "two tests run other programs",
}

// A small package is a name and a folder to know for little. It says in its
// comment what it promises, as whoever looks at a use of it does not look further.
func TestASmallPackagePromisesSomething(t *testing.T) {
	lines, doc := map[string]int{}, map[string]string{}
	for _, pattern := range []string{"internal/*/*.go", "tests/internal/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			dir, err := filepath.Rel(top, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			dir = filepath.ToSlash(dir)
			n, text := codeOf(t, file)
			lines[dir] += n
			doc[dir] += text
		}
	}
	if len(lines) < 20 {
		t.Errorf("only %d packages were found: does this test still read the code?", len(lines))
	}
	for dir, n := range lines {
		switch is := n < smallLines; {
		case is && small[dir] == "":
			t.Errorf("%s has %d lines of code: make it a part of what uses it, or have the table small say why not", dir, n)
		case is && !strings.Contains(doc[dir], " promises "):
			t.Errorf("%s is small, and its comment does not say what it promises", dir)
		case !is && small[dir] != "":
			t.Errorf("the table small still has %s, which has %d lines of code", dir, n)
		}
	}
	for dir := range small {
		if lines[dir] == 0 {
			t.Errorf("the table small still has %s, which has no code", dir)
		}
	}
}

// codeOf returns how many lines of a file have code, and the comment on its
// package, in one line.
func codeOf(t *testing.T, file string) (lines int, doc string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			lines++
		}
	}
	return lines, docOf(tree)
}

func docOf(tree *ast.File) string { return strings.Join(strings.Fields(tree.Doc.Text()), " ") }
