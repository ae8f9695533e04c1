package dashboard

import (
	"html"
	"strings"
	"testing"
)

// Whatever somebody calls a lock, a client or a note, a page shows it as text, and
// shows all of it.
func FuzzATextIsNeverMarkup(f *testing.F) {
	for _, s := range []string{"", "orders", `"><script>alert(1)</script>`, "' onload='x", "&lt;b&gt;", "a & b", "100 %", "\x00\xff\u202e", "</title>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var w writer
		w.put(`<a title="%">%</a>`, s, s)
		w.putIf(`<b>%</b>`, s)
		text, ok := strings.CutPrefix(w.String(), `<a title="`)
		attribute, text, found := strings.Cut(text, `">`)
		inner, rest, closed := strings.Cut(text, `</a>`)
		if !ok || !found || !closed || strings.ContainsAny(attribute+inner, `<>"'`) {
			t.Fatalf("%q became %q", s, w.String())
		}
		if html.UnescapeString(attribute) != s || html.UnescapeString(inner) != s {
			t.Fatalf("of %q the page shows %q and %q", s, html.UnescapeString(attribute), html.UnescapeString(inner))
		}
		if want := "<b>" + inner + "</b>"; s != "" && rest != want || s == "" && rest != "" {
			t.Fatalf("%q became %q", s, rest)
		}
	})
}
