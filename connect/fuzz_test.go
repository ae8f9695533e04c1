package connect

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/redlatch/redlatch"
)

// Whatever Parse accepts, it says the same of when it is asked again, when it is
// shown, and when somebody else reads it.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if again, err2 := Parse(text); !reflect.DeepEqual(again, s) || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Fatalf("%q is %v, %v, and then %v, %v", text, s, err, again, err2)
		}
		if err != nil {
			checkError(t, err)
			if !reflect.DeepEqual(s, Settings{}) || Redact(text) != "(unreadable URL)" {
				t.Fatalf("%q: %v, and %v", text, err, s)
			}
			return
		}
		checkShown(t, s)
		if s.TLS != nil {
			s.TLS.CAFile, s.TLS.CertFile, s.TLS.KeyFile = "", "", "" // there are no such files
		}
		if plan, err := s.Plan(redlatch.Config{}); err != nil || len(plan.Addresses) == 0 {
			t.Fatalf("%q: no options: %v", text, err)
		}
	})
}

// checkError wants an error that fits on a few lines of a log, whatever was wrong.
func checkError(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, "connect: ") || len(text) > 400 || strings.ContainsFunc(text, unicode.IsControl) {
		t.Fatalf("the error is %q", text)
	}
}

// checkShown wants that what is shown is a URL that means the same, less what is
// not shown, and that it can be printed.
func checkShown(t *testing.T, s Settings) {
	t.Helper()
	shown := s.String()
	if strings.ContainsFunc(shown, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Fatalf("it is shown as %q", shown)
	}
	again, err := Parse(shown)
	if err != nil || again.String() != shown {
		t.Fatalf("it is shown as %q, which is %v, %v", shown, again, err)
	}
	want := Settings{Mode: s.Mode, Addresses: s.Addresses, MasterName: s.MasterName, Database: s.Database}
	if s.User != "" || s.Password != "" {
		want.Password = stars
	}
	if s.TLS != nil {
		want.TLS = &TLS{}
	}
	if !reflect.DeepEqual(again, want) {
		t.Fatalf("it is shown as %q, which is\n%#v, want\n%#v", shown, again, want)
	}
}

// spelled is a password with a digit in any two of its characters, so that no
// piece of it is a word of an error.
const spelled = "h1u2n3t4e5r6t7w8o9"

// shows says whether a text has a piece of spelled.
func shows(text string) bool {
	for i := range len(spelled) - 2 {
		if strings.Contains(text, spelled[i:i+3]) {
			return true
		}
	}
	return false
}

// Wherever in a URL a password stands, and whatever its owner forgot to encode in
// it, no error has a piece of it.
func FuzzParseShowsNoPassword(f *testing.F) {
	f.Fuzz(func(t *testing.T, before, unencoded, after string, at uint8) {
		cut := int(at) % len(spelled)
		text := before + spelled[:cut] + unencoded + spelled[cut:] + after
		s, err := Parse(text)
		if err != nil && shows(err.Error()) {
			t.Errorf("%q: %v", text, err)
		}
		if shows(fmt.Sprint(s, Redact(text))) && !shows(fmt.Sprint(s.Addresses, s.MasterName)) {
			t.Errorf("%q is shown as %v", text, s)
		}
	})
}
