package main

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A crowd waits at a latch.
type crowd struct {
	latch armer
	size  int
}

// letGo is one round: a crowd comes, and goes when the latch is counted down. It
// counts if it was over in the measured phase.
func (w *worker) letGo(ctx context.Context, count bool) {
	c := w.crowd
	if err := c.latch.arm(ctx); err != nil {
		w.failed(err)
		return
	}
	var called, away atomic.Int64
	var last atomic.Int64
	var waits sync.WaitGroup
	errs := make(chan error, c.size)
	for g := range c.size {
		waits.Go(func() {
			// As in measure.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			called.Add(1)
			err := c.latch.acquire(ctx, g)
			if away.Add(1) == int64(c.size) {
				last.Store(now())
			}
			if err != nil {
				errs <- err
			}
		})
	}
	for called.Load() < int64(c.size) {
		time.Sleep(time.Millisecond)
	}
	idle(ctx)
	early := away.Load()
	asked := now()
	err := c.latch.release(ctx, 0)
	waits.Wait()
	if err == nil && len(errs) > 0 {
		err = <-errs
	}
	switch {
	case err != nil:
		w.failed(err)
	case count && w.phase.Load() == measuring:
		w.acquisitions++
		w.violations += early
		w.handOff.add(last.Load() - asked)
	}
}

// idle returns when this process has next to nothing to do: whoever is to wait
// waits. The Java peer has the same limits (SyncLoop.java).
func idle(ctx context.Context) {
	for range 50 {
		before := cpuOfSelf()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		if cpuOfSelf()-before <= 10*time.Millisecond {
			return
		}
	}
}

func cpuOfSelf() time.Duration {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail for the process itself
	return time.Duration(self.Utime.Nano() + self.Stime.Nano())
}
