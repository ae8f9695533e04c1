package locktest

import (
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
)

// SetPermits gives a semaphore n permits.
func (w *World) SetPermits(s *semaphore.Semaphore, n int) {
	w.Helper()
	_, err := s.TrySetPermits(bg, n)
	w.OK(err)
}

// The tests' semaphore whose permits have ids: its keys and channel, and a time
// without end as Redisson writes it.
const (
	Pool      = "pool"
	PoolTimes = "{pool}:timeout"
	PoolNews  = "redisson_sc:{pool}"
	Forever   = 922337203685477
)

// Permits makes a semaphore of n permits.
func (w *World) Permits(c *redlatch.Client, n int, opts ...redlatch.HoldOption) *semaphore.Expirable {
	w.Helper()
	s := semaphore.NewExpirable(c, Pool, 0, opts...)
	if set, err := s.TrySetPermits(bg, n); !set || err != nil {
		w.Fatalf("TrySetPermits: %v, %v", set, err)
	}
	return s
}

// Permit acquires one, or ends the test.
func (w *World) Permit(s *semaphore.Expirable) *redlatch.Hold {
	w.Helper()
	p, err := s.Acquire(bg, 1)
	if err != nil {
		w.Fatalf("Acquire: %v", err)
	}
	return p
}

// Each returns the permits of an acquisition, each by itself.
func Each(h *redlatch.Hold, err error) ([]*redlatch.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Members(), nil
}

// Detach detaches a permit or lock, and returns its id.
func (w *World) Detach(p *redlatch.Hold) string {
	w.Helper()
	id, err := p.Detach()
	if err != nil || id != p.ID() {
		w.Fatalf("Detach: %q, %v; want %q", id, err, p.ID())
	}
	return id
}

// WantPermits checks what the server has: how many are free, and how many given.
func (w *World) WantPermits(free, given int) {
	w.Helper()
	f, g := w.stored()
	if f != free || g != given {
		w.Errorf("%d free and %d given, want %d and %d", f, g, free, given)
	}
}

func (w *World) stored() (free, given int) {
	w.Helper()
	synctest.Wait()
	text, _ := w.Server.Get(Pool)
	_, _ = fmt.Sscan(text, &free)
	if w.Server.Exists(PoolTimes) {
		ids, _ := w.Server.ZMembers(PoolTimes)
		given = len(ids)
	}
	return free, given
}

// Limiter returns a limiter with a rate, of a client of its own.
func (w *World) Limiter(permits int, interval time.Duration) *ratelimit.Limiter {
	w.Helper()
	l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
	w.SetRate(l, ratelimit.Rate{Permits: permits, Interval: interval})
	return l
}

// SetRate sets the rate, or ends the test.
func (w *World) SetRate(l *ratelimit.Limiter, r ratelimit.Rate) {
	w.Helper()
	if err := l.SetRate(bg, r); err != nil {
		w.Fatal(err)
	}
}

// TakeRate takes n permits at once, or ends the test.
func (w *World) TakeRate(l *ratelimit.Limiter, n int) {
	w.Helper()
	if err := l.TryAcquire(bg, n, 0); err != nil {
		w.Fatal(err)
	}
}

// WantBusy tries and wants to be told to come back then.
func (w *World) WantBusy(l *ratelimit.Limiter, n int, after time.Duration) {
	w.Helper()
	err := l.TryAcquire(bg, n, 0)
	var busy *redlatch.BusyError
	if !errors.As(err, &busy) || !errors.Is(err, redlatch.ErrBusy) || !redlatch.IsRetryable(err) {
		w.Fatalf("got %v, want a BusyError", err)
	}
	if busy.RetryAfter != after || busy.Name != l.Name() || busy.Kind != redlatch.KindRateLimiter {
		w.Fatalf("got %+v, want to be told to retry after %v", busy, after)
	}
}

// SemaphoreName is the name of the tests' semaphore.
const SemaphoreName = "ports"

// Semaphore returns the semaphore of the tests with n permits.
func (w *World) Semaphore(c *redlatch.Client, n int) *semaphore.Semaphore {
	w.Helper()
	s := semaphore.New(c, SemaphoreName, 0)
	if made, err := s.TrySetPermits(bg, n); err != nil || !made {
		w.Fatalf("TrySetPermits: %v, %v", made, err)
	}
	return s
}

// Latch sets the count of a latch.
func (w *World) Latch(l *latch.Latch, n int) *latch.Latch {
	w.Helper()
	if set, err := l.TrySetCount(bg, n); !set || err != nil {
		w.Fatalf("TrySetCount(%d): %v, %v", n, set, err)
	}
	return l
}
