package renew

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// MaxBatch is how many leases a Kind is asked to renew at a time.
const MaxBatch = 100

// A Result is what became of one lease's renewal.
type Result uint8

// The results of a renewal.
const (
	Failed    Result = iota // nobody knows, or asked: try again soon
	Confirmed               // the server has extended it
	Gone                    // the server says that it is no longer ours
)

// A Kind knows how leases of one kind are renewed.
type Kind struct {
	// Renew asks the server to extend every lease of the batch and sets each Lease's
	// Result; Lease.Fail does that, and keeps why. It may block for as long as one
	// request may take.
	Renew func(batch []*Lease)
}

// A Holder is told what becomes of its lease. Its methods must not block. Gone and
// Expired are called from the clock's goroutines, without any lock held.
type Holder interface {
	// Node names the node that is to be asked about the lease, as far as that is
	// known. The clock calls it whenever it needs the name, with its mutex locked.
	Node() string
	// Expired: the window is over, or Until has passed.
	Expired()
	// Gone: the server says that the lease is no longer ours.
	Gone()
}

// MaxLease is the longest lease: so long is as good as for ever.
const MaxLease = 10 * 365 * 24 * time.Hour

// A Lease is one entry of a Clock. Its owner sets the exported fields before
// Add and does not change them until after Remove, except through methods.
type Lease struct {
	Window
	Kind   *Kind // nil: it is never asked about
	Holder Holder
	Group  int           // a hash slot: see Clock.Apart
	Length time.Duration // what each renewal asks for
	Until  time.Time     // end of all trust, however often renewed; zero: none

	// For Kind.Renew: Ask is how long to extend the lease for, 0 to ask only
	// whether it is still ours; it sets Result.
	Ask    time.Duration
	Result Result

	place   int // in the deadlines, plus one; 0: not there; guarded as these are
	failure atomic.Pointer[Failure]
	renewal
}

// A Failure is why renewals have failed. Those of one batch share it.
type Failure struct {
	Err error
	At  time.Time // when that was known
}

// Fail is for Kind.Renew: it sets Failed as the Result, and keeps why.
func (l *Lease) Fail(f *Failure) {
	l.Result = Failed
	l.failure.Store(f)
}

// Failure returns why the latest renewal failed that has failed since the server
// confirmed anything; nil if there is none.
func (l *Lease) Failure() *Failure {
	if f := l.failure.Load(); f != nil && f.At.After(l.Confirmed()) {
		return f
	}
	return nil
}

// A renewal is where a lease is on its way from one renewal to the next. Clock.mu
// guards it.
type renewal struct {
	renewing bool          // whether it is to be renewed at all
	bunch    *bunch        // that it is in; nil: the clock has forgotten it
	due      bool          // in its node, or with a sender
	doubted  bool          // since it was last taken to be asked about
	retry    time.Duration // the last back-off; 0: the last renewal did not fail
	retryAt  time.Time     // when it ends
	renewed  time.Time     // when the last renewal that was confirmed was sent
}

// afterlife is how long a lease that is over may stay in its bunch.
const afterlife = 10 * time.Second

// over says whether the lease can be trusted no more.
func (l *Lease) over(now time.Time) bool {
	return l.Left(now) <= 0 || (!l.Until.IsZero() && !now.Before(l.Until))
}

// Trusted returns until when the lease can be trusted if no clock is stepped until
// then, and nothing is confirmed.
func (l *Lease) Trusted() time.Time {
	end := l.End()
	if !l.Until.IsZero() && l.Until.Before(end) {
		return l.Until
	}
	return end
}

// ends returns when that will be, unless it is confirmed meanwhile.
func (l *Lease) ends(now time.Time) time.Time {
	at := now.Add(l.Left(now))
	if !l.Until.IsZero() && l.Until.Before(at) {
		return l.Until
	}
	return at
}

// rest returns for how long the clock has nothing to do with l, and for how much
// of that l may go along with others, which is half of the rest between two
// renewals. A lease that is over is only to be forgotten, if its holder has not
// removed it. That is not urgent: otherwise the clock would look through the whole
// bunch at each end of a lease.
func (l *Lease) rest(now time.Time) (left, slack time.Duration) {
	left = l.ends(now).Sub(now) + afterlife
	switch {
	case l.due:
	case l.retry > 0 && l.bunch.node.heard.After(l.retryAt.Add(-l.retry)):
		left = 0
	case l.retry > 0:
		left = min(left, l.retryAt.Sub(now))
	case l.renewing:
		// A third of the lease that the window rests on, but of no more than a renewal
		// asks for. What was confirmed for less meanwhile does not put that off.
		since, lease := l.rests()
		if l.renewed.After(since) { // but did not make the window longer
			since = l.renewed
		}
		third := min(lease, l.Length) / 3
		left, slack = min(left, third-Elapsed(since, now)), third/2
	}
	return left, slack
}

// backoff returns the next pause after a failed renewal: 50 ms to 1 s,
// doubled, with jitter.
func backoff(last time.Duration) time.Duration {
	next := min(max(2*last, 100*time.Millisecond), time.Second)
	return next/2 + rand.N(next/2) //nolint:gosec // jitter needs no secrets
}
