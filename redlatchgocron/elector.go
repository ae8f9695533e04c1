package redlatchgocron

import (
	"context"
	"errors"
	"sync"
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
	term      atomic.Pointer[term] // the present one; nil: it does not lead
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an elector. It leads while its method Run has the leadership.
func NewElector(candidate *election.Candidate) *Elector { return &Elector{candidate: candidate} }

// Run is a candidate in the election until ctx ends, and gives the leadership up
// then. Its errors are those of election.Candidate.Run. Call it in a goroutine.
//
// When the term ends, because ctx ends, somebody resigns or
// redlatch.Client.Shutdown begins, Run first waits until the tasks of Elector.Task
// have returned. Then it gives the leadership up. So a task that ignores its
// context keeps the leadership, as a function of election.Candidate.Run does. That
// ends when the lease is lost, when redlatch.Config.MaxHold has passed, when the
// context of Shutdown ends, and when the client is closed. Run does not wait for
// other tasks: shut the scheduler down before, so that no job runs any more when
// the next leader begins.
func (e *Elector) Run(ctx context.Context) error {
	return e.candidate.Run(ctx, func(ctx context.Context, _ int64) error {
		t := &term{ctx: ctx, idle: make(chan struct{})}
		e.term.Store(t)
		defer e.term.CompareAndSwap(t, nil)
		<-ctx.Done()
		t.end()
		select {
		case <-t.idle:
		case <-redlatch.HoldFrom(ctx).Context().Done(): // others may lead already: to wait protects nobody
		}
		return ctx.Err()
	})
}

// IsLeader returns nil if this process leads, also by its clock, and otherwise
// ErrNotLeader. It sends no request.
func (e *Elector) IsLeader(context.Context) error {
	if t := e.term.Load(); t == nil || t.ctx.Err() != nil {
		return ErrNotLeader
	}
	return nil
}

// Task returns a task for gocron.Scheduler.NewJob that calls f while this process
// leads. The context of f ends with the term, with the cause that
// election.Candidate.Run names, and when the context of the job ends. So f stops
// before another process leads, if it heeds its context: before a lease is lost
// there is a margin for that, and otherwise Run waits for f.
// redlatch.HoldFrom(ctx).Token() is the number of the term.
//
// The task fails with the error of f, joined with why the term ended if it ended
// meanwhile: gocron tells it to AfterJobRunsWithError. It fails with ErrNotLeader,
// without a call of f, if this process does not lead.
func (e *Elector) Task(f func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		t := e.term.Load()
		if t == nil || !t.enter() {
			return ErrNotLeader
		}
		defer t.leave()
		ctx, cancel := context.WithCancelCause(redlatch.HoldFrom(t.ctx).With(within{ctx, t.ctx}))
		defer cancel(nil)
		defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
		return withLoss(f(ctx), context.Cause(t.ctx))
	})
}

// A term is the time for which this process leads.
type term struct {
	ctx  context.Context //nolint:containedctx // the leader's
	idle chan struct{}   // closed when the term is over and no task runs any more

	mu      sync.Mutex
	running int // tasks
	over    bool
}

// enter counts a task, unless the term is over.
func (t *term) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.ctx.Err() != nil {
		return false
	}
	t.running++
	return true
}

func (t *term) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.tellLocked()
}

// end lets no more tasks in.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.tellLocked()
}

func (t *term) tellLocked() {
	if t.over && t.running == 0 {
		close(t.idle)
	}
}

// within is the context of a job that also has the values of the leader's: with
// them the election knows a task that resigns, and does not wait for it.
type within struct {
	context.Context
	leader context.Context //nolint:containedctx // only its values
}

func (c within) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.leader.Value(key)
}
