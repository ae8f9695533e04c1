package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type caller struct {
	n     int
	tries bool
	place Place[*caller]
}

// Whoever comes and leaves, from whatever place, the others stay in their order.
func TestALineIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Line[*caller]
		var want []*caller
		n := 0
		remove := func(i int) {
			c := want[i]
			l.Remove(&c.place)
			want = slices.Delete(want, i, i+1)
			if c.place.Taken() {
				t.Fatalf("%d has left and has a place", c.n)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n++
				c := &caller{n: n, tries: rapid.Bool().Draw(t, "tries")}
				l.Push(&c.place, c, c.tries)
				want = append(want, c)
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("nobody there")
				}
				remove(rapid.IntRange(0, len(want)-1).Draw(t, "which"))
			},
			"again": func(t *rapid.T) { // a place is used for one caller after the other
				if len(want) == 0 {
					t.Skip("nobody there")
				}
				c := want[0]
				remove(0)
				l.Push(&c.place, c, c.tries)
				want = append(want, c)
			},
			"remove those that only try": func(*rapid.T) {
				for c := range l.All() {
					if c.tries {
						remove(slices.Index(want, c))
					}
				}
			},
			"": func(t *rapid.T) {
				if got := slices.Collect(l.All()); !slices.Equal(got, want) {
					t.Fatalf("%d callers, want %d in their order", len(got), len(want))
				}
				tries := 0
				for _, c := range want {
					if !c.place.Taken() {
						t.Fatalf("%d stands in line without a place", c.n)
					}
					if c.tries {
						tries++
					}
				}
				if l.Len() != len(want) || l.Tries() != tries {
					t.Fatalf("%d callers of whom %d try, want %d and %d", l.Len(), l.Tries(), len(want), tries)
				}
				if first := l.First(); (first == nil) != (len(want) == 0) || first != nil && first != want[0] {
					t.Fatalf("the first is %v", first)
				}
			},
		})
	})
}
