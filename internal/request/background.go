package request

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/worker"
)

// Go runs f in the background: clean-up that nobody waits for but End.
func (s *Server) Go(f func()) { s.Pool.Go(worker.Func(f)) }

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
