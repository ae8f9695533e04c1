package main

import (
	"strings"
	"testing"
	"time"
)

func TestMaskUserinfo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nothing":                                "nothing",
		"redis://h:6379":                         "redis://h:6379",
		`command "redis://:pw@h" is`:             `command "redis://***@h" is`,
		"redis://u:p@ss@h/0":                     "redis://***@h/0",
		"a@b redis://h":                          "a@b redis://h",
		"redis://a:b@h and redis://c:d@i or x@y": "redis://***@h and redis://***@i or x@y",
	} {
		if got := maskUserinfo(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders:42 {a} ä Ω 🔒": "orders:42 {a} ä Ω 🔒",
		"\x1b[2J\r\n\t":       `\x1b[2J\r\n\t`,
		"\xff\x00":            `\xff\x00`,
		"\u202e":              `\u202e`, // would turn the rest of the line around
		"\uFFFD":              "\uFFFD",
		"":                    "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUIHides(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	u := &ui{err: &b}
	u.hide("s3cret", "")
	u.note("the server says: AUTH s3cret\x1b[31m at %s", "redis://x:y@h")
	u.fail(usage("redlatch: bad %s", "s3cret"))
	u.fail(&failure{code: 3})
	if want := "redlatch: the server says: AUTH ***\\x1b[31m at redis://***@h\nredlatch: bad ***\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestDurationFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "1e3": 1000 * time.Second,
	} {
		var d duration
		if err := d.Set(text); err != nil || d.Duration != want || !d.set {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "-1s", "NaN", "Inf", "1e300", "10 s"} {
		var d duration
		if err := d.Set(text); err == nil || d.set {
			t.Errorf("%q is taken for %v", text, d.Duration)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders:42": "orders:42", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "-n": "-- '-n'", "*": "'*'", "{a}": "'{a}'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
