package census

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// mostDeadlocks is how many are reported.
	mostDeadlocks = 100
	// mostWaits is how many waits are looked at. Only holders that wait themselves count, so
	// that nobody has as many but a liar.
	mostWaits = 2000
)

// A Wait is one of a circle: a caller of a client that has something as an owner waits for
// something else, which the holder has.
type Wait struct {
	Client, Owner string // who waits, and what it has meanwhile
	Name, Holder  string // what it waits for, and who has that
}

// Deadlocks returns circles of waits that stood in two answers, which are further apart than
// a time. Each is a suspicion: what waits may give up, and the answers may lie. Only holders
// that are stored count.
func Deadlocks(first, second *Answers, apart time.Duration) (all [][]Wait) {
	if second.At.Sub(first.At) <= apart {
		return nil
	}
	before := map[Wait]bool{}
	for _, w := range first.waits() {
		before[w] = true
	}
	from := map[string][]Wait{}
	for _, w := range second.waits() {
		if before[w] {
			from[w.Owner] = append(from[w.Owner], w)
		}
	}
	for len(all) < mostDeadlocks {
		prune(from)
		circle := shortest(from)
		if circle == nil {
			break
		}
		all = append(all, circle)
		for _, w := range circle {
			delete(from, w.Owner)
		}
	}
	return all
}

// waits returns who waits for whom, by what the answers say and Redis has, in order.
func (a *Answers) waits() (all []Wait) {
	holders := a.waitingHolders()
	for _, x := range a.All {
		for _, c := range x.Claims {
			if !c.Waits {
				continue
			}
			for _, h := range holders[c.Name] {
				if c.Mode == wire.ModeRead && h.Mode == wire.ModeRead {
					continue // they share it
				}
				for _, under := range c.Under {
					if under != h.Owner && len(all) < mostWaits {
						all = append(all, Wait{x.Client, under, c.Name, h.Owner})
					}
				}
			}
			if len(all) == mostWaits {
				return sorted(all)
			}
		}
	}
	return sorted(all)
}

// waitingHolders returns of each object the holders that wait for something themselves. No
// other can be in a circle.
func (a *Answers) waitingHolders() map[string][]inspect.Holder {
	waits := map[string]bool{}
	for _, x := range a.All {
		for _, c := range x.Claims {
			if c.Waits {
				for _, under := range c.Under {
					waits[under] = true
				}
			}
		}
	}
	of := map[string][]inspect.Holder{}
	for _, o := range a.Objects {
		for _, h := range o.Holders {
			if waits[h.Owner] {
				of[o.Name] = append(of[o.Name], h)
			}
		}
	}
	return of
}

// sorted returns each of some waits once, in order.
func sorted(all []Wait) []Wait {
	slices.SortFunc(all, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Holder, y.Holder), cmp.Compare(x.Client, y.Client))
	})
	return slices.Compact(all)
}

// prune removes the waits of owners for which nobody waits, and those for owners that wait for
// nobody, until there are none: what stays is in circles, or between two.
func prune(from map[string][]Wait) {
	for again := true; again; {
		again = false
		wanted := map[string]bool{}
		for owner, waits := range from {
			left := slices.DeleteFunc(slices.Clone(waits), func(w Wait) bool { return len(from[w.Holder]) == 0 })
			again = again || len(left) < len(waits)
			if from[owner] = left; len(left) == 0 {
				delete(from, owner)
			}
			for _, w := range left {
				wanted[w.Holder] = true
			}
		}
		for owner := range from {
			if !wanted[owner] {
				again = true
				delete(from, owner)
			}
		}
	}
}

// shortest returns the shortest circle through the first owner that is in one; nil if there
// is none. It removes the owners before that, which are in none.
func shortest(from map[string][]Wait) []Wait {
	owners := make([]string, 0, len(from))
	for owner := range from {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	for _, start := range owners {
		by := map[string]Wait{} // how each owner was reached
		for next := []string{start}; len(next) > 0; next = next[1:] {
			for _, w := range from[next[0]] {
				if _, seen := by[w.Holder]; seen {
					continue
				}
				by[w.Holder] = w
				if w.Holder == start {
					return back(by, start)
				}
				next = append(next, w.Holder)
			}
		}
		delete(from, start)
	}
	return nil
}

// back returns the way by which start was reached from itself.
func back(by map[string]Wait, start string) (circle []Wait) {
	for owner := start; ; {
		w := by[owner]
		circle = append(circle, w)
		if owner = w.Owner; owner == start {
			slices.Reverse(circle)
			return circle
		}
	}
}
