package clients

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// forEver stands for the verbs that take no time.
const forEver = 100 * 365 * 24 * time.Hour

// A subject is something that can be acquired, of any type. It is free at first.
type subject struct {
	want    observe.AcquireStartEvent // what is told of it
	acquire func(ctx context.Context, wait time.Duration) (held, error)
	take    func() // another process takes it
	free    func() // makes it free, if it is not that at first; may be nil
	clients []*redlatch.Client
}

// held is a hold of any type; nil if there is nothing to hold.
type held interface {
	Context() context.Context
	Release(ctx context.Context) error
}

// subjects makes subjects of all types. The first client is observed.
var subjects = subjectsOf()

func subjectsOf() map[string]func(w *locktest.World, o *observer) subject {
	all := map[string]func(w *locktest.World, o *observer) subject{
		"striped": ofLock(redlatch.KindLock, "", func(c *redlatch.Client, name string) *redlatch.Lock { return c.StripedLock(name, 1).For("x") }),
		"multi": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			m := redlatch.MultiLock(c.Lock("a"), c.FairLock("b"))
			want := observe.AcquireStartEvent{Name: "a,b", Kind: redlatch.KindMultiLock}
			return subject{want, multi(m), func() { w.Acquire(bg, other.FairLock("b")) }, nil, []*redlatch.Client{c}}
		},
		"red": func(w *locktest.World, o *observer) subject {
			a, b, c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			m := redlatch.RedLock(a.Lock("a"), b.Lock("b"), c.Lock("c"))
			want := observe.AcquireStartEvent{Name: "a,b,c", Kind: redlatch.KindRedLock}
			return subject{want, multi(m), func() { w.Acquire(bg, other.Lock("b")); w.Acquire(bg, other.Lock("c")) }, nil, []*redlatch.Client{a, b, c}}
		},
		"semaphore": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			w.SetPermits(semaphore.New(other, "jobs", 0), 2)
			want := observe.AcquireStartEvent{Name: "jobs", Kind: redlatch.KindSemaphore, N: 2}
			return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
				if wait == forEver {
					return nil, semaphore.New(c, "jobs", 0).Acquire(ctx, 2)
				}
				return nil, semaphore.New(c, "jobs", 0).TryAcquire(ctx, 2, wait)
			}, func() { w.OK(semaphore.New(other, "jobs", 0).Acquire(bg, 1)) }, nil, []*redlatch.Client{c}}
		},
		"expirable": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			w.Permits(other, 1)
			want := observe.AcquireStartEvent{Name: locktest.Pool, Kind: redlatch.KindExpirable, N: 1}
			return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
				if wait == forEver {
					return some(semaphore.NewExpirable(c, locktest.Pool, 0).Acquire(ctx, 1))
				}
				return some(semaphore.NewExpirable(c, locktest.Pool, 0).TryAcquire(ctx, 1, wait))
			}, func() { w.Permit(semaphore.NewExpirable(other, locktest.Pool, 0)) }, nil, []*redlatch.Client{c}}
		},
		"limiter": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			w.SetRate(ratelimit.New(other, "api", ratelimit.Rate{}), ratelimit.Rate{Permits: 3, Interval: time.Hour})
			want := observe.AcquireStartEvent{Name: "api", Kind: redlatch.KindRateLimiter, N: 3}
			return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
				if wait == forEver {
					return nil, ratelimit.New(c, "api", ratelimit.Rate{}).Acquire(ctx, 3)
				}
				return nil, ratelimit.New(c, "api", ratelimit.Rate{}).TryAcquire(ctx, 3, wait)
			}, func() { w.OK(ratelimit.New(other, "api", ratelimit.Rate{}).Acquire(bg, 1)) }, nil, []*redlatch.Client{c}}
		},
		"latch": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			want := observe.AcquireStartEvent{Name: "ready", Kind: redlatch.KindLatch}
			return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
				return nil, latch.New(c, "ready").Wait(ctx)
			}, func() {
				_, err := latch.New(other, "ready").TrySetCount(bg, 1)
				w.OK(err)
			}, nil, []*redlatch.Client{c}}
		},
		"barrier": func(w *locktest.World, o *observer) subject {
			c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
			want := observe.AcquireStartEvent{Name: "step", Kind: redlatch.KindBarrier}
			return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
				_, err := barrier.New(c, "step", 2).Await(ctx)
				return nil, err
			}, func() {}, func() { go func() { _, _ = barrier.New(other, "step", 2).Await(bg) }() }, []*redlatch.Client{c}}
		},
	}
	kinds := map[string]struct {
		kind redlatch.Kind
		mode string
	}{
		"lock": {kind: redlatch.KindLock}, "fair": {kind: redlatch.KindFair}, "spin": {kind: redlatch.KindLock}, "fenced": {kind: redlatch.KindFenced},
		"group": {kind: redlatch.KindGroup}, "write": {redlatch.KindReadWrite, "write"}, "read": {redlatch.KindReadWrite, "read"}, "non-re-entry": {kind: redlatch.KindLock},
	}
	for name, of := range locktest.MemberKinds {
		all[name] = ofLock(kinds[name].kind, kinds[name].mode, of)
	}
	return all
}

func ofLock(kind redlatch.Kind, mode string, of func(*redlatch.Client, string) *redlatch.Lock) func(w *locktest.World, o *observer) subject {
	return func(w *locktest.World, o *observer) subject {
		c, other := w.Client(redlatch.Config{}, o.events), w.Client(redlatch.Config{})
		l, obstacle := of(c, "orders"), of(other, "orders")
		if mode == "read" {
			obstacle = other.ReadWriteLock("orders").Write()
		}
		want := observe.AcquireStartEvent{Name: l.Name(), Kind: kind, Mode: mode}
		return subject{want, func(ctx context.Context, wait time.Duration) (held, error) {
			if wait == forEver {
				return some(l.Acquire(ctx))
			}
			return some(l.TryAcquire(ctx, wait))
		}, func() { w.Acquire(bg, obstacle) }, nil, []*redlatch.Client{c}}
	}
}

func multi(m *redlatch.Lock) func(ctx context.Context, wait time.Duration) (held, error) {
	return func(ctx context.Context, wait time.Duration) (held, error) {
		if wait == forEver {
			return some(m.Acquire(ctx))
		}
		return some(m.TryAcquire(ctx, wait))
	}
}

// some is a hold, or nil.
func some[H held](h H, err error) (held, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}
