package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	mostPoints = 120    // of a history of one name, and listings for which it is kept when it is not listed any more
	mostNotes  = 200    // the same
	mostNames  = 5000   // of which a history is kept
	mostLosses = 50_000 // that are remembered, so as not to count them again
)

// A Point is how a lock stood when it was listed.
type Point struct {
	At      time.Time
	Waiters int           // as far as they are known
	Longest time.Duration // for how long the one has waited that has waited longest, of those who say it
	Held    time.Duration // for how long the one has held it that has held it longest, of those who say it
}

// A Note is something that happened between two listings.
type Note struct {
	At   time.Time // when it was seen
	Text string
}

// AtText is when it was seen, for somebody who reads it now: with the day if that may not be clear.
func (n *Note) AtText(now time.Time) string {
	if now.Sub(n.At) > 12*time.Hour {
		return n.At.Format(time.DateTime)
	}
	return n.At.Format(time.TimeOnly)
}

// A History is what was seen of one lock in one listing after another. What happened between two
// of them is not known.
type History struct {
	Points []Point // the latest last
	Notes  []Note  // the latest last
	Losses int     // how many were told

	holders string // who held it last
	missing int    // in how many listings, one after another, it was not
}

// Histories are those of all that has been listed.
type Histories struct {
	by   map[string]*History
	lost map[string]bool // the losses that were counted
}

// Of returns what was seen of a name; nil if it never was.
func (hs *Histories) Of(name string) *History { return hs.by[name] }

// Losses returns how many losses were told of a name.
func (hs *Histories) Losses(name string) int {
	if h := hs.by[name]; h != nil {
		return h.Losses
	}
	return 0
}

// Totals returns how many wait for some locks, as far as they are known, and how many losses were told of them.
func (hs *Histories) Totals(locks []Lock) (waiters, losses int) {
	for i := range locks {
		n, _ := locks[i].Waiters()
		waiters += n
		losses += hs.Losses(locks[i].Name)
	}
	return waiters, losses
}

// Add adds a listing.
func (hs *Histories) Add(l *Listing) {
	if hs.by == nil {
		hs.by, hs.lost = map[string]*History{}, map[string]bool{}
	}
	listed := map[string]bool{}
	for i := range l.Locks {
		lock := &l.Locks[i]
		if i+1 < len(l.Locks) && l.Locks[i+1].Name == lock.Name {
			continue // a barrier beside a lock of its name
		}
		listed[lock.Name] = true
		h := hs.by[lock.Name]
		if h == nil {
			if len(hs.by) == mostNames {
				continue
			}
			h = &History{}
			hs.by[lock.Name] = h
		}
		h.add(l.At, lock)
		hs.addLosses(h, l.At, lock)
		h.missing = 0
	}
	for name, h := range hs.by {
		if listed[name] {
			continue
		}
		h.add(l.At, &Lock{Name: name})
		if h.missing++; h.missing == mostPoints {
			delete(hs.by, name)
		}
	}
}

// add adds how a lock stood.
func (h *History) add(at time.Time, l *Lock) {
	waiters, _ := l.Waiters()
	p := Point{At: at, Waiters: waiters, Longest: l.LongestWait(), Held: l.LongestHold()}
	h.Points = latest(append(h.Points, p), mostPoints)
	if holders := l.Owners(); holders != h.holders {
		text := "free"
		if holders != "" {
			text = "held by " + l.HoldersText()
		}
		h.note(at, text)
		h.holders = holders
	}
}

// addLosses adds what clients say they have lost. Holds of one owner that are lost together, as
// those of readers, count as one.
func (hs *Histories) addLosses(h *History, at time.Time, l *Lock) {
	for i := range l.Lost {
		c := &l.Lost[i]
		key := l.Name + " " + c.Client + " " + c.Owner
		if hs.lost[key] {
			continue
		}
		if len(hs.lost) == mostLosses {
			clear(hs.lost)
		}
		hs.lost[key] = true
		h.Losses++
		h.note(at.Add(-c.since()), "lost by "+c.Who()+": "+c.Reason)
	}
}

// Owners tells holders apart.
func (l *Lock) Owners() string {
	owners := make([]string, len(l.Holders))
	for i := range l.Holders {
		owners[i] = l.Holders[i].Owner
	}
	slices.Sort(owners)
	return strings.Join(owners, " ")
}

func (h *History) note(at time.Time, text string) {
	h.Notes = append(h.Notes, Note{at, text})
	slices.SortStableFunc(h.Notes, func(x, y Note) int { return x.At.Compare(y.At) })
	h.Notes = latest(h.Notes, mostNotes)
}

// latest is the end of a list.
func latest[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Delete(all, 0, len(all)-most)
}

// An Order is one of locks.
type Order string

// The orders of locks. Those that are equal stand by name.
const (
	ByWaiters Order = "waiters"
	ByWait    Order = "wait" // the longest
	ByLosses  Order = "losses"
	ByName    Order = "name"
)

// Orders are all of them, the most useful first.
var Orders = []Order{ByWaiters, ByWait, ByLosses, ByName}

// Sort sorts locks, the worst first.
func (hs *Histories) Sort(locks []Lock, by Order) {
	slices.SortStableFunc(locks, func(x, y Lock) int {
		worse := 0
		switch by {
		case ByWaiters:
			n, _ := x.Waiters()
			m, _ := y.Waiters()
			worse = cmp.Compare(m, n)
		case ByWait:
			worse = cmp.Compare(y.LongestWait(), x.LongestWait())
		case ByLosses:
			worse = cmp.Compare(hs.Losses(y.Name), hs.Losses(x.Name))
		case ByName:
		}
		return cmp.Or(worse, cmp.Compare(x.Name, y.Name))
	})
}
