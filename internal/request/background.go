package request

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/worker"
)

// Go runs f in the background: clean-up that nobody waits for but End.
func (s *Server) Go(f func()) { s.Pool.Go(worker.Func(f)) }

// together is how many of several things run at a time.
const together = 16

// Each runs f for each of n, some at a time, and returns when all have ended: none waits for all those before it.
func Each(s *Server, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, together) {
		all.Add(1)
		s.Go(func() {
			defer all.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

// Finish runs f to its end, whatever becomes of ctx, which only bounds how
// long the caller waits for it.
func (s *Server) Finish(ctx context.Context, lease time.Duration, f func() error) error {
	if ctx.Done() == nil && s.Traits.Timeout <= AttemptTimeout(lease) {
		return f()
	}
	done := make(chan error, 1)
	s.Go(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done: // both: the outcome says more
			return err
		default:
			return ContextError(ctx)
		}
	}
}
