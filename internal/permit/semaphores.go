package permit

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// Semaphores are what a client has to do with semaphores: the queues of its
// callers, and its permits that have leases.
type Semaphores struct {
	Options

	counted   countedQueues
	sections  sections
	expirable expirableQueues
	live      livePermits
	givers    *queue.Gather[*giveBack]
	kind      *renew.Kind
}

// Options say what semaphores work with. All are needed, but for MaxHold.
type Options struct {
	Server  *request.Server
	Client  string // its UUID, for its sessions
	Clock   *renew.Clock
	Dropped *holdctx.Dropped
	Unseen  *handoff.UnseenPauses

	Local   bool          // what one goroutine releases goes to the next one of the process
	MaxHold time.Duration // ends a permit that the watchdog keeps; 0: nothing does
	Skew    time.Duration // by how much clocks of others may be wrong

	Events Events
}

// Events report what happens. They do not block.
type Events struct {
	// Lost says that a permit was lost.
	Lost func(claim.Loss)
	// ReleaseFailed says that a release could not be confirmed; id is empty for
	// permits that are only counted.
	ReleaseFailed func(name, id string, err error)
	// Dropped says that a permit was garbage collected that had not been released.
	Dropped func(name string, at callsite.Site)
}

// New returns the semaphores of a client.
func New(o Options) *Semaphores {
	all := &Semaphores{Options: o, givers: queue.NewGather[*giveBack](queue.MostAnswered, o.Server.Go)}
	all.kind = &renew.Kind{Renew: all.renew}
	return all
}

// Sections returns how many there are.
func (all *Semaphores) Sections() int { return all.sections.count() }

// AwaitReleases waits until all permits that have leases are released, all
// sections have ended, and what else was given back is in Redis. It fails if ctx
// ends, or the client is closed. Nothing is acquired any longer.
func (all *Semaphores) AwaitReleases(ctx context.Context) error {
	return request.AwaitAll(ctx, all.Server.Over, all.live.none, all.sections.none, all.counted.all.Idle, all.expirable.all.Idle)
}

// Close ends all subscriptions. The server was closed before, which ends the
// waiting of all callers, and the clock, whose holders get a Close of their own.
func (all *Semaphores) Close() { all.counted.close() }

// notSet is the error of those who acquire of a semaphore that nobody has set up.
// by is what returns such a semaphore.
func notSet(name, by string) error {
	return fmt.Errorf("%w: nobody has set how many permits semaphore %q has, or it was removed; call TrySetPermits, or give %s the number", fact.ErrUninitialized, name, by)
}
