package search

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/tests/internal/redissonlua"
)

// searches are all that there are.
func searches() []*search {
	return slices.Concat(plainSearches(), readWriteSearches(), fairSearches(), groupSearches(), permitSearches(), sessionSearches(), barrierSearches(), countSearches())
}

// A mutant is a file of a script, or of what several share, with one line changed.
type mutant struct {
	name   string // the file, the line and what was done to it
	source string
}

var (
	question = regexp.MustCompile(`^(\s*(?:if|elseif|while) )(.*)( (?:then|do)(?: --.*)?)$`)
	chosen   = regexp.MustCompile(`^(\s*(?:return|[\w.\[\] ,]+ =) )([^=].* (?:==|~=|<|>|<=|>=|and|or) .*)$`)
	bit      = regexp.MustCompile(`^(\s*(?:return|[\w.\[\]]+ =) )([01])$`)
)

// mutants returns those of a file.
func mutants(name, source string) []mutant {
	lines := strings.SplitAfter(source, "\n")
	count := map[string]int{}
	var all []mutant
	for i, line := range lines {
		text, _, _ := strings.Cut(strings.TrimSpace(line), " -- ")
		if text == "" || strings.HasPrefix(text, "--") || text == "end" {
			continue
		}
		add := func(kind, now string) {
			all = append(all, mutant{
				name:   fmt.Sprintf("%s: %s", id(name, text, count), kind),
				source: strings.Join(lines[:i], "") + now + "\n" + strings.Join(lines[i+1:], ""),
			})
		}
		count[text]++
		add("deleted", "")
		if now := negated(strings.TrimRight(line, "\n")); now != "" {
			add("negated", now)
		}
	}
	return all
}

// id names a line, and says which of several that are alike.
func id(file, text string, count map[string]int) string {
	if n := count[text]; n > 1 {
		return fmt.Sprintf("%s: %s (%d)", file, text, n)
	}
	return file + ": " + text
}

// negated returns a line with its condition, or its answer, turned round; "" if it
// has none.
func negated(line string) string {
	if p := question.FindStringSubmatch(line); p != nil {
		return p[1] + "not (" + p[2] + ")" + p[3]
	}
	if p := bit.FindStringSubmatch(line); p != nil {
		return p[1] + map[string]string{"0": "1", "1": "0"}[p[2]]
	}
	if p := chosen.FindStringSubmatch(line); p != nil && !strings.Contains(line, "function") {
		if c, rest, ok := strings.Cut(p[2], " and "); ok && strings.Contains(rest, " or ") {
			return p[1] + "not (" + c + ") and " + rest
		}
		return p[1] + "not (" + p[2] + ")"
	}
	return ""
}

// parts returns the files that a file of a script is made of, itself too.
func parts(t *testing.T, file string) []string {
	t.Helper()
	source, err := fs.ReadFile(scripts, file)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{file}
	for line := range strings.Lines(string(source)) {
		if fragment, ok := strings.CutPrefix(strings.TrimSpace(line), "-- include "); ok {
			all = append(all, parts(t, fragment+".luainc")...)
		}
	}
	return all
}

// uses returns the searches that run a file, by file.
func uses(t *testing.T) map[string][]*search {
	t.Helper()
	by := map[string][]*search{}
	for _, q := range searches() {
		seen := map[string]bool{}
		for i := range q.asks {
			name := q.asks[i].script
			if name == "" || redissonlua.Scripts[name] != "" {
				continue
			}
			for _, file := range parts(t, name+".lua") {
				if !seen[file] {
					seen[file] = true
					by[file] = append(by[file], q)
				}
			}
		}
	}
	return by
}

// A new script has to be searched, too.
func TestEveryScriptIsSearched(t *testing.T) {
	files, err := fs.Glob(scripts, "*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	used := uses(t)
	for _, file := range files {
		reason := ""
		for name, why := range unsearched {
			if strings.HasPrefix(file, name) {
				reason = why
			}
		}
		if used[file] == nil && reason == "" {
			t.Errorf("no search runs %s, and nothing says why not", file)
		}
	}
}

// overlay is the scripts with one file changed.
type overlay struct {
	fs.FS
	changed fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if o.changed[name] != nil {
		return o.changed.Open(name)
	}
	return o.FS.Open(name)
}

// Whoever breaks a line of a script breaks a promise, unless explained says why
// not.
func TestEveryLineIsNeeded(t *testing.T) {
	t.Parallel()
	met := map[string]bool{}
	for file := range uses(t) {
		source, err := fs.ReadFile(scripts, file)
		if err != nil {
			t.Fatal(err)
		}
		all := mutants(file, string(source))
		for _, m := range all {
			met[m.name] = true
		}
		t.Run(file, func(t *testing.T) {
			part := 0
			for some := range slices.Chunk(all, 20) { // so that no file takes one processor long after all others
				part++
				t.Run(fmt.Sprint(part), func(t *testing.T) {
					t.Parallel()
					survivors(t, file, some)
				})
			}
		})
	}
	for name := range explained {
		if !met[name] {
			t.Errorf("explained, and not there: %q", name)
		}
	}
}

// survivors looks for a search that finds each mutant wrong.
func survivors(t *testing.T, file string, all []mutant) {
	machine := newMachine()
	mine := uses(t)[file] // with asks of their own: they are carried out beside others
	for _, m := range all {
		files := overlay{scripts, fstest.MapFS{file: {Data: []byte(m.source)}}}
		killed := wrong(machine, mine, func(name string) *script.Script { return script.Load(files, name) })
		reason := explained[m.name]
		switch {
		case !killed && reason == "":
			t.Errorf("nothing is wrong with this, and nothing explains it:\n%q: \"\",", m.name)
		case killed && reason != "":
			t.Errorf("explained, and found wrong: %q", m.name)
		}
	}
}

// wrong says whether any search finds something wrong. What is wrong with a mutant
// is mostly near the beginning of one search or another: all of them look there
// first, and ever farther.
func wrong(m *machine, all []*search, load func(name string) *script.Script) bool {
	for most := 1000; len(all) > 0; most *= 10 {
		var more []*search // those that have not visited everything
		for _, q := range all {
			story, n := q.explore(m, load, most)
			if story != "" {
				return true
			}
			if n > most {
				more = append(more, q)
			}
		}
		all = more
	}
	return false
}

// Two lines of one name would share an explanation.
func TestEachMutantHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	for file := range uses(t) {
		source, err := fs.ReadFile(scripts, file)
		if err != nil {
			t.Fatal(err)
		}
		met := map[string]bool{}
		for _, m := range mutants(file, string(source)) {
			if met[m.name] {
				t.Errorf("two are called %q", m.name)
			}
			met[m.name] = true
		}
	}
}
