package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/election"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/wire"
)

// ErrResigned is the cause with which a leader's context ends after a call of
// Resign.
var ErrResigned = election.ErrResigned

// A Candidate stands for an election, which lets one process lead at a time, of
// all those that stand for it. It is the election's name, immutable, and cheap,
// and may be shared, copied and forgotten.
//
// Not promised: that the old leader has stopped to act when the next one begins. A
// leader can be paused after its last look at its context, and Redis can forget
// the leader in a failover. A resource that has to be safe from that checks the
// number of the term, which is a fencing token: see redlatch.Hold.Token and
// package fence.
//
// In Redis an election is the Lock of this name with Fenced, and the number of the
// term is the lock's token. The first number is that of the microseconds since
// 1970 by the server's clock, or one more than the lock's last token. Each term
// adds 1. Redisson has no election; a Java service that acquires the RFencedLock
// of this name leads.
//
// The numbers of terms rise, also after the server has lost its data. There are
// three exceptions: the server's clock was set back; a Java service, or somebody
// with Lock and Fenced, has acquired the lock since the loss, and begun with 1; or
// a replica that missed the last term has taken over, and the next term gets the
// same number again.
type Candidate struct {
	engines *bridge.Engines
	lock    lock.Spec
	standby time.Duration
}

// New returns a candidate for the election with this name, and asks nobody. With
// an option that is nil, every call of the candidate that can fail does so
// (redlatch.ErrInvalid).
func New(c *redlatch.Client, name string, opts ...Option) *Candidate {
	engines := bridge.Open(c)
	candidate := &Candidate{engines: engines, lock: engines.Locks.Numbered(engines.Server.Key(name))}
	for i, opt := range opts {
		if opt == nil {
			candidate.refuse(invalid.Errorf("redlatch: option %d is nil; leave it out, or use Standby", i+1))
			continue
		}
		opt.forCandidate(candidate)
	}
	return candidate
}

// refuse has every call of the candidate fail, unless its name is wrong already.
func (c *Candidate) refuse(err error) {
	if c.lock.Err == nil {
		c.lock.Err = err
	}
}

// Name returns the election's name.
func (c *Candidate) Name() string { return c.lock.Name() }

// Run stands for the election until ctx ends. It waits until it leads, calls lead,
// gives the leadership up when lead has returned, and campaigns again after a
// pause. The pause is a second, and up to half a minute while terms are shorter
// than a minute. While the server cannot be reached, Run tries again, with pauses
// of about a second. When the server is back, and the last lease there has ended,
// somebody leads within some two seconds. A candidate with Standby lets others go
// first, also then.
//
// The context of lead ends with the term: when the term is lost (the cause is a
// *redlatch.LostError), when ctx ends, when somebody calls Resign (ErrResigned),
// or as soon as redlatch.Client.Shutdown begins (redlatch.ErrClosed). lead must
// return then. Run gives the leadership up only after lead has returned, and the
// next leader follows within a round trip. If the process dies, the next one leads
// when the lease has ended (redlatch.Config.WatchdogTimeout). term is the number
// of the term, the Token of the Hold that redlatch.HoldFrom(ctx) returns. It is
// higher than all before, with the exceptions that Candidate names.
//
// Run returns
//   - the error of ctx, with its cause, when ctx ends;
//   - the error of lead, unless all of it only says that the context of lead has
//     ended;
//   - redlatch.ErrClosed after Close or Shutdown, and redlatch.ErrInvalid for a
//     name that cannot be used;
//   - the error of a server that refuses, such as one without permission.
//
// Run goes on when lead returns nil, when a term is lost, and while the server
// cannot be reached. A panic of lead gives the leadership up.
//
// One client may stand several times, in several goroutines.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
	switch {
	case ctx == nil:
		return args.ErrNilContext
	case lead == nil:
		return args.ErrNilFunction
	}
	at := c.engines.HoldSite()
	return c.engines.Elections.Run(ctx, &election.Candidate{
		Name:    c.Name(),
		Standby: c.standby,
		Look:    c.look,
		Channel: c.channel(),
		Campaign: func(ctx context.Context, once bool) (context.Context, election.Hold, error) {
			return c.engines.Campaign(ctx, c.lock, once, at)
		},
		Again: func(err error) bool { return redlatch.IsRetryable(err) || errors.Is(err, redlatch.ErrUnavailable) },
		Ended: c.engines.EndedBy,
		Lead:  lead,
	})
}

// channel is where it is told that a leadership is given up.
func (c *Candidate) channel() string { return wire.Prefix(wire.LockChannel, c.lock.Key) }

// Leading returns the number of the term for which this client leads now, and
// true; or 0 and false. It sends no request. It is true while the function lead of
// a Run runs, whichever Candidate of this client and name was used. It is false
// from the moment at which lead's context ends, which is in time also if nobody
// can reach the server. It is safe for concurrent use, as all of a Candidate is.
//
// Not promised: that it is still true when the caller acts. It suits readiness
// checks and metrics. What acts as the leader uses lead's context, and shows the
// number of the term to what it changes.
func (c *Candidate) Leading() (term int64, leading bool) {
	return c.engines.Elections.Leading(c.Name())
}

// Standing returns the elections in which this client has a candidate that runs,
// by name, and whether it leads there now: see Candidate.Leading. It sends no
// request.
func Standing(c *redlatch.Client) map[string]bool {
	elections := bridge.Open(c).Elections
	all := map[string]bool{}
	for _, name := range elections.Names() {
		_, all[name] = elections.Leading(name)
	}
	return all
}

// Resign ends the term of this client's candidate, and says whether it led. It
// returns when lead has returned and the leadership is given up, so that another
// candidate may lead. If ctx ends first, Resign returns ctx's error, and the term
// ends nevertheless. Under the context of lead, Resign does not wait. Run goes on:
// the candidate campaigns again after its pause, behind the candidates that wait.
func (c *Candidate) Resign(ctx context.Context) (bool, error) {
	if err := c.engines.Usable(ctx, c.lock.Err); err != nil {
		return false, err
	}
	return c.engines.Elections.Resign(ctx, c.Name())
}

// A Leader says who leads at a moment. With an empty Owner nobody leads.
type Leader struct {
	Owner  string // as it stands in Redis: "<client uuid>:<n>"
	Client string // the client's UUID
	By     string // the client's redlatch.Config.Identity, such as "billing@host-7 pid 4121"; empty if not known
	Term   int64  // the number of the term; if nobody leads, of the last one; 0 if the server knows of none
}

// Leader asks the server who leads. That may have changed before the caller reads
// the answer.
func (c *Candidate) Leader(ctx context.Context) (Leader, error) {
	if err := c.engines.Usable(ctx, c.lock.Err); err != nil {
		return Leader{}, err
	}
	info, err := c.engines.Inspector.Lock(ctx, c.lock.Key, string(redlatch.KindFenced))
	leader := Leader{Term: info.Token}
	who, end := c.engines.Census.Introducer(ctx, 1, time.Second)
	defer end()
	for _, h := range info.Holders {
		leader.Owner, leader.Client = h.Owner, h.Client
		if h.Redlatch {
			leader.By = who(h.Client).String()
		}
	}
	return leader, err
}

// Observe yields who leads, and then each change, until ctx ends or the caller
// breaks. It looks when a leadership is given up, and every two seconds; more
// often in the first three seconds in which nobody leads. It leaves out terms that
// lie between two looks: the numbers of the terms tell how many these were, unless
// the server has lost its data. A leader whose client has just begun is yielded
// once more when the client's identity is known.
//
// An error is yielded without a leader. If the error is temporary, Observe goes
// on, and yields the next one only after it has had an answer. A permanent error
// is always yielded, and is the last.
func (c *Candidate) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if ctx == nil {
			yield(Leader{}, args.ErrNilContext)
			return
		}
		var last Leader
		seen, failed := false, false
		end := c.engines.Elections.Watch(ctx, c.channel(), func() (led, more bool) {
			leader, err := c.Leader(ctx)
			switch {
			case ctx.Err() != nil:
				return false, false
			case err != nil && failed && redlatch.IsRetryable(err):
				return true, true
			case err != nil:
				failed = true
				return true, yield(Leader{}, err) && redlatch.IsRetryable(err)
			case seen && !failed && leader == last:
				return leader.Owner != "", true
			}
			seen, failed, last = true, false, leader
			return leader.Owner != "", yield(leader, nil)
		})
		if errors.Is(end, redlatch.ErrClosed) && ctx.Err() == nil {
			yield(Leader{}, end)
		}
	}
}
