package locktest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// Waiting starts an acquisition and returns when it stands in the queue.
func (w *World) Waiting(l *redlatch.Lock, ctx context.Context, opts ...redlatch.Option) <-chan Outcome {
	w.Helper()
	before := len(w.Queue(l.Name()))
	c := Later(func() Outcome {
		h, err := l.Acquire(ctx, opts...)
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

func WaitFor(l *redlatch.CountDownLatch, ctx context.Context, opts ...redlatch.Option) <-chan error {
	return Later(func() error { return l.Wait(ctx, opts...) })
}

// AcquiringPermits acquires on a goroutine and returns when that waits.
func AcquiringPermits(s *redlatch.Semaphore, ctx context.Context, n int, opts ...redlatch.Option) <-chan error {
	got := Later(func() error { return s.Acquire(ctx, n, opts...) })
	synctest.Wait()
	return got
}
