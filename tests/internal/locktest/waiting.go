package locktest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/semaphore"
)

// Waiting starts an acquisition and returns when it stands in the queue.
func (w *World) Waiting(ctx context.Context, l *redlatch.Lock) <-chan Outcome {
	w.Helper()
	return w.waiting(l, func() (*redlatch.Hold, error) { return l.Acquire(ctx) })
}

// WaitingFor is Waiting, for no longer than that.
func (w *World) WaitingFor(ctx context.Context, l *redlatch.Lock, wait time.Duration) <-chan Outcome {
	w.Helper()
	return w.waiting(l, func() (*redlatch.Hold, error) { return l.TryAcquire(ctx, wait) })
}

func (w *World) waiting(l *redlatch.Lock, acquire func() (*redlatch.Hold, error)) <-chan Outcome {
	w.Helper()
	before := len(w.Queue(l.Name()))
	c := Later(func() Outcome {
		h, err := acquire()
		return Outcome{h, err, time.Now()}
	})
	for range 100 { // the request may have to be repeated
		synctest.Wait()
		if len(w.Queue(l.Name())) == before+1 {
			return c
		}
		time.Sleep(time.Millisecond)
	}
	w.Fatalf("in the queue: %q, before: %d", w.Queue(l.Name()), before)
	return nil
}

// Got returns the hold that comes.
func (w *World) Got(c <-chan Outcome) *redlatch.Hold {
	w.Helper()
	o := <-c
	if o.Err != nil {
		w.Fatalf("Acquire: %v", o.Err)
	}
	return o.Hold
}

// NoneYet says that nothing was delivered yet.
func NoneYet[T any](c <-chan T) bool {
	synctest.Wait()
	return len(c) == 0
}

// WaitFor waits for a latch on a goroutine.
func WaitFor(ctx context.Context, l *latch.Latch) <-chan error {
	return Later(func() error { return l.Wait(ctx) })
}

// AcquiringPermits acquires on a goroutine and returns when that waits.
func AcquiringPermits(ctx context.Context, s *semaphore.Semaphore, n int) <-chan error {
	got := Later(func() error { return s.Acquire(ctx, n) })
	synctest.Wait()
	return got
}
