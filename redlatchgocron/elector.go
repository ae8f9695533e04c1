package redlatchgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
)

// ErrNotLeader says why a job is not run: another process leads, or nobody leads.
var ErrNotLeader = errors.New("redlatch: not the leader")

// An Elector is a gocron.Elector. Its methods are safe for concurrent use.
type Elector struct {
	candidate *election.Candidate
	term      atomic.Pointer[context.Context] // of the present term; nil: it does not lead
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an elector. It leads while its method Run has the leadership.
func NewElector(candidate *election.Candidate) *Elector { return &Elector{candidate: candidate} }

// Run is a candidate in the election until ctx ends, and gives the leadership up
// then. Its errors are those of election.Candidate.Run. Call it in a goroutine, and
// shut the scheduler down before ctx ends, and before redlatch.Client.Shutdown, so that no job runs any more when the
// next leader begins.
func (e *Elector) Run(ctx context.Context) error {
	return e.candidate.Run(ctx, func(ctx context.Context, _ int64) error {
		e.term.Store(&ctx)
		defer e.term.CompareAndSwap(&ctx, nil)
		<-ctx.Done()
		return ctx.Err()
	})
}

// IsLeader returns nil if this process leads, also by its clock, and otherwise ErrNotLeader. It sends
// no request.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || (*term).Err() != nil {
		return ErrNotLeader
	}
	return nil
}

// Task returns a task for gocron.Scheduler.NewJob that calls f while this process leads. The context of f ends with the
// term, with the cause that election.Candidate.Run names, and when the context of the job ends. So f stops before another
// process leads, if it heeds its context. redlatch.HoldFrom(ctx).Token() is the number of the term.
//
// The task fails with the error of f, joined with why the term ended if it ended meanwhile: gocron tells it to
// AfterJobRunsWithError. It fails with ErrNotLeader, without a call of f, if this process does not lead.
func (e *Elector) Task(f func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		term := e.term.Load()
		if term == nil || (*term).Err() != nil {
			return ErrNotLeader
		}
		ctx, cancel := context.WithCancelCause(redlatch.HoldFrom(*term).With(ctx))
		defer cancel(nil)
		defer context.AfterFunc(*term, func() { cancel(context.Cause(*term)) })()
		return withLoss(f(ctx), context.Cause(*term))
	})
}
