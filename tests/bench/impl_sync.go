package main

import (
	"context"
	"fmt"

	xsync "golang.org/x/sync/semaphore"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/semaphore"
)

// weighted is what a queue within the process can do.
var weighted = implementation{
	name:     "semaphore.Weighted(1), no Redis",
	settings: "golang.org/x/sync/semaphore " + version("golang.org/x/sync") + ", NewWeighted(1): a queue within one process, and no lock for other processes. It is what redlatch's queue could be if it kept no lock",
	kind:     limit,
	skips:    func(s scenario) bool { return !s.Contended || s.Processes > 1 || s.Goroutines != 16 },
	open:     func(job) (locker, error) { return weightedLocker{xsync.NewWeighted(1)}, nil },
}

type weightedLocker struct{ permits *xsync.Weighted }

func (l weightedLocker) acquire(ctx context.Context, _ int) error { return l.permits.Acquire(ctx, 1) }

func (l weightedLocker) release(context.Context, int) error {
	l.permits.Release(1)
	return nil
}

func (l weightedLocker) close() {}

func openSemaphore(j job, client *redlatch.Client, stop func()) (locker, error) {
	s := &redlatchSemaphore{opened{client, stop}, semaphore.New(client, j.Name, 0)}
	if _, err := s.permits.TrySetPermits(context.Background(), j.Scenario.Permits); err != nil {
		s.close()
		return nil, fmt.Errorf("set permits: %w", err)
	}
	return s, nil
}

// redlatchSemaphore takes and gives back one permit.
type redlatchSemaphore struct {
	opened
	permits *semaphore.Semaphore
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
	latch *latch.Latch
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
