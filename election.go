package redlatch

import (
	"context"
	"errors"
	"iter"

	"github.com/redlatch/redlatch/internal/election"
	"github.com/redlatch/redlatch/internal/wire"
)

// ErrResigned is the cause with which a leader's context ends when its client was told to Resign.
var ErrResigned = election.ErrResigned

// An Election is the name of an election, with the words to stand for it: of all
// processes that do, one leads at a time. It is immutable, cheap, and may be
// shared, copied and forgotten.
//
// It does not promise that nobody acts as leader any more when the next one begins: a leader
// can be paused after its last look at its context, and Redis can forget the leader in a failover.
// What has to be safe from that checks the term, which is a fencing token: see Hold.Token and package fence.
//
// In Redis it is a FencedLock of this name, whose token is the number of the term. The first number is that of the
// microseconds since 1970 by the server's clock, or one more than the lock's last token; each term adds 1. Redisson has no
// election; a Java service that acquires the RFencedLock of this name leads.
//
// The numbers of terms rise, also when the server has lost its data. There are three exceptions: the server's clock was
// set back; a Java service or a FencedLock has acquired the lock since the loss, and begun with 1; or a replica has taken over
// that missed the last term, whose number the next one gets once more.
type Election struct {
	c    *Client
	lock *Lock
}

// Election returns the election with this name.
func (c *Client) Election(name string) *Election {
	return &Election{c: c, lock: c.lock(KindFenced, c.locks.Numbered(c.server.Key(name)))}
}

// Name returns the election's name.
func (e *Election) Name() string { return e.lock.Name() }

// Run stands for the election for as long as ctx lasts: it waits until it leads, calls lead,
// gives the leadership up when lead has returned, and campaigns again after a pause of a second, which
// is longer, up to half a minute, while terms are shorter than a minute. While the server cannot be
// reached it tries again and again, with pauses of about a second: when the server is back, and the last lease there has
// ended, somebody leads within some two seconds.
//
// The context of lead ends when the term does: when it is lost (the cause is a *LostError), when
// ctx ends, when somebody calls Resign (ErrResigned), or in Client.Shutdown (ErrClosed). lead must return
// then: the leadership is given up only when it has, so that the next leader follows within a round trip. If the
// process dies, the next one leads when the lease has ended (Config.WatchdogTimeout). HoldFrom(ctx).Token() is the
// number of the term: each is higher than all before, as far as Election says.
//
// Run returns ctx's error, with its cause, when ctx ends; the error of lead, unless all that it is made of says that its
// context has ended; ErrClosed after Close or Shutdown; ErrInvalid for a name that cannot be used; or the error with which the server refused,
// such as one without permission. It goes on when lead returns nil, when a term is lost, and while the server cannot be reached. Panics of lead
// give the leadership up.
//
// One client may stand several times, in several goroutines.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	switch {
	case ctx == nil:
		return errNilContext
	case lead == nil:
		return errNilFunction
	}
	at := e.c.callSite(1)
	return e.c.elections.Run(ctx, &election.Candidate{
		Name: e.Name(),
		Campaign: func(ctx context.Context) (context.Context, election.Hold, error) {
			return e.lock.acquire(ctx, nil, false, at)
		},
		Again: func(err error) bool { return IsRetryable(err) || errors.Is(err, ErrUnavailable) },
		Ended: endedBy,
		Lead:  lead,
	})
}

// Resign ends the term of this client's candidate, and says whether it led. It returns when lead
// has returned and the leadership is given up, so that somebody else may lead, or with ctx's error when that ends
// first: the term ends nevertheless. Called under the context of lead it does not wait. Run goes on: the candidate campaigns
// again after its pause, behind those who wait.
func (e *Election) Resign(ctx context.Context) (bool, error) {
	if err := e.c.usable(ctx, e.lock.spec.Err()); err != nil {
		return false, err
	}
	return e.c.elections.Resign(ctx, e.Name())
}

// A Leader is who leads at a moment; the zero Owner is nobody.
type Leader struct {
	Owner  string // as it stands in Redis: "<client uuid>:<n>"
	Client string // the client's UUID
	By     string // who the client says it is (Config.Identity), such as "billing@host-7 pid 4121"; empty if it does not
	Term   int64  // the number of the term; if nobody leads, of the last one; 0 if the server knows of none
}

// Leader asks who leads. Nobody may lead any more, or somebody else, when the answer is read.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	info, err := e.lock.Info(ctx)
	leader := Leader{Term: info.Token}
	for _, h := range info.Holders {
		leader.Owner, leader.Client, leader.By = h.Owner, h.Client, h.By
	}
	return leader, err
}

// Observe yields who leads, and then each change, until ctx ends or the caller breaks. What lies between
// two looks is left out: the number of the term tells how many there were, unless the server has
// lost its data. It looks when
// it hears that a leadership was given up, and every two seconds; more often in the first three seconds in which nobody
// leads. A leader whose client has just begun is yielded once more when it says who it is.
//
// With an error there is no leader. If it may pass, Observe goes on, and yields the next such error only after it has
// seen a leader again, or that there is none. An error that cannot pass is yielded in any case, and is the last.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if ctx == nil {
			yield(Leader{}, errNilContext)
			return
		}
		var last Leader
		seen, failed := false, false
		end := e.c.elections.Watch(ctx, wire.Prefix(wire.LockChannel, e.lock.spec.Key()), func() (led, more bool) {
			leader, err := e.Leader(ctx)
			switch {
			case ctx.Err() != nil:
				return false, false
			case err != nil && failed && IsRetryable(err):
				return true, true
			case err != nil:
				failed = true
				return true, yield(Leader{}, err) && IsRetryable(err)
			case seen && !failed && leader == last:
				return leader.Owner != "", true
			}
			seen, failed, last = true, false, leader
			return leader.Owner != "", yield(leader, nil)
		})
		if errors.Is(end, ErrClosed) && ctx.Err() == nil {
			yield(Leader{}, end)
		}
	}
}
