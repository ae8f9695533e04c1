package clients

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A server, or whoever may write its keys, can answer anything. That makes calls
// fail, and holds lost: it crashes nobody, and nobody waits for ever.
func TestNoAnswerCrashesAClient(t *testing.T) {
	locktest.WithSeeds(t, 60, func(w *locktest.World, seed uint64) {
		liar := &liar{rand: rand.New(rand.NewPCG(seed, 1)), often: []float64{0.02, 0.2, 0.6}[seed%3]}
		c := w.Tapped(redlatch.Config{OutageTimeout: 2 * time.Second}, &locktest.Tap{Keyed: liar.run})
		useAll(w, c)
		_ = c.Close()
	})
}

// A liar changes what a server answers.
type liar struct {
	mu    sync.Mutex
	rand  *rand.Rand
	often float64
}

func (l *liar) run(_ string, _, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	time.Sleep(time.Millisecond)
	r, err := next()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rand.Float64() < l.often {
		return l.lie(r, 0), nil
	}
	return r, err
}

var lies = []driver.Reply{
	{},
	{Kind: driver.ReplyInt, Int: math.MaxInt64},
	{Kind: driver.ReplyInt, Int: math.MinInt64},
	{Kind: driver.ReplyInt, Int: -1},
	{Kind: driver.ReplyInt},
	{Kind: driver.ReplyInt, Int: 1},
	{Kind: driver.ReplyInt, Int: 70},
	{Kind: driver.ReplyString},
	{Kind: driver.ReplyString, Str: "inf"},
	{Kind: driver.ReplyString, Str: "1e300"},
	{Kind: driver.ReplyString, Str: "9223372036854775807"},
	{Kind: driver.ReplyString, Str: "-9223372036854775808"},
	{Kind: driver.ReplyString, Str: strings.Repeat("\xff\x00{", 1000)},
	{Kind: driver.ReplyList},
}

func (l *liar) lie(r driver.Reply, depth int) driver.Reply {
	if r.Kind != driver.ReplyList || l.rand.IntN(4) == 0 {
		r = lies[l.rand.IntN(len(lies))]
		if r.Kind == driver.ReplyList && depth < 2 {
			for range l.rand.IntN(8) {
				r.List = append(r.List, l.lie(driver.Reply{}, depth+1))
			}
		}
		return r
	}
	list := slices.Clone(r.List)
	if n := len(list); n > 0 {
		switch i := l.rand.IntN(n); l.rand.IntN(4) {
		case 0:
			list = list[:i]
		case 1:
			list = append(list, list[i])
		default:
			list[i] = l.lie(list[i], depth+1)
		}
	}
	r.List = list
	return r
}

// useAll makes every kind of call, several at a time, and does not mind how they
// end.
func useAll(w *locktest.World, c *redlatch.Client) {
	var wg sync.WaitGroup
	call := func(f func(ctx context.Context) error) {
		wg.Go(func() {
			for range 3 {
				ctx, cancel := context.WithTimeout(bg, 5*time.Second)
				_ = f(ctx)
				cancel()
			}
		})
	}
	for _, of := range locktest.TypesOfLock {
		for range 2 {
			l := of(c, "lock")
			call(func(ctx context.Context) error {
				h, err := locktest.With(l, redlatch.Lease(time.Second)).Acquire(ctx)
				if err != nil {
					return err
				}
				inner, err := l.TryAcquire(h.Context(), 0)
				if err == nil {
					err = inner.Release(ctx)
				}
				return errors.Join(err, h.Extend(ctx, 2*time.Second), h.Release(ctx))
			})
			call(func(ctx context.Context) error {
				h, err := l.Acquire(ctx)
				if err != nil {
					return err
				}
				time.Sleep(11 * time.Second)
				return h.Release(ctx)
			})
			call(func(ctx context.Context) error { _, err := admin.LockInfo(ctx, l); return err })
			call(func(ctx context.Context) error { _, err := admin.ForceRelease(ctx, l); return err })
		}
	}
	call(func(ctx context.Context) error {
		h, err := redlatch.MultiLock(c.Lock("a"), c.Lock("b"), c.FairLock("c")).Acquire(ctx)
		if err != nil {
			return err
		}
		return h.Release(ctx)
	})
	s, e := semaphore.New(c, "semaphore", 0), semaphore.NewExpirable(c, "permits", 0)
	for n := range 3 {
		call(func(ctx context.Context) error { _, err := s.TrySetPermits(ctx, 3); return err })
		call(func(ctx context.Context) error { return errors.Join(s.Acquire(ctx, n), s.Release(ctx, n)) })
		call(func(ctx context.Context) error { _, err := s.Available(ctx); return err })
		call(func(ctx context.Context) error { _, err := e.TrySetPermits(ctx, 3); return err })
		call(func(ctx context.Context) error {
			p, err := semaphore.NewExpirable(c, e.Name(), 0, redlatch.Lease(time.Second)).Acquire(ctx, 1)
			if err != nil {
				return err
			}
			return errors.Join(p.Extend(ctx, 2*time.Second), p.Release(ctx))
		})
		call(func(ctx context.Context) error {
			p, err := e.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			time.Sleep(11 * time.Second)
			return p.Release(ctx)
		})
		call(func(ctx context.Context) error { _, err := e.Available(ctx); return err })
	}
	l, r, b := latch.New(c, "latch"), ratelimit.New(c, "limiter", ratelimit.Rate{}), barrier.New(c, "barrier", 2)
	call(func(ctx context.Context) error { _, err := l.TrySetCount(ctx, 2); return err })
	call(l.CountDown)
	call(func(ctx context.Context) error { return l.Wait(ctx) })
	call(func(ctx context.Context) error {
		_, err := r.TrySetRate(ctx, ratelimit.Rate{Permits: 2, Interval: time.Second})
		return err
	})
	call(func(ctx context.Context) error { return errors.Join(r.Acquire(ctx, 2), r.Release(ctx, 1)) })
	call(func(ctx context.Context) error { _, err := r.Available(ctx); return err })
	call(func(ctx context.Context) error { _, err := r.Config(ctx); return err })
	call(func(ctx context.Context) error { _, err := b.Await(ctx); return err })
	call(func(ctx context.Context) error { _, err := b.Await(ctx); return err })
	for _, name := range []string{"lock", "semaphore", "permits", "latch", "limiter", "barrier"} {
		call(func(ctx context.Context) error { _, err := admin.New(c).Info(ctx, name); return err })
	}
	call(func(ctx context.Context) error {
		for _, err := range admin.New(c).Locks(ctx, "") {
			_ = err
		}
		for _, err := range admin.New(c).Objects(ctx, "") {
			_ = err
		}
		for _, err := range admin.New(c).Counters(ctx, "") {
			_ = err
		}
		return nil
	})
	wg.Wait()
}
