package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link   = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	quoted = regexp.MustCompile("`([^`]+)`")
	braces = regexp.MustCompile(`([\w/.-]*)\{([\w,-]+)\}`) // internal/{lua,wire}
	named  = regexp.MustCompile(`^[\w.-]+\.(go|lua|luainc|md)$`)
	pathy  = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+/?$`)
)

// The map of the code, and what to do for a new type of lock, name no file and no
// folder that is not there. A file without a folder stands in the one that the
// same line has named before it, or else in the root package.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	for _, page := range []struct{ file, from, to string }{
		{"docs/architecture.md", "", ""},
		{"CONTRIBUTING.md", "\n## A new type of lock\n", "\n## "},
	} {
		links, paths := 0, 0
		fenced := false
		for i, line := range section(t, page.file, page.from, page.to) {
			missing := func(what string) { t.Errorf("%s: line %d of what is read: there is no %s", page.file, i+1, what) }
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				if !exists(filepath.Dir(page.file), m[1]) {
					missing(m[1])
				}
			}
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, name := range pathsIn(line) {
				paths++
				if !exists(name) {
					missing(name)
				}
			}
		}
		if links == 0 || paths == 0 {
			t.Errorf("%s: %d links and %d paths found: does this test still read it?", page.file, links, paths)
		}
	}
}

// section returns the lines of a page from a heading to the next one; all if there
// is none to look for.
func section(t *testing.T, file, from, to string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), from)
	if !found {
		t.Fatalf("%s has no section %q", file, from)
	}
	if to != "" {
		rest, _, _ = strings.Cut(rest, to)
	}
	return strings.Split(rest, "\n")
}

// A package that the map leaves out is not found by whoever looks for what it
// does.
func TestArchitectureNamesEachInternalPackage(t *testing.T) {
	lines := strings.Join(section(t, "docs/architecture.md", "\n## Where things are\n", "\n## "), "\n")
	packages := map[string]bool{}
	for _, src := range sources(t) {
		if strings.HasPrefix(src.dir, "internal/") {
			packages[src.dir] = true
		}
	}
	if len(packages) < 20 {
		t.Errorf("only %d packages were found: does this test still read the code?", len(packages))
	}
	for dir := range packages {
		if !strings.Contains(lines, "`"+dir+"`") {
			t.Errorf("docs/architecture.md does not say where %s belongs", dir)
		}
	}
}

// pathsIn returns the files and folders that a line of text names, seen from the
// root package.
func pathsIn(line string) (all []string) {
	folder := ""
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		text := m[1]
		for _, b := range braces.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(b[1], "/") {
				continue // no folder: a name with a hash tag
			}
			for each := range strings.SplitSeq(b[2], ",") {
				all = append(all, b[1]+each)
			}
		}
		top, _, _ := strings.Cut(text, "/")
		switch {
		case named.MatchString(text):
			all = append(all, filepath.Join(folder, text))
		case pathy.MatchString(text) && exists(top): // others are of the standard library
			all = append(all, text)
			if folder = text; named.MatchString(filepath.Base(text)) {
				folder = filepath.Dir(text)
			}
		case strings.HasPrefix(line, "| `") && strings.HasPrefix(line, "| "+m[0]):
			all = append(all, text) // the first cell of the table of files
		}
	}
	return all
}

func exists(elem ...string) bool {
	_, err := os.Stat(filepath.Join(append([]string{top}, elem...)...))
	return err == nil
}
