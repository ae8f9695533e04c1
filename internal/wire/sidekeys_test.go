package wire

import (
	"slices"
	"testing"
)

// A listing finds objects by their side keys.
func TestNamesOfSideKeys(t *testing.T) {
	for key, want := range map[string][]string{
		"p:{x}": {"x", "{x}"}, "p:{a}b": {"{a}b"}, "p:a{b}": {"a{b}"}, "p:{a}b{c}": {"{a}b{c}"}, "p:a{b}c": {"a{b}c"},
		"p:{x}:1": {"{x}:1"}, // whoever asks about that finds nothing
		"p:x":     nil, "p:": nil, "q:{x}": nil, "p": nil, "p:{}": {"{}"}, "": nil,
	} {
		if got := PrefixedNames("p", key); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string][]string{
		"{x}:s": {"x", "{x}"}, "{a}b:s": {"{a}b"}, "a{b}:s": {"a{b}"}, "{a}{b}:s": {"{a}{b}"}, "a{b}c:s": {"a{b}c"}, "x:s": nil, ":s": nil, "{x}:t": nil, "s": nil, "": nil,
	} {
		if got := SuffixedNames(key, "s"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// What belongs to an object of another name is no object.
func TestIsSideKey(t *testing.T) {
	const owner = "5f1b3c2e-6d0a-4d8e-9a51-0123456789ab:1"
	for _, key := range []string{
		Prefix(LockToken, "x"), Session("x", "c", "rate"), Suffix("x", RateValue), Suffix("a{b}c", RateValue), Suffix("x", RateValue) + ":" + owner, ReadTimeout("x", owner, 2),
	} {
		if !IsSideKey(key) {
			t.Errorf("%q is not seen", key)
		}
	}
	for _, key := range []string{"x", "{x}", "x:value", "{x}:values", "{x}y", "}:value", "value", "{x}:counter", "my redlatch_", ""} {
		if IsSideKey(key) {
			t.Errorf("%q is taken for one", key)
		}
	}
}
