package census

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// mostDeadlocks is how many are reported.
	mostDeadlocks = 100
	// mostWaits is how many waits are looked at. Only holders that wait themselves
	// count, so that nobody has as many but a liar.
	mostWaits = 2000
)

// An Edge is a caller of a client that has something as an owner and waits for
// something else, which the holder has.
type Edge struct {
	Client, Owner string // who waits, and what it has meanwhile
	Name, Holder  string // what it waits for, and who has that
}

// A Wait is an edge, and what is said of it.
type Wait struct {
	Client             string // who waits
	By                 string // and who that says it is
	Owner              string
	Name               string
	Holder             string
	Waited             time.Duration // for how long, when it was told
	WaitSite, HoldSite string        // where it waits, and where the holder got what it waits for; empty if that was not told
}

func (w Wait) edge() Edge { return Edge{w.Client, w.Owner, w.Name, w.Holder} }

// String returns a line for a log.
func (w Wait) String() string {
	s := fmt.Sprintf("%s (owner %s) waits for %s", cmp.Or(w.By, "client "+w.Client), wire.Text(w.Owner), wire.Quote(w.Name))
	if w.WaitSite != "" {
		s += " at " + w.WaitSite
	}
	s += fmt.Sprintf(" for %v; %s has it", w.Waited.Round(time.Millisecond), wire.Text(w.Holder))
	if w.HoldSite != "" {
		s += " since " + w.HoldSite
	}
	return s
}

// Waits are who waits for whom, of those who have something themselves, at a time.
type Waits struct {
	At  time.Time
	all []Wait // in order
}

// Deadlocks returns circles of waits that stood in two answers, which are further
// apart than a time. Each is a suspicion: what waits may give up, and the answers
// may lie. Only holders that are stored count.
func Deadlocks(first, second Waits, apart time.Duration) [][]Wait {
	if second.At.Sub(first.At) <= apart {
		return nil
	}
	before := map[Edge]bool{}
	for _, w := range first.all {
		before[w.edge()] = true
	}
	second.all = slices.DeleteFunc(slices.Clone(second.all), func(w Wait) bool { return !before[w.edge()] })
	return second.Circles()
}

// Circles returns the circles of one answer. Nothing says that its waits stood at
// one time.
func (ws Waits) Circles() (all [][]Wait) {
	from := map[string][]Wait{}
	for _, w := range ws.all {
		from[w.Owner] = append(from[w.Owner], w)
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

// mostVigils is how many different questions are remembered, and mostTold how many
// circles.
const (
	mostVigils = 8
	mostTold   = 10 * mostDeadlocks
)

// A vigil compares the answers to a question with earlier ones to the same
// question.
type vigil struct {
	mu    sync.Mutex           // guards what follows
	asked []asked              // the latest last
	told  map[string]time.Time // when each circle was found last
}

type asked struct {
	filter

	waits Waits
}

// TellDeadlocks tells of the possible deadlocks in the answers to a question that
// were not found yet while they stood: see Options.PossibleDeadlock. Answers that
// come sooner than apart after those that they are compared with are not looked
// at. None are found if apart is negative.
func (k *Census) TellDeadlocks(q Question, waits Waits, apart time.Duration) {
	for _, circle := range k.deadlocks(q, waits, apart) {
		for i := range circle {
			circle[i].Name = k.server.Name(circle[i].Name)
		}
		k.possibleDeadlock(circle)
	}
}

func (k *Census) deadlocks(q Question, waits Waits, apart time.Duration) (fresh [][]Wait) {
	if apart < 0 {
		return nil
	}
	v := &k.vigil
	v.mu.Lock()
	defer v.mu.Unlock()
	f := filter{q.Glob, q.Names, q.Owners}
	i := slices.IndexFunc(v.asked, func(a asked) bool { return a.is(&f) })
	if i < 0 {
		if len(v.asked) == mostVigils {
			v.asked = slices.Delete(v.asked, 0, 1)
		}
		v.asked = append(v.asked, asked{f, waits})
		return nil
	}
	first := v.asked[i].waits
	if waits.At.Sub(first.At) <= apart {
		return nil
	}
	v.asked = append(slices.Delete(v.asked, i, i+1), asked{f, waits})
	if v.told == nil || len(v.told) > mostTold {
		v.told = map[string]time.Time{}
	}
	for _, circle := range Deadlocks(first, waits, apart) {
		key := keyOf(circle)
		if v.told[key].Before(first.At) {
			fresh = append(fresh, circle)
		}
		v.told[key] = waits.At
	}
	return fresh
}

// keyOf tells circles apart.
func keyOf(circle []Wait) string {
	owners := make([]string, len(circle))
	for i, w := range circle {
		owners[i] = w.Owner
	}
	slices.Sort(owners)
	return strings.Join(owners, " ")
}

// findWaits finds out who waits for whom, by what the answers say and Redis has.
func (answers *Answers) findWaits() {
	answers.Waits = Waits{At: answers.At, all: answers.waits()}
}

// waits returns who waits for whom, in order.
func (answers *Answers) waits() (all []Wait) {
	holders := answers.waitingHolders()
	sites := answers.holdSites()
	for x, c := range answers.claims {
		if !c.Waits {
			continue
		}
		for _, h := range holders[c.Name] {
			if c.Mode == wire.ModeRead && h.Mode == wire.ModeRead {
				continue // they share it
			}
			for _, under := range c.Under {
				if under != h.Owner && len(all) < mostWaits {
					all = append(all, Wait{
						Client: x.Client, By: x.Identity.String(), Owner: under, Name: c.Name, Holder: h.Owner,
						Waited: c.For, WaitSite: c.Site, HoldSite: sites[Edge{Name: c.Name, Holder: h.Owner}],
					})
				}
			}
		}
		if len(all) == mostWaits {
			break
		}
	}
	return sorted(all)
}

// holdSites returns where holders got what they have, by its name and their owner
// ids.
func (answers *Answers) holdSites() map[Edge]string {
	sites := map[Edge]string{}
	for _, c := range answers.claims {
		if !c.Waits && c.Lost == "" && c.Site != "" {
			sites[Edge{Name: c.Name, Holder: c.Owner}] = c.Site
		}
	}
	return sites
}

// waitingHolders returns of each object the holders that wait for something
// themselves. No other can be in a circle.
func (answers *Answers) waitingHolders() map[string][]inspect.Holder {
	waits := map[string]bool{}
	for _, c := range answers.claims {
		if c.Waits {
			for _, under := range c.Under {
				waits[under] = true
			}
		}
	}
	of := map[string][]inspect.Holder{}
	for _, o := range answers.Objects {
		for _, h := range o.Holders {
			if waits[h.Owner] {
				of[o.Name] = append(of[o.Name], h)
			}
		}
	}
	return of
}

// sorted returns each of some waits once, in order: of equal ones the longest.
func sorted(all []Wait) []Wait {
	slices.SortFunc(all, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Holder, y.Holder), cmp.Compare(x.Client, y.Client), cmp.Compare(y.Waited, x.Waited))
	})
	return slices.CompactFunc(all, func(x, y Wait) bool { return x.edge() == y.edge() })
}

// prune removes the waits of owners for which nobody waits, and those for owners
// that wait for nobody, until there are none: what stays is in circles, or between
// two.
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

// shortest returns the shortest circle through the first owner that is in one; nil
// if there is none. It removes the owners before that, which are in none.
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
