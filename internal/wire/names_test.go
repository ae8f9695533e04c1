package wire

import (
	"strings"
	"testing"
)

func TestPrefix(t *testing.T) {
	for name, want := range map[string]string{
		"a":         "p:{a}",
		"orders:42": "p:{orders:42}",
		"{a}":       "p:{a}",
		"{a}:b":     "p:{a}:b",
		"a{b}c":     "p:a{b}c",
		"käse 🧀":    "p:{käse 🧀}",
		"a b\n":     "p:{a b\n}",
		":":         "p:{:}",
		"\x00\xff":  "p:{\x00\xff}",
		// Redisson's rule asks for "{" only; CheckName refuses these.
		"a{b":  "p:a{b",
		"a{}b": "p:a{}b",
		"a}b":  "p:{a}b}",
	} {
		if got := Prefix("p", name); got != want {
			t.Errorf("Prefix(p, %q) = %q, want %q", name, got, want)
		}
	}
	if got, want := Prefix(LockChannel, "a"), "redisson_lock__channel:{a}"; got != want {
		t.Errorf("the lock's channel is %q, want %q", got, want)
	}
}

func TestCheckName(t *testing.T) {
	const (
		empty  = "a name must not be empty"
		open   = "has a '{' without a '}'"
		closed = "has a '}' without a '{'"
		before = "has a '}' before its '{'"
		tag    = "has an empty hash tag {}"
		unbal  = "has unbalanced braces"
	)
	for name, want := range map[string]string{
		"a": "", "orders:42": "", "{a}": "", "{a}:b": "", "a{b}c": "", "a{b}{c}": "", "a{b}{}": "",
		"{{a}}": "", "{a{b}c}": "", " ": "", "käse 🧀": "", "\x00\xff": "", strings.Repeat("a", 1<<16): "",
		"":       empty,
		"{":      open,
		"a{b":    open,
		"{{a":    open,
		"}":      closed,
		"a}b":    closed,
		"a}}":    closed,
		"}{":     before,
		"}a{b}":  before,
		"a}b{c":  before,
		"{}":     tag,
		"a{}b":   tag,
		"{}{a}":  tag,
		"{}}":    tag,
		"{a}}":   unbal,
		"{{a}":   unbal,
		"{a}{b":  unbal,
		"a{b}c}": unbal,
	} {
		err := CheckName(name)
		switch {
		case want == "" && err != nil:
			t.Errorf("CheckName(%.20q): %v", name, err)
		case want != "" && err == nil:
			t.Errorf("CheckName(%q) = nil, want %q", name, want)
		case want != "" && !strings.Contains(err.Error(), want):
			t.Errorf("CheckName(%q): %v, want %q", name, err, want)
		case want != "" && want != empty && want != unbal && !strings.Contains(err.Error(), "different slots"):
			t.Errorf("CheckName(%q): %v; it does not say why", name, err)
		}
	}
}

// The error about a long name is short.
func TestCheckNameQuotesTheBeginning(t *testing.T) {
	if err := CheckName(strings.Repeat("\n", 1<<20) + "{"); err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "(1048577 bytes)") {
		t.Errorf("%.600v", err)
	}
}

// The slots are those that CLUSTER KEYSLOT of Redis 7.0 answers.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"":                     0,
		"foo":                  12182,
		"bar":                  5061,
		"123456789":            12739, // 0x31C3, the check value of CRC-16/XMODEM
		"{foo}x":               12182,
		"x{foo}":               12182,
		"{user1000}.following": 3443,
		"foo{bar}{zap}":        5061, // the first tag
		"foo{{bar}}zap":        4015, // "{bar"
		"foo{}{bar}":           8363, // an empty tag is none
		"foo{}":                5542,
		"{}foo":                9500,
		"{":                    4092,
		"}{":                   12793,
		"a{b":                  13340,
		"käse":                 7438,
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}
