package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// A world is a server with clients, and the pages, mounted somewhere in a program.
type world struct {
	*testing.T

	redis *testserver.Server
	web   *httptest.Server
	pages *dashboard.Handler
	url   string // of the list

	ctx  context.Context //nolint:containedctx // of those who wait
	end  context.CancelFunc
	work sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a browser")
	}
	w := &world{T: t, redis: testserver.Start(t, testserver.Redis)}
	w.ctx, w.end = context.WithCancel(bg)
	client := w.client("dashboard", redlatch.Config{SlowWait: time.Second, OutageTimeout: time.Second})
	w.pages = dashboard.New(client, dashboard.Options{Interval: time.Second, Server: "redis://" + w.redis.Addr()})
	mux := http.NewServeMux()
	mux.Handle("/some/where/", http.StripPrefix("/some/where", w.pages))
	w.web = httptest.NewServer(mux)
	w.url = w.web.URL + "/some/where/"
	t.Cleanup(func() {
		w.end()
		w.pages.Close()
		w.web.Close()
		w.work.Wait()
	})
	return w
}

// client returns one that says that this is its name.
func (w *world) client(name string, cfg redlatch.Config) *redlatch.Client {
	w.Helper()
	cfg.Identity = redlatch.Identity{Name: name, Host: "host-7", PID: 4121}
	cfg.CallSites = true
	c, err := redlatch.New(drivers.Rueidis.Open(w, drivers.Single(w.redis.Addr())), cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// hold acquires a lock, for as long as the test lasts unless it is released
// before.
func (w *world) hold(ctx context.Context, c *redlatch.Client, name string) *redlatch.Hold {
	w.Helper()
	h, err := c.Lock(name).Acquire(ctx)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = h.Release(bg) })
	return h
}

// wait has a caller wait for a lock, and keep it, until the test ends.
func (w *world) wait(ctx context.Context, c *redlatch.Client, name string) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.ctx, cancel)
	w.work.Go(func() {
		defer stop()
		defer cancel()
		if h, err := c.Lock(name).Acquire(ctx); err == nil {
			<-ctx.Done()
			_ = h.Release(bg)
		}
	})
}

// redisson holds a lock as a client of Redisson does, which nobody can ask.
func (w *world) redisson(name string) {
	w.redis.MustDo("HSET", name, "5f1b3c2e-6d0a-4d8e-9a51-0123456789ab:63", "1")
	w.redis.MustDo("PEXPIRE", name, "3600000")
}

// long is a name that is longer than any telephone is wide.
var long = "a-name-without-a-blank-" + strings.Repeat("0123456789", 15)

// crowd is what there is to see: who waits for whom, and for whom nobody waits.
func (w *world) crowd() {
	billing, shipping, reports := w.client("billing", redlatch.Config{}), w.client("shipping", redlatch.Config{}), w.client("reports", redlatch.Config{})
	orders, stock := w.hold(bg, billing, "orders:42"), w.hold(bg, shipping, "stock")
	w.wait(stock.Context(), shipping, "orders:42")
	w.wait(orders.Context(), billing, "stock")
	w.wait(bg, reports, "orders:42")
	w.hold(bg, reports, "jobs:nightly")
	w.redisson("jobs:import")
	w.redisson(long)
	w.redisson(strings.Repeat("\u6f22\u5b57", 40))
}
