package redlatchtest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/semaphore"
)

// The clock of a synctest bubble is decades behind the one outside. A server that
// is asked by the wrong one of them forgets all that it has.
func TestLoseLeavesTheServersOfOtherBubblesAlone(t *testing.T) {
	ctx := context.Background()
	held, lost := make(chan bool), make(chan bool)
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		tell := sync.OnceFunc(func() { close(held) })
		defer tell()
		synctest.Test(t, func(t *testing.T) {
			c := NewClient(t, redlatch.Config{})
			h, err := c.Lock("mine").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p, err := semaphore.NewExpirable(c, "mine too", 1).Acquire(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			tell()
			<-lost
			time.Sleep(15 * time.Second)
			if err := errors.Join(h.Err(), p.Err(), h.Release(ctx), p.Release(ctx)); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("outside", func(t *testing.T) {
		t.Parallel()
		c := NewClient(t, redlatch.Config{})
		<-held
		defer close(lost)
		for range 20 { // it is chance in which order the servers are asked
			h, err := c.Lock("other").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			Lose(h)
			p, err := semaphore.NewExpirable(c, "another", 1).Acquire(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			Lose(p)
		}
	})
}

// lostWithin has a client of any driver lose something, and checks that it knows
// soon.
func lostWithin(t *testing.T, limit time.Duration, h *redlatch.Hold) {
	t.Helper()
	start := time.Now()
	Lose(h)
	if d := time.Since(start); d > limit || !errors.Is(h.Err(), redlatch.ErrLost) {
		t.Errorf("after %v: %v", d, h.Err())
	}
}

// Nothing tells a driver that is not of this package, or the holder of a lease,
// that something was lost.
func TestALossIsNoticedWithAnyDriver(t *testing.T) {
	ctx := context.Background()
	for name, x := range map[string]struct {
		lock   []redlatch.PlainOption
		permit []redlatch.HoldOption
	}{
		"watchdog": {},
		"lease":    {[]redlatch.PlainOption{redlatch.Lease(time.Hour)}, []redlatch.HoldOption{redlatch.Lease(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			synctest.Test(t, func(t *testing.T) {
				s := NewServer(t)
				r, err := redlatchrueidis.New(rueidis.ClientOption{
					InitAddress: []string{"embedded"}, ForceSingleClient: true,
					DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
						return s.Dial(ctx)
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				c, err := redlatch.New(r, redlatch.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				h, err := c.Lock("x", x.lock...).Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				lostWithin(t, time.Second, h)
				p, err := semaphore.NewExpirable(c, "s", 2, x.permit...).Acquire(ctx, 1)
				if err != nil {
					t.Fatal(err)
				}
				lostWithin(t, time.Second, p)
			})
		})
	}
}

// A holder's own loss is no outage for others.
func TestLoseBreaksNobodysConnection(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s := NewServer(t)
		r := s.Redis()
		breaks := 0
		defer r.OnBreak(func(string) { breaks++ })()
		c, err := redlatch.New(r, redlatch.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		h, err := c.Lock("x").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		Lose(h)
		synctest.Wait()
		if breaks > 0 {
			t.Errorf("%d connections broke", breaks)
		}
	})
}

// Nobody here is told of the loss of a detached permit or lock, so there is
// nothing to wait for.
func TestLoseDoesNotWaitForWhatWasDetached(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := NewClient(t, redlatch.Config{})
		outer, err := c.Lock("x").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s := semaphore.NewExpirable(c, "s", 1, redlatch.Lease(time.Hour))
		permit := func() (*redlatch.Hold, error) { return s.Acquire(outer.Context(), 1) }
		lock := func() (*redlatch.Hold, error) { return c.Lock("y", redlatch.Lease(time.Hour)).Acquire(outer.Context()) }
		itself := func(p *redlatch.Hold) *redlatch.Hold { return p }
		itsContexts := func(p *redlatch.Hold) *redlatch.Hold { return redlatch.HoldFrom(p.Context()) }
		for name, x := range map[string]struct {
			acquire func() (*redlatch.Hold, error)
			lost    func(p *redlatch.Hold) *redlatch.Hold
		}{
			"a permit":              {permit, itself},
			"a context of a permit": {permit, itsContexts},
			"a lock":                {lock, itself},
			"a context of a lock":   {lock, itsContexts},
		} {
			p, err := x.acquire()
			if err != nil {
				t.Fatal(name, err)
			}
			if _, err := p.Detach(); err != nil {
				t.Fatal(name, err)
			}
			start := time.Now()
			Lose(x.lost(p))
			if d := time.Since(start); d > 0 {
				t.Errorf("%s: Lose waited for %v", name, d)
			}
			if err := p.Release(ctx); !errors.Is(err, redlatch.ErrNotHeld) {
				t.Errorf("%s: its release returned %v, want ErrNotHeld", name, err)
			}
		}
		if err := outer.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Whoever is told that one of several permits is lost releases the others at once,
// while Lose still takes them.
func TestLoseOfSeveralTakesAllBeforeTheHolderReacts(t *testing.T) {
	for range 20 {
		c := NewClient(t, redlatch.Config{})
		err := semaphore.NewExpirable(c, "s", 3).Do(t.Context(), 3, func(ctx context.Context) error {
			Lose(redlatch.HoldFrom(ctx))
			return nil
		})
		if !errors.Is(err, redlatch.ErrLost) {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		held := make(chan *redlatch.Hold, 1)
		go func() {
			done <- semaphore.NewExpirable(c, "t", 3).Do(context.WithoutCancel(t.Context()), 3, func(ctx context.Context) error {
				held <- redlatch.HoldFrom(ctx)
				<-ctx.Done()
				return nil
			})
		}()
		Lose(<-held)
		if err := <-done; !errors.Is(err, redlatch.ErrLost) {
			t.Fatal(err)
		}
	}
}
