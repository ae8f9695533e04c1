package term

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// Options is what Locks need.
type Options struct {
	Server  *request.Server
	Clock   *renew.Clock
	Unseen  *handoff.UnseenPauses
	Dropped *holdctx.Dropped
	Twins   *nameclash.Names

	ID         string        // of the client: the first part of its owner ids
	ServerName string        // of the Redis, where several locks of one name are acquired together
	Watchdog   time.Duration // the lease of a hold for which none was given
	MaxHold    time.Duration // the longest that the watchdog keeps a hold; 0: no bound
	SlowWait   time.Duration // when a wait for this process itself is told of; negative: never
	HandOff    bool          // whether a lock may pass between goroutines
	Agreed

	Events Events
}

// Agreed is what all who use a lock have to agree on.
type Agreed struct {
	Codec     string        // of the clients of Redisson
	TokenTTL  time.Duration // for how long tokens are remembered; 0: for ever
	Allowance time.Duration // what a waiter in a queue of Redisson is given, in whole milliseconds
	Skew      time.Duration // by how much Redisson's clocks may differ
}

// Events are told of what happens.
type Events struct {
	Lost          func(claim.Loss)
	ReleaseFailed func(name, owner string, err error)
	SlowWait      func(name string, waited time.Duration, waiting, holding callsite.Site)
	Requeued      func(name, owner string, waited time.Duration)
	Dropped       func(name string, at callsite.Site)
	Refused       func(owner string) // a caller waits on for a lock that the owner has; it must not block
	// Inquire is told that the wait of a caller is about to end, for a lock with that
	// key which the owner was last seen with. It must not block.
	Inquire func(key, owner string)
	First   func() // the client makes its first owner id; it must not block
}

// ErrReentry says that an acquisition could never succeed, because the caller
// holds what it would wait for.
var ErrReentry = errors.New("redlatch: lock cannot be re-entered")

// Params say how a caller wants a lock.
type Params struct {
	Wish // that of the lock; callers leave it out

	Try    bool          // the caller does not wait
	Until  time.Time     // until when it waits; zero: as long as its context lasts
	Hasty  bool          // the caller goes on when Until is over: that is not the end of its waiting
	Since  time.Time     // when it began to wait; zero: now
	Member bool          // the hold is one of several: not passed on in this process
	At     callsite.Site // where it was asked for

	Refused func(why error) (waits bool) // of one that waits for others: see wait.Waiter; nil: it waits for itself
	// Asks is what the server refuses to the callers of the scope that wait for this
	// one. While this one waits itself it asks nothing. So where a wait begins, what
	// has become of its requests is over.
	Asks *request.Refusals

	scope *Scope // of WithOwner, if there is one
}
