package queue

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/randtest"
)

type caller struct {
	n     int
	tries bool
	place Place[*caller]
}

// Whoever comes and leaves, from whatever place, the others stay in their order.
func TestALineIsInOrder(t *testing.T) {
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
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
		r.Steps(map[string]func(){
			"push": func() {
				n++
				c := &caller{n: n, tries: r.Bool()}
				l.Push(&c.place, c, c.tries)
				want = append(want, c)
			},
			"remove": func() {
				if len(want) == 0 {
					return
				}
				remove(r.IntN(len(want)))
			},
			"again": func() { // a place is used for one caller after the other
				if len(want) == 0 {
					return
				}
				c := want[0]
				remove(0)
				l.Push(&c.place, c, c.tries)
				want = append(want, c)
			},
			"remove those that only try": func() {
				for c := range l.All() {
					if c.tries {
						remove(slices.Index(want, c))
					}
				}
			},
		}, func() {
			if got := slices.Collect(l.All()); !slices.Equal(got, want) {
				t.Fatalf("%d callers, want %d in their order", len(got), len(want))
			}
			var back []*caller
			for p := l.last; p != nil; p = p.prev {
				back = append(back, p.caller)
			}
			slices.Reverse(back)
			if !slices.Equal(back, want) {
				t.Fatalf("%d callers from the end, want %d in their order", len(back), len(want))
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
		})
	})
}

// Leaving takes the same few steps wherever a caller stands: it touches its
// neighbours only. The line is cut on both sides of them, so that a search from
// either end would not get there.
func TestLeavingTouchesNeighboursOnly(t *testing.T) {
	const n, at = 10_000, 5_000
	var l Line[*caller]
	all := make([]*caller, n)
	for i := range all {
		all[i] = &caller{n: i}
		l.Push(&all[i].place, all[i], false)
	}
	before, after := &all[at-1].place, &all[at+1].place
	before.prev, after.next = nil, nil
	all[at-2].place.next, all[at+2].place.prev = nil, nil
	l.Remove(&all[at].place)
	if before.next != after || after.prev != before {
		t.Error("the neighbours are not linked")
	}
	if l.First() != all[0] || l.last != &all[n-1].place || l.Len() != n-1 {
		t.Error("the ends of the line have changed")
	}
}
