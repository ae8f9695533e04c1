// Package hooks tells observers what happens to a client: see [Set].
package hooks

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
)

// An Observer is told what happens to a client. Package observe turns that into
// the words of its users.
type Observer interface {
	Acquirer
	Reporter
}

// An Acquirer is told of acquisitions, by the goroutine that acquires or releases,
// several at a time.
type Acquirer interface {
	// AcquireStart returns the context that the acquisition goes on with.
	AcquireStart(ctx context.Context, a *Acquisition) context.Context
	AcquireEnd(ctx context.Context, a *Acquisition, e AcquireEnd)
	HoldEnd(ctx context.Context, a *Acquisition, e HoldEnd)
}

// A Reporter is told of the other events, one at a time, in the order in which
// they happened.
type Reporter interface {
	// Lost is told for how long it was held, and how much too late the loss was
	// noticed.
	Lost(loss *claim.Loss, held, late time.Duration)
	ReleaseFailed(name, owner string, err error)
	RenewFailed(holds int, err error)
	SlowWait(name string, waited time.Duration, waiting, holding string)
	PossibleDeadlock(circle []census.Wait)
	Requeued(name, owner string, waited time.Duration)
	NotAcknowledged(name string, err error)
	Skipped(n int)
	Dropped(name, site string)
}

// An Acquisition is a call that may wait for something.
type Acquisition struct {
	Name, Kind, Mode string
	N                int    // how many permits are wanted; 0 if it is not about permits
	Owner            string // of what was acquired, when that is known
}

// An AcquireEnd is how an acquisition went.
type AcquireEnd struct {
	Waited  time.Duration
	Outcome Outcome
	Err     error
	Count   int
}

// An Outcome is how an acquisition went, in the words of package observe, which
// says what they mean.
type Outcome string

// The outcomes of an acquisition.
const (
	Acquired    Outcome = "acquired"
	HandedOff   Outcome = "handed_off"
	Reentered   Outcome = "reentered"
	Busy        Outcome = "busy"
	TimedOut    Outcome = "timed_out"
	Cancelled   Outcome = "cancelled"
	Broken      Outcome = "broken"
	Unavailable Outcome = "unavailable"
	Refused     Outcome = "refused"
	Closed      Outcome = "closed"
)

// A HoldEnd is how what was acquired ended.
type HoldEnd struct {
	Held   time.Duration
	Reason holdctx.End
	Err    error
}

// Needs say what has to be done for an observer, so that nobody pays for what
// nobody wants.
type Needs struct {
	Acquisitions bool // it is told of these
	HoldEnds     bool // and of the ends of holds
	Sites        bool // it is told the lines of the program that acquire
}

// A Set is the observers of a client. It is safe for concurrent use. While there
// is none, an acquisition reads two flags and pays nothing more.
type Set struct {
	Acquisitions atomic.Bool // somebody is told of them; only the Set changes it
	Sites        atomic.Bool // somebody is told of call sites; only the Set changes it

	log  bool // wants call sites as well
	list atomic.Pointer[List]
	mu   sync.Mutex // of those who add and remove
}

// Start says whether the log wants call sites. It is called before all else.
func (s *Set) Start(log bool) {
	s.log = log
	s.set(nil)
}

// Add adds an observer, for what begins from now on. After remove no further call
// of it begins; one that has begun goes on.
func (s *Set) Add(o Observer, needs Needs) (remove func()) {
	x := &added{Observer: o, needs: needs}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(append(slices.Clone(s.Now()), x))
	return func() {
		x.gone.Store(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.set(slices.DeleteFunc(slices.Clone(s.Now()), func(y *added) bool { return x == y }))
	}
}

func (s *Set) set(l List) {
	acquisitions, sites := false, s.log
	for _, x := range l {
		acquisitions = acquisitions || x.needs.Acquisitions
		sites = sites || x.needs.Sites
	}
	s.list.Store(&l)
	s.Acquisitions.Store(acquisitions)
	s.Sites.Store(sites)
}

// Now returns the observers that there are.
func (s *Set) Now() List { return *s.list.Load() }

// A List is the observers that there were at a moment, in the order in which they
// were added. It never changes: an observer that is told how something begins is
// told how it ends, unless it was removed.
type List []*added

type added struct {
	Observer

	needs Needs
	gone  atomic.Bool
}

// HoldEnds says whether any of them is told of the ends of holds.
func (l List) HoldEnds() bool {
	return slices.ContainsFunc(l, func(x *added) bool { return x.needs.HoldEnds })
}

// Each calls tell with each of them that has not been removed.
func (l List) Each(tell func(r Reporter)) {
	for _, x := range l {
		if !x.gone.Load() {
			tell(x)
		}
	}
}

// AcquireStart has each of them add to the context that the one before has
// returned.
func (l List) AcquireStart(ctx context.Context, a *Acquisition) context.Context {
	for _, x := range l {
		if !x.gone.Load() {
			ctx = x.AcquireStart(ctx, a)
		}
	}
	return ctx
}

// AcquireEnd tells them, the last one first, as deferred functions are called.
func (l List) AcquireEnd(ctx context.Context, a *Acquisition, e AcquireEnd) {
	for _, x := range slices.Backward(l) {
		if !x.gone.Load() {
			x.AcquireEnd(ctx, a, e)
		}
	}
}

// HoldEnd tells them, the last one first.
func (l List) HoldEnd(ctx context.Context, a *Acquisition, e HoldEnd) {
	for _, x := range slices.Backward(l) {
		if !x.gone.Load() {
			x.HoldEnd(ctx, a, e)
		}
	}
}
