// Package script makes scripts of Lua files: it puts in what they include, reads
// their headers, and knows each by every kind of Pub/Sub. It knows nothing of what
// they do.
package script

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/redlatch/redlatch/driver"
)

// A Script is one Lua program, and what its header says. It is immutable and safe
// for concurrent use.
type Script struct {
	*driver.Script

	header Header
	all    [kinds]*Script // by Messages
}

// A Header is what the comment block at the top of a script declares.
type Header struct {
	Purpose string   // the first comment lines
	Keys    []string // KEYS[1] is Keys[0]; "..." at its end: any number of it
	Args    []string // ARGV[1] is Args[0]; a "..." of its own: all before it repeat
	Acked   bool     // replicas may have to acknowledge it: it writes in any case
	Wants   []string // keys that it may answer with: such a key is to be in KEYS, and nothing has been done
	Returns string
}

// New makes a script from its source text.
func New(name, source string) (*Script, error) {
	h, err := parseHeader(source)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", name, err)
	}
	s := &Script{Script: driver.NewScript(name, source), header: h}
	s.variants()
	return s, nil
}

// Load reads name (without ".lua") from fsys. It panics on error: scripts are
// part of the program, and a program without them cannot start.
func Load(fsys fs.FS, name string) *Script {
	b, err := fs.ReadFile(fsys, name+".lua")
	if err != nil {
		panic(err)
	}
	source, err := include(fsys, string(b))
	if err != nil {
		panic(fmt.Errorf("script %s: %w", name, err))
	}
	s, err := New(name, source)
	if err != nil {
		panic(err)
	}
	return s
}

// include replaces each line "-- include NAME" by what NAME.luainc holds: a
// fragment that several scripts share, and that may include others.
func include(fsys fs.FS, source string) (string, error) {
	var all strings.Builder
	for line := range strings.Lines(source) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- include ")
		if !ok {
			all.WriteString(line)
			continue
		}
		fragment, err := fs.ReadFile(fsys, name+".luainc")
		if err != nil {
			return "", err
		}
		text, err := include(fsys, string(fragment))
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// Header returns what the script's leading comment declares.
func (s *Script) Header() Header { return s.header }

// parseHeader reads the leading "-- " lines. "-- KEYS a b", "-- ARGV a b", "--
// acked", "-- wants a" and "-- returns ..." are declarations, with remarks in
// parentheses; everything before them is the purpose.
func parseHeader(source string) (Header, error) {
	var h Header
	var purpose []string
	for line := range strings.Lines(source) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "--")
		if !ok {
			break
		}
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "KEYS "):
			h.Keys = names(text)
		case strings.HasPrefix(text, "ARGV "):
			h.Args = names(text)
		case text == "acked":
			h.Acked = true
		case strings.HasPrefix(text, "wants "):
			h.Wants = names(text)
		case strings.HasPrefix(text, "returns "):
			h.Returns = strings.TrimPrefix(text, "returns ")
		case h.Returns != "":
			h.Returns += " " + text
		default:
			purpose = append(purpose, text)
		}
	}
	h.Purpose = strings.Join(purpose, " ")
	if h.Purpose == "" || h.Returns == "" {
		return h, fmt.Errorf("the header must say its purpose and what it returns")
	}
	return h, nil
}

// names returns what a declaration declares.
func names(text string) []string {
	text, _, _ = strings.Cut(text, "(")
	return strings.Fields(text)[1:]
}
