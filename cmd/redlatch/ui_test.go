package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redlatch/redlatch/internal/overview"
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
		"a\x9b31m":            `a\x9b31m`, // begins a control sequence on some terminals
		"\u202e":              `\u202e`,   // would turn the rest of the line around
		"\uFFFD":              "\uFFFD",
		"":                    "",
	} {
		if got := overview.Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUIHides(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	u := &ui{err: &b}
	u.hide("s3cret", "", "s", "say") // the last two would make our own words unreadable
	u.note("the server says: AUTH s3cret\x1b[31m at %s", "redis://x:y@h")
	u.fail(usage("redlatch: bad %s", "s3cret"))
	u.fail(&failure{code: 3})
	if want := "redlatch: the server says: AUTH ***\\x1b[31m at redis://***@h\nredlatch: bad ***\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// A secret that has what is not shown as it is, or that an error quotes, is masked
// nevertheless.
func TestEscapedSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"sek\x01ret", "sek\xffret", "sek\u202eret", `sek"r\et`, "sek@r/e t"} {
		var b strings.Builder
		u := &ui{err: &b}
		u.hide(secret)
		u.note("the server says: AUTH %s", secret)
		u.note("parse %q: AUTH %s %s", secret, url.PathEscape(secret), url.QueryEscape(secret))
		if want := "redlatch: the server says: AUTH ***\nredlatch: parse \"***\": AUTH *** ***\n"; b.String() != want {
			t.Errorf("%q: got %q, want %q", secret, b.String(), want)
		}
	}
}

// What is stored cannot move the cursor, change colours or turn a line around, in
// whatever form it is shown.
func TestNothingStoredControlsTheTerminal(t *testing.T) {
	t.Parallel()
	const stored = "a\x1b[2J\u009b2J\u202e\x7f\x00\xffb\U000e0041"
	var b strings.Builder
	u := &ui{out: &b, err: &b}
	u.note("%s", stored)
	if err := errors.Join(u.table([][]string{{"name", stored}, {stored, "x"}}), u.json(map[string]string{"name": stored})); err != nil {
		t.Fatal(err)
	}
	for i, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q at %q", r, b.String()[max(0, i-10):])
		}
	}
	var back map[string]string
	_, object, _ := strings.Cut(b.String(), "{")
	if err := json.Unmarshal([]byte("{"+object), &back); err != nil || back["name"] != strings.ToValidUTF8(stored, "\uFFFD") {
		t.Errorf("%q, %v", back, err)
	}
}

// A character takes two columns of a terminal, or none.
func TestWideNamesDoNotMoveTheColumns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	u := &ui{out: &b}
	if err := u.table([][]string{{"NAME", "KIND"}, {"\u6f22\u5b57", "lock"}, {"e\u0301", "lock"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  KIND\n\u6f22\u5b57  lock\ne\u0301     lock\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if lines := wrapped("so: \u6f22\u5b57 \u6f22\u5b57", 10); len(lines) != 2 {
		t.Errorf("%q", lines)
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
		"a\nb": `$'a\nb'`, "it's\x1b\\": `$'it\'s\x1b\\'`, "\xff": `$'\xff'`, "-\t": `-- $'-\t'`,
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
