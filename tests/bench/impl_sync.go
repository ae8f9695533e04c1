package main

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch"
)

func openSemaphore(j job, client *redlatch.Client, stop func()) (locker, error) {
	s := &redlatchSemaphore{opened{client, stop}, client.Semaphore(j.Name)}
	if _, err := s.permits.TrySetPermits(context.Background(), j.Scenario.Permits, 0); err != nil {
		s.close()
		return nil, fmt.Errorf("set permits: %w", err)
	}
	return s, nil
}

// redlatchSemaphore takes and gives back one permit.
type redlatchSemaphore struct {
	opened
	permits *redlatch.Semaphore
}

func (s *redlatchSemaphore) acquire(ctx context.Context, _ int) error {
	return s.permits.Acquire(ctx, 1)
}

func (s *redlatchSemaphore) release(ctx context.Context, _ int) error {
	return s.permits.Release(ctx, 1)
}

func (s *redlatchSemaphore) acquireShared(ctx context.Context, g int) error { return s.acquire(ctx, g) }

type redlatchLatch struct {
	opened
	latch *redlatch.CountDownLatch
}

func (l *redlatchLatch) acquire(ctx context.Context, _ int) error { return l.latch.Wait(ctx) }
func (l *redlatchLatch) release(ctx context.Context, _ int) error { return l.latch.CountDown(ctx) }

func (l *redlatchLatch) arm(ctx context.Context) error {
	set, err := l.latch.TrySetCount(ctx, 1)
	if err == nil && !set {
		err = fmt.Errorf("latch %q is still set", l.latch.Name())
	}
	return err
}
