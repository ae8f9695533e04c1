package claim

import (
	"cmp"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
)

// The kinds of what is claimed, as users read them.
const (
	Lock        = "lock"
	Fenced      = "fenced lock"
	Fair        = "fair lock"
	ReadWrite   = "read-write lock"
	Group       = "group lock"
	Semaphore   = "semaphore"
	Expirable   = "expirable semaphore"
	Latch       = "latch"
	RateLimiter = "rate limiter"
	Barrier     = "barrier"
)

// MostNote is how many bytes a note has at most.
const MostNote = 200

// A Claim is something that a caller of this client holds, or waits for, or has
// lost.
type Claim struct {
	Name    string        // of the lock or synchronizer
	Kind    string        // Lock, ...
	Mode    string        // of a read-write lock: "read" or "write"; else empty
	Owner   string        // owner id of a hold, id of a permit; empty for a waiter that has none
	Since   time.Time     // when it was acquired, or the wait began
	Until   time.Time     // of a hold: when its trust window ends unless it is renewed; of a waiter: when its wait ends; zero: open
	Renewed bool          // the watchdog keeps it
	Token   int64         // fencing token, 0 if none
	Count   int           // how often the owner has entered, as Redis shows it, or permits wanted
	Site    callsite.Site // where it was asked for; 0 if not known
	Note    string        // of a hold: what its holder says that it is for
	Waits   bool          // it is a wait, not a hold
	Listens bool          // of a hold: its client still listens to the releases, as if it waited
	Lost    string        // how it was lost, if it is a hold that was, at Since; else empty
	Under   []string      // of a waiter: owner ids of the live holds that its context descends from (edges of a wait graph); nil if none or not known
}

// Rest returns for how many others the claim stands, of which no more is told than
// what they hold or wait for: Count of them. It is 0 for a claim of one caller,
// which has a Since.
func (c Claim) Rest() int {
	if c.Since.IsZero() {
		return c.Count
	}
	return 0
}

// Callers returns for how many callers the claim stands.
func (c Claim) Callers() int { return max(1, c.Rest()) }

// A Yield is told of claims until it returns false. A waiter has its context,
// which can be asked for Under; a hold has none.
type Yield = func(c Claim, of context.Context) bool

// A Wait is what a caller leaves where it waits, for those who ask. Whatever
// guards the place guards it.
type Wait struct {
	Ctx          context.Context //nolint:containedctx // of the caller
	Since, Until time.Time
	Site         callsite.Site
	Owner        string // as which it waits, if the Claim has none
}

// Most is how many claims a List has.
const Most = 1000

// A List is claims on the same thing, copied while that was locked. Others get
// them when it is not, so that whoever asks delays nobody by what he does with the
// answer.
type List struct {
	found []found
	rest  Claim
}

type found struct {
	Claim
	of context.Context //nolint:containedctx // of the waiter
}

// Hold adds a hold.
func (l *List) Hold(c Claim) { l.add(found{Claim: c}) }

// Wait adds a wait for what c says, and returns false if those behind it are only
// to be counted: see Others.
func (l *List) Wait(c Claim, w *Wait) (more bool) {
	c.Since, c.Until, c.Site, c.Waits = w.Since, w.Until, w.Site, true
	c.Owner = cmp.Or(c.Owner, w.Owner)
	l.add(found{c, w.Ctx})
	return len(l.found) < Most
}

// Others adds n callers that are like the last.
func (l *List) Others(n int) {
	if n > 0 && len(l.found) > 0 {
		l.more(l.found[len(l.found)-1].Claim, n)
	}
}

func (l *List) add(f found) {
	if len(l.found) == Most {
		l.more(f.Claim, 1)
		return
	}
	l.found = append(l.found, f)
}

func (l *List) more(like Claim, n int) {
	l.rest = Claim{Name: like.Name, Kind: like.Kind, Mode: like.Mode, Waits: like.Waits, Count: l.rest.Count + n}
}

// Tell tells of all and empties the list. It returns false if yield has.
func (l *List) Tell(yield Yield) (more bool) {
	all, rest := l.found, l.rest
	l.found, l.rest = nil, Claim{}
	for _, f := range all {
		if !yield(f.Claim, f.of) {
			return false
		}
	}
	clear(all)
	l.found = all[:0]
	return rest.Count == 0 || yield(rest, nil)
}
