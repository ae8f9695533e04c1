package census

import (
	"slices"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/invalid"
)

const (
	mostGlob  = 256 // bytes of a pattern
	mostExact = 64  // names and owners
)

// A filter says which claims a question is about: those whose names match the
// pattern, and those that have one of the names or owners. One that says nothing
// is about all. Answers are for filters, and not for those who ask: whoever asks
// the same at the same time hears the same answer, so a flood of questions costs
// one answer a second.
type filter struct {
	Glob   string   `json:"glob,omitempty"`
	Names  []string `json:"names,omitempty"`
	Owners []string `json:"owners,omitempty"`
}

var errFilter = invalid.Errorf("redlatch: a question has a pattern of at most 256 bytes, at most 64 names and owners, and 4 kB in all, in UTF-8")

// check refuses what no client would answer.
func (f *filter) check() error {
	bad := func(text string) bool { return !utf8.ValidString(text) }
	if len(f.Glob) > mostGlob || len(f.Names)+len(f.Owners) > mostExact || bad(f.Glob) || slices.ContainsFunc(f.Names, bad) || slices.ContainsFunc(f.Owners, bad) {
		return errFilter
	}
	return nil
}

// is says whether two are the same.
func (f *filter) is(g *filter) bool {
	return f.Glob == g.Glob && slices.Equal(f.Names, g.Names) && slices.Equal(f.Owners, g.Owners)
}

// fits says whether it is about a claim. No pattern matches a name that no claim
// can tell.
func (f *filter) fits(name, owner string) bool {
	if f.Glob == "" && len(f.Names)+len(f.Owners) == 0 {
		return true
	}
	return f.Glob != "" && len(name) <= mostClaim && match(f.Glob, name) || slices.Contains(f.Names, name) || slices.Contains(f.Owners, owner)
}

// match says whether a glob pattern of Redis' matches a text. It takes no longer
// than the product of their lengths.
func match(pattern, text string) bool {
	star, from := -1, 0 // the last asterisk, and up to where it stands for the text
	i, j := 0, 0
	for j < len(text) {
		if i < len(pattern) && pattern[i] == '*' {
			star, from = i, j
			i++
			continue
		}
		if i < len(pattern) {
			if ok, n := one(pattern[i:], text[j]); ok {
				i, j = i+n, j+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		i, j = star+1, from
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// one says whether a byte is what a pattern begins with, and how long that is.
func one(pattern string, c byte) (ok bool, length int) {
	switch {
	case pattern[0] == '?':
		return true, 1
	case pattern[0] == '[':
		return class(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == c, 2
	}
	return pattern[0] == c, 1
}

// class is one for a pattern that begins with a bracket. One that is not closed
// ends with the pattern.
func class(pattern string, c byte) (ok bool, length int) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	found := false
	for i < len(pattern) && pattern[i] != ']' {
		low, high, n := pattern[i], pattern[i], 1
		switch {
		case low == '\\' && i+1 < len(pattern):
			low, high, n = pattern[i+1], pattern[i+1], 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			high, n = pattern[i+2], 3
		}
		found = found || min(low, high) <= c && c <= max(low, high)
		i += n
	}
	return found != not, min(i+1, len(pattern))
}
