package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowLatch lets its crowd go one after the other.
type slowLatch struct {
	open  chan struct{}
	step  time.Duration
	early int           // goroutines that do not wait
	count time.Duration // how long it takes to count down
	err   error         // what one that waits gets
}

func (l *slowLatch) arm(context.Context) error {
	l.open = make(chan struct{})
	return nil
}

func (l *slowLatch) acquire(ctx context.Context, g int) error {
	if g < l.early {
		return nil
	}
	select {
	case <-l.open:
		time.Sleep(time.Duration(g) * l.step)
		if g == 3 {
			return l.err
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *slowLatch) release(context.Context, int) error {
	time.Sleep(l.count)
	close(l.open)
	return nil
}

func (l *slowLatch) close() {}

func TestAFanOutEndsWithTheLastOfTheCrowd(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		latch                   slowLatch
		counts                  bool
		rounds, errors, tooSoon int64
	}{
		"all wait":            {slowLatch{}, true, 1, 0, 0},
		"some do not":         {slowLatch{early: 2}, true, 1, 0, 2},
		"one fails":           {slowLatch{err: broken}, true, 0, 1, 0},
		"begun in warming up": {slowLatch{}, false, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := c.latch
				l.step, l.count = 10*time.Millisecond, 50*time.Millisecond
				var phase atomic.Int32
				phase.Store(measuring)
				w := worker{phase: &phase, handOff: newHistogram(), crowd: &crowd{latch: &l, size: 11}}
				w.letGo(t.Context(), c.counts)
				if w.acquisitions != c.rounds || w.errors != c.errors || w.violations != c.tooSoon {
					t.Errorf("%d rounds, %d errors, %d too early", w.acquisitions, w.errors, w.violations)
				}
				if p50 := w.handOff.quantile(0.5); w.handOff.total() != c.rounds || (c.rounds > 0 && (p50 < 149_000 || p50 > 151_000)) {
					t.Errorf("%d times, %v µs", w.handOff.total(), p50)
				}
			})
		})
	}
}

func TestACrowdGoesAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var phase atomic.Int32
		phase.Store(measuring)
		w := worker{phase: &phase, handOff: newHistogram(), crowd: &crowd{latch: &slowLatch{count: time.Minute}, size: 5}}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			w.run(ctx, t.Context())
			close(over)
		}()
		time.Sleep(time.Second)
		phase.Store(stopping)
		cancel()
		<-over
		if w.acquisitions != 0 || w.errors != 0 || w.handOff.total() != 0 {
			t.Errorf("%d rounds, %d errors", w.acquisitions, w.errors)
		}
	})
}

func TestWhatJavaIsAskedFor(t *testing.T) {
	t.Parallel()
	var ops []any
	for _, name := range []string{"contended-2", "read-only-128", semaphoreOf8, latchFanOut} {
		s, _ := scenarioNamed(name)
		request := (&redisson{job: job{Scenario: s}}).loop("name", time.Second)
		ops = append(ops, request["op"], request["kind"], request["permits"])
	}
	want := []any{"loopLock", "lock", 0, "loopLock", "read", 0, "loopSemaphore", "", 8, "loopLatch", "", 0}
	if !slices.Equal(ops, want) {
		t.Errorf("%v, want %v", ops, want)
	}
}
