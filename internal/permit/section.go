package permit

import (
	"context"
	"errors"
	"sync"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// sections are a client's.
type sections struct {
	mu      sync.Mutex // guards pending
	pending queue.Pending
}

// A Section runs a function under permits that are only counted.
type Section struct {
	sem   *Counted
	n     int
	leave func() // its context
}

// Begin begins a section under n permits, which are still to be acquired. Whoever
// shuts the client down waits for it from here on, until its End.
func (s *Counted) Begin(n int) *Section {
	s.all.sections.add(1)
	return &Section{sem: s, n: n}
}

// End ends the section, whether it had its permits or not.
func (x *Section) End() { x.sem.all.sections.add(-1) }

// With returns ctx, which also ends when the section does, or is to come to an
// end.
func (x *Section) With(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := x.sem.all.Server.Calm.OnEnd(func() { cancel(request.ErrClosed) })
	x.leave = func() {
		stop()
		cancel(holdctx.ErrReleased)
	}
	return ctx
}

// Release gives the section's permits back, when its function has returned. That
// they could not be given back is an event and no error: the work is done.
func (x *Section) Release(ctx context.Context) error {
	x.leave()
	if x.n == 0 {
		return nil
	}
	all := x.sem.all
	q := all.counted.get(x.sem)
	defer all.counted.put(q)
	told, err := q.release(ctx, x.n)
	if told && err != nil && !errors.Is(err, request.ErrForgotten) { // of the latter the worker has told
		all.Events.ReleaseFailed(x.sem.Name(), "", err)
	}
	return nil
}

func (ss *sections) add(n int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.pending.Add(n)
}

func (ss *sections) count() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.pending.Count()
}

// none returns a channel that is closed as soon as there is no section.
func (ss *sections) none() <-chan struct{} {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.pending.None()
}
