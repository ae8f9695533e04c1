package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/claim"
)

// Stats say what a Client has to do at a moment, as far as it knows without asking
// Redis.
type Stats struct {
	Holds   int // live holds of locks; each re-entry counts, and each member of several locks; detached ones do not
	Permits int // live permits of expirable semaphores; detached ones do not count
	Waiters int // callers that wait: see Client.Stats

	// RenewalsDue is how many holds and permits are to be renewed now, or are tried
	// again because that has failed. RenewalLag is how much of its lease the one that
	// is nearest to its end has used since the server last confirmed it: 0 if none is
	// due, a little over 1/3 at most while all is well. At 1 it is lost.
	RenewalsDue int
	RenewalLag  float64

	// RenewalsFailed and Lost only rise, from 0 when the client began. The first
	// counts each hold or permit whose renewal has failed, and once more each time
	// that it fails again (observe.Hooks.RenewFailed); the second each hold or permit
	// that was lost (observe.Hooks.Lost).
	RenewalsFailed uint64
	Lost           uint64
}

// Stats counts what the client holds, what its callers wait for, and how its
// renewals do. It sends no request, and also works after Close.
//
// A caller waits from when it has been refused, or stands in a line with others;
// callers that want to read, and those of synchronizers, always do until they are
// answered. Calls that only try do not wait.
//
// It takes about a millisecond for a thousand locks that are held or waited for,
// and delays no caller by more than a few hundred take. What is acquired, released
// or passed on meanwhile is counted once, twice or not at all.
func (c *Client) Stats() Stats {
	stats := Stats{RenewalsFailed: c.report.failures.Load(), Lost: c.report.losses.Load()}
	stats.RenewalsDue, stats.RenewalLag = c.clock.Due()
	c.eachClaim(func(found claim.Claim, _ context.Context) bool {
		switch {
		case found.Waits:
			stats.Waiters += found.Callers()
		case found.Kind == claim.Expirable:
			stats.Permits += found.Callers()
		default:
			stats.Holds += found.Callers()
		}
		return true
	})
	return stats
}

// Plus returns the Stats of two clients as those of one: the numbers are added,
// and of RenewalLag it has the higher.
func (stats Stats) Plus(o Stats) Stats {
	return Stats{
		Holds: stats.Holds + o.Holds, Permits: stats.Permits + o.Permits, Waiters: stats.Waiters + o.Waiters,
		RenewalsDue: stats.RenewalsDue + o.RenewalsDue, RenewalLag: max(stats.RenewalLag, o.RenewalLag),
		RenewalsFailed: stats.RenewalsFailed + o.RenewalsFailed, Lost: stats.Lost + o.Lost,
	}
}

// allClaims yields what has been lost lately, and what eachClaim does.
func (c *Client) allClaims(yield claim.Yield) {
	if c.report.lately.Tell(yield) {
		c.eachClaim(yield)
	}
}

// eachClaim yields what callers hold and wait for, as it is when it is asked, and
// the contexts of those who wait.
func (c *Client) eachClaim(yield claim.Yield) {
	for _, claims := range []func(claim.Yield){c.engines.Locks.Claims, c.engines.Semaphores.Claims, c.engines.Rates.Claims, c.engines.Polls.Claims} {
		for found, of := range claims {
			if !yield(found, of) {
				return
			}
		}
	}
}
