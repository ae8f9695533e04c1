package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

const (
	mostPoints = 120           // of a history of one name, and listings for which it is kept when it is not listed any more
	mostNotes  = 200           // the same
	mostNames  = 5000          // of which a history is kept
	mostLosses = 50_000        // that are remembered, so as not to count them again
	lossTold   = 2 * time.Hour // for less than which clients tell of a loss, which is then forgotten if there are too many
)

// lossReasons are those that there are. What a client says otherwise is
// otherReason.
var lossReasons = []redlatch.LossReason{redlatch.LostExpired, redlatch.LostGone, redlatch.LostRevoked, redlatch.LostMaxHold, redlatch.LostLease}

const otherReason redlatch.LossReason = "other"

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

// AtText is when it was seen, for somebody who reads it now: with the day if that
// may not be clear.
func (n *Note) AtText(now time.Time) string {
	if now.Sub(n.At) > 12*time.Hour {
		return n.At.Format(time.DateTime)
	}
	return n.At.Format(time.TimeOnly)
}

// A History is what was seen of one lock in one listing after another. What
// happened between two of them is not known.
type History struct {
	Points []Point // the latest last
	Notes  []Note  // the latest last
	Losses int     // how many were told

	holders string // who held it last
	missing int    // in how many listings, one after another, it was not
}

// Histories are those of all that has been listed.
type Histories struct {
	// Since is when to begin to count losses by their reasons; what was lost before is
	// only noted.
	Since time.Time

	by     map[string]*History
	lost   map[string]time.Time // the losses that were counted, and when that was
	lostBy map[redlatch.LossReason]int
}

// Of returns what was seen of a name; nil if it never was.
func (hs *Histories) Of(name string) *History { return hs.by[name] }

// Losses returns how many losses were told of a name.
func (hs *Histories) Losses(name string) int {
	if history := hs.by[name]; history != nil {
		return history.Losses
	}
	return 0
}

// Totals returns how many wait for some locks, as far as they are known, and how
// many losses were told of them.
func (hs *Histories) Totals(locks []Lock) (waiters, losses int) {
	for i := range locks {
		n, _ := locks[i].Waiters()
		waiters += n
		losses += hs.Losses(locks[i].Name)
	}
	return waiters, losses
}

// Add adds a listing.
func (hs *Histories) Add(listing *Listing) {
	if hs.by == nil {
		hs.by, hs.lost, hs.lostBy = map[string]*History{}, map[string]time.Time{}, map[redlatch.LossReason]int{}
	}
	if len(hs.lost) == mostLosses {
		maps.DeleteFunc(hs.lost, func(_ string, counted time.Time) bool { return listing.At.Sub(counted) > lossTold })
	}
	listed := map[string]bool{}
	for i := range listing.Locks {
		lock := &listing.Locks[i]
		if i+1 < len(listing.Locks) && listing.Locks[i+1].Name == lock.Name {
			continue // a barrier beside a lock of its name
		}
		listed[lock.Name] = true
		history := hs.by[lock.Name]
		if history == nil && len(hs.by) < mostNames {
			history = &History{}
			hs.by[lock.Name] = history
		}
		if history != nil {
			history.add(listing.At, lock)
			history.missing = 0
		}
		hs.addLosses(history, listing.At, lock)
	}
	for name, history := range hs.by {
		if listed[name] {
			continue
		}
		history.add(listing.At, &Lock{Name: name})
		if history.missing++; history.missing == mostPoints {
			delete(hs.by, name)
		}
	}
}

// add adds how a lock stood.
func (history *History) add(at time.Time, l *Lock) {
	waiters, _ := l.Waiters()
	p := Point{At: at, Waiters: waiters, Longest: l.LongestWait(), Held: l.LongestHold()}
	history.Points = latest(append(history.Points, p), mostPoints)
	if holders := l.Owners(); holders != history.holders {
		text := "free"
		if holders != "" {
			text = "held by " + l.HoldersText()
		}
		history.note(at, text)
		history.holders = holders
	}
}

// addLosses adds what clients say they have lost, to a history if there is one.
// Holds of one owner that are lost together, as those of readers, count as one.
func (hs *Histories) addLosses(history *History, at time.Time, l *Lock) {
	for i := range l.Lost {
		c := &l.Lost[i]
		key := c.lossOf(l.Name)
		if _, counted := hs.lost[key]; counted || len(hs.lost) == mostLosses {
			continue
		}
		hs.lost[key] = at
		lost := at.Add(-c.since())
		if !lost.Before(hs.Since) {
			reason := redlatch.LossReason(c.Reason)
			if !slices.Contains(lossReasons, reason) {
				reason = otherReason
			}
			hs.lostBy[reason]++
		}
		if history != nil {
			history.Losses++
			history.note(lost, "lost by "+c.Who()+": "+c.Reason)
		}
	}
}

// lossOf tells losses apart.
func (c *Claim) lossOf(name string) string { return name + " " + c.Client + " " + c.Owner }

// Owners tells holders apart.
func (l *Lock) Owners() string {
	owners := make([]string, len(l.Holders))
	for i := range l.Holders {
		owners[i] = l.Holders[i].Owner
	}
	slices.Sort(owners)
	return strings.Join(owners, " ")
}

func (history *History) note(at time.Time, text string) {
	history.Notes = append(history.Notes, Note{at, text})
	slices.SortStableFunc(history.Notes, func(x, y Note) int { return x.At.Compare(y.At) })
	history.Notes = latest(history.Notes, mostNotes)
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
