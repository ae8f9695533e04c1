package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// user is a client of the test's own.
func (r *redis) user(t *testing.T, name string) *redlatch.Client {
	t.Helper()
	c, err := redlatchrueidis.Open(r.url, redlatch.Config{Identity: redlatch.Identity{Name: name}, CallSites: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Two programs that wait for each other are shown, with who they are and where
// they wait. Whoever waits for them without having anything is none of it.
func TestAPossibleDeadlockIsShown(t *testing.T) {
	long(t)
	t.Parallel()
	r := newRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	waits := 0
	wait := func(ctx context.Context, l *redlatch.Lock) {
		waits++
		go func() {
			_, err := l.Acquire(ctx)
			ended <- err
		}()
	}
	billing, shipping := r.user(t, "billing"), r.user(t, "shipping")
	take := func(c *redlatch.Client, name string) *redlatch.Hold {
		h, err := c.Lock(name).Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	orders, stock := take(billing, "orders"), take(shipping, "stock")
	wait(orders.With(ctx), billing.Lock("stock"))
	wait(ctx, shipping.Lock("orders"))
	eventually(t, "both wait", func() bool {
		return len(document[overview.Lock](t, r.asked(t, "show", "orders", "-o", "json")).Waiting) == 1 &&
			len(document[overview.Lock](t, r.asked(t, "show", "stock", "-o", "json")).Waiting) == 1
	})
	for _, name := range []string{"orders", "stock"} {
		if res := r.run(t, "show", name); strings.Contains(res.out, "possible deadlock") {
			t.Errorf("nobody waits for billing and has something: %+v", res)
		}
	}

	wait(stock.With(ctx), shipping.Lock("orders"))
	eventually(t, "both wait for each other", func() bool {
		return len(document[overview.Lock](t, r.asked(t, "show", "orders", "-o", "json")).Deadlocks) == 1
	})
	for name, want := range map[string]*redlatch.Hold{"orders": orders, "stock": stock} {
		circles := document[overview.Lock](t, r.asked(t, "show", name, "-o", "json")).Deadlocks
		if len(circles) != 1 || len(circles[0]) != 2 {
			t.Fatalf("%s: %+v", name, circles)
		}
		for _, w := range circles[0] {
			if w.Name == name && (w.Holder != want.ID() || w.Waited < overview.Standing.Milliseconds() || !strings.Contains(w.WaitSite, "deadlock_test.go:") || !strings.Contains(w.HoldSite, "deadlock_test.go:")) {
				t.Errorf("%s: %+v", name, w)
			}
		}
	}
	res := r.run(t, "show", "stock")
	contains(t, res.out, "\ndeadlock  possible deadlock of 2 callers:\n", "billing@", " waits for stock, for ", "; held by shipping@", " waits for orders, for ", "; held by billing@")
	t.Log("\n" + res.out)

	j := start(t, r.command("ls", "--watch", "--interval", "1s"))
	j.says("redlatch: possible deadlock: ")
	j.signal(os.Interrupt)
	j.ends(0)

	cancel()
	for range waits {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	for _, h := range []*redlatch.Hold{orders, stock} {
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
