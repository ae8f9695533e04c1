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

// The map of the code names no file and no folder that is not there. A file without a folder stands in the one that the
// same line has named before it, or else in the root package.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	const doc = "docs/architecture.md"
	text, err := os.ReadFile(filepath.Join(top, doc))
	if err != nil {
		t.Fatal(err)
	}
	links, paths := 0, 0
	fenced := false
	for i, line := range strings.Split(string(text), "\n") {
		missing := func(what string) { t.Errorf("%s:%d: there is no %s", doc, i+1, what) }
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if !exists("docs", m[1]) {
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
		t.Errorf("%s: %d links and %d paths found: does this test still read it?", doc, links, paths)
	}
}

// pathsIn returns the files and folders that a line of text names, seen from the root package.
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
