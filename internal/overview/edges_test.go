package overview

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// Who waits holds something else meanwhile, and who holds something waits for
// something else.
func TestEdges(t *testing.T) {
	listing := Listing{Locks: []Lock{
		{Name: "a", Holders: []Holder{{Owner: "u:1"}, {Owner: "v:1"}}},
		{Name: "b", Holders: []Holder{{Owner: "u:2"}}, Who: Who{Waiting: []Claim{{Owner: "w:1", Under: []string{"v:1"}}, {Owner: "w:2"}}}},
		{Name: "c", Holders: []Holder{{Owner: "u:1"}}},
	}}
	for owners, want := range map[string]string{"u:1": "a c", "u:2,v:1": "a b", "x": "", "": ""} {
		var asked []string
		if owners != "" {
			asked = strings.Split(owners, ",")
		}
		if got := listing.HeldAs(asked); strings.Join(got, " ") != want {
			t.Errorf("%q hold %q", owners, got)
		}
	}
	if got := listing.WaitedForBy("v:1"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
	if got := listing.WaitedForBy("u:2"); got != nil {
		t.Errorf("%q", got)
	}
}

// What somebody looks at is asked for first, each name once, and no more than a
// question may have.
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

// Whatever a name has in it, clients can be asked about it: they refuse a question
// that is no text, or too long.
func TestAnyNameCanBeAskedAbout(t *testing.T) {
	for name, want := range map[string]admin.Question{
		"orders:42":                         {Names: []string{"orders:42"}},
		"a*\xff?\xfe\uFFFD[x]\\\n":          {Pattern: `a\*?\??` + "\uFFFD" + `\[x\]\\` + "\n"},
		strings.Repeat("x", 2*mostQuestion): {Pattern: "*"},
	} {
		if q := questionOf(name); !reflect.DeepEqual(q, want) {
			t.Errorf("%.50q: %+v", name, q)
		}
	}
	for _, pattern := range []string{"\xff*", strings.Repeat("x", 2*mostPattern)} {
		if q := questionAbout(pattern, nil, nil); q.Pattern != "*" {
			t.Errorf("%.50q: %+v", pattern, q)
		}
	}
}

// A barrier may have the name of a lock: who waits for one of them was said to
// wait for the other, too.
func TestWhoWaitsAtABarrierWaitsForNoLockOfItsName(t *testing.T) {
	by := &admin.Participant{}
	said := &told{Participants: admin.Participants{Others: map[string]int{"a": 3}}, claims: map[string][]clientClaim{"a": {
		{admin.Claim{Name: "a", Kind: redlatch.KindBarrier, Owner: "u:1"}, by, true},
		{admin.Claim{Name: "a", Kind: redlatch.KindFair, Owner: "u:2"}, by, true},
	}}}
	for kind, want := range map[redlatch.Kind]string{redlatch.KindBarrier: "u:1 and 0", redlatch.KindLock: "u:2 and 3"} {
		l := Lock{Name: "a", Kind: kind, Exists: true}
		said.addTo(&l)
		others := 0
		if l.Others != nil {
			others = *l.Others
		}
		if len(l.Waiting) != 1 || fmt.Sprintf("%s and %d", l.Waiting[0].Owner, others) != want {
			t.Errorf("%s: %+v and %d", kind, l.Waiting, others)
		}
	}
	gone := Lock{Name: "a", Kind: redlatch.KindLock}
	if said.addTo(&gone); len(gone.Waiting) != 2 {
		t.Errorf("%+v", gone.Waiting)
	}
}
