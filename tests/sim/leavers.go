package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Leavers are callers of a process that give up at the very moment at which
// another worker of theirs releases what it has: the gate may let them in just
// then. No deadline that chance draws ends at such a moment.
type leavers struct {
	mu  sync.Mutex
	all []*context.CancelCauseFunc
}

// A leftError is the cause of a context that has ended so.
type leftError struct{ at time.Time }

// Error implements error.
func (leftError) Error() string { return "the caller gives up as somebody releases" }

// join returns a context that ends at the next leave. The caller calls done when
// it waits no more.
func (x *leavers) join(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = append(x.all, &cancel)
	return ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.all = slices.DeleteFunc(x.all, func(y *context.CancelCauseFunc) bool { return y == &cancel })
		cancel(nil)
	}
}

// leave has all of them give up.
func (x *leavers) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, cancel := range x.all {
		(*cancel)(leftError{time.Now()})
	}
	x.all = nil
}
