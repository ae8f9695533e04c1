package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestEveryTypeHeedsEveryOption: a lease is that of its acquisition, with every
// type, on every way to it, and does not leak into the next one.
func TestEveryTypeHeedsEveryOption(t *testing.T) {
	types := map[string]func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock{
		"Lock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.Lock("a", plain(opts)...)
		},
		"Lock, NonReentrant": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.Lock("a", plain(append(opts, redlatch.NonReentrant()))...)
		},
		"FairLock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock { return c.FairLock("a", opts...) },
		"NonReentrantFairLock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.FairLock("a", append(opts, redlatch.NonReentrant())...)
		},
		"Lock, Fenced": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.Lock("a", plain(append(opts, redlatch.Fenced()))...)
		},
		"SpinLock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return redisson.SpinLock(c, "a", nil, plain(opts)...)
		},
		"StripedLock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.StripedLock("a", 7, plain(opts)...).For("key")
		},
		"Read": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.ReadWriteLock("a", opts...).Read()
		},
		"Write": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.ReadWriteLock("a", opts...).Write()
		},
		"Write, preferred": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return c.ReadWriteLock("a", opts...).PreferWriters().Write()
		},
		"GroupLock": func(c *redlatch.Client, opts ...redlatch.LockOption) *redlatch.Lock {
			return redisson.GroupLock(c, "a", []string{"1", "2"}, opts...)
		},
	}
	const lease = 7 * time.Second
	options := map[string]struct {
		once   bool
		wait   time.Duration
		leased bool
		fenced bool
		opts   []redlatch.LockOption
	}{
		"nothing":         {},
		"Try":             {once: true},
		"Lease":           {leased: true, opts: []redlatch.LockOption{redlatch.Lease(lease)}},
		"Wait":            {wait: time.Second},
		"Lease, Wait":     {wait: time.Second, leased: true, opts: []redlatch.LockOption{redlatch.Lease(lease)}},
		"Try, Lease":      {once: true, leased: true, opts: []redlatch.LockOption{redlatch.Lease(lease)}},
		"Fenced":          {fenced: true, opts: []redlatch.LockOption{redlatch.Fenced()}},
		"Fenced, Lease":   {fenced: true, leased: true, opts: []redlatch.LockOption{redlatch.Fenced(), redlatch.Lease(lease)}},
		"Try, all others": {once: true, fenced: true, leased: true, opts: []redlatch.LockOption{redlatch.Lease(lease), redlatch.Fenced()}},
	}
	for typ, of := range types {
		for name, x := range options {
			t.Run(typ+"/"+name, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c, rival := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
					l := of(c, x.opts...)
					acquire := l.Acquire
					if x.once || x.wait > 0 {
						acquire = func(ctx context.Context) (*redlatch.Hold, error) { return l.TryAcquire(ctx, x.wait) }
					}
					h, err := acquire(bg)
					if err != nil {
						t.Fatal(err)
					}
					if got := h.Token() > 0; got != ((x.fenced || typ == "Lock, Fenced") && typ != "Read") {
						t.Errorf("token %d", h.Token())
					}
					want := 30 * time.Second
					if x.leased {
						want = lease
					}
					margin := 10*time.Millisecond + want/50
					if left := time.Until(h.Expires()); left != want-margin {
						t.Errorf("trusted for %v, want %v", left, want-margin)
					}
					if _, bounded := h.Context().Deadline(); bounded {
						t.Error("the context has a deadline")
					}
					other := of(rival)
					if typ == "Read" {
						other = rival.ReadWriteLock("a").Write()
					}
					if _, err := other.TryAcquire(bg, time.Second); !errors.Is(err, redlatch.ErrBusy) {
						t.Errorf("another client: %v", err)
					}
					time.Sleep(want)
					if ended := h.Err() != nil; ended != x.leased {
						t.Errorf("after %v: %v", want, h.Err())
					}
					_ = h.Release(bg)
					next := w.Acquire(bg, of(c))
					if left := time.Until(next.Expires()); left < 29*time.Second {
						t.Errorf("the next hold, without a lease, is trusted for %v", left)
					}
					w.Release(next)
				})
			})
		}
	}
}

// plain are the same options, for locks that take more of them.
func plain(opts []redlatch.LockOption) []redlatch.PlainOption {
	all := make([]redlatch.PlainOption, len(opts))
	for i, o := range opts {
		all[i] = o
	}
	return all
}
