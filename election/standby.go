package election

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/election"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
)

// An Option says how a candidate stands: see Standby.
type Option interface {
	forCandidate(c *Candidate)
}

type standby time.Duration

// Standby has a candidate let others go first: it campaigns when nobody has led
// for d. So of the candidates that live, those with a shorter Standby, or none,
// have precedence. You say what makes one better, and by how much: a version, a
// zone, a priority. 5 seconds suit most. With less than 3 seconds chance may
// decide, because a candidate that waits may notice 2.4 seconds late that a leader
// has died. 0 is no standby. Every call of a candidate with a negative d fails
// (redlatch.ErrInvalid).
//
// Not promised: an order. Each candidate measures d by its own clock, from when it
// first sees that nobody leads. A better candidate that is paused, or cannot reach
// the server, loses its precedence. And one that comes later ends no term: to hand
// back, the leader resigns. The example of Candidate.Resign shows how it finds
// out.
//
//   - First start: nobody leads for d, unless a better candidate comes.
//   - A leader resigns, ends or dies: a better candidate leads as if there were no
//     Standby. Without one, this one leads d later.
//   - Only candidates with Standby are left: one of them leads after its d,
//     perhaps the one that has just led.
//   - An outage, or a closed connection, may begin d anew.
//
// While somebody leads, a standby costs what waiting costs: one request in about
// two seconds. It is no waiter in redlatch.Stats, and one of
// admin.Participants.Others. A request of it that fails counts as an acquisition
// that failed. Run also ends with an error if a hash that is no lock has the name;
// without Standby it waits until that is gone.
func Standby(d time.Duration) Option { return standby(d) }

func (d standby) forCandidate(c *Candidate) {
	if d < 0 {
		c.refuse(invalid.Errorf("redlatch: a standby of %v; it must not be negative, and 0 is none", time.Duration(d)))
	}
	c.standby = time.Duration(d)
}

// look asks who leads, for a candidate in standby. One that cannot is as one that
// could not campaign, to those who observe.
func (c *Candidate) look(ctx context.Context) (election.Seat, error) {
	info, err := election.Seat{}, c.engines.Usable(ctx, c.lock.Err)
	if err == nil {
		info, err = c.seat(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return info, err
	}
	of := hooks.Acquisition{Name: c.Name(), Kind: string(redlatch.KindFenced)}
	_, a := c.engines.Begin(ctx, of, true)
	a.Counted(false, err)
	return info, err
}

func (c *Candidate) seat(ctx context.Context) (election.Seat, error) {
	info, err := c.engines.Inspector.Lock(ctx, c.lock.Key, string(redlatch.KindFenced))
	return election.Seat{Led: info.Held(), Term: info.Token, TTL: info.TTL}, err
}
