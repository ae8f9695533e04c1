package overview

import (
	"slices"
	"strings"
	"testing"
)

// Who waits holds something else meanwhile, and who holds something waits for something else.
func TestEdges(t *testing.T) {
	l := Listing{Locks: []Lock{
		{Name: "a", Holders: []Holder{{Owner: "u:1"}, {Owner: "v:1"}}},
		{Name: "b", Holders: []Holder{{Owner: "u:2"}}, Who: Who{Waiting: []Claim{{Owner: "w:1", Under: []string{"v:1"}}, {Owner: "w:2"}}}},
		{Name: "c", Holders: []Holder{{Owner: "u:1"}}},
	}}
	for owners, want := range map[string]string{"u:1": "a c", "u:2,v:1": "a b", "x": "", "": ""} {
		var asked []string
		if owners != "" {
			asked = strings.Split(owners, ",")
		}
		if got := l.HeldAs(asked); strings.Join(got, " ") != want {
			t.Errorf("%q hold %q", owners, got)
		}
	}
	if got := l.WaitedForBy("v:1"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
	if got := l.WaitedForBy("u:2"); got != nil {
		t.Errorf("%q", got)
	}
}

// What somebody looks at is asked for first, each name once, and no more than a question may have.
func TestAQuestionHasTheNamesThatAreLookedAt(t *testing.T) {
	foreign := func(name string) Lock { return Lock{Name: name, Holders: []Holder{{Owner: "u:1"}}} }
	own := Lock{Name: "own", Holders: []Holder{{Owner: "v:1", Redlatch: true}}}
	q := questionAbout("p*", []string{"looked", "foreign", "no\xff"}, []Lock{foreign("foreign"), own, foreign("more")})
	if want := []string{"looked", "foreign", "more"}; q.Pattern != "p*" || !slices.Equal(q.Names, want) {
		t.Errorf("%+v", q)
	}
	var many []Lock
	for i := range 2 * mostAsked {
		many = append(many, foreign(strings.Repeat("x", i+1)))
	}
	if q := questionAbout("", []string{"looked"}, many); len(q.Names) != mostAsked || q.Names[0] != "looked" {
		t.Errorf("%d names", len(q.Names))
	}
}
