// Package prom tests the metrics of clients, with an embedded server; and the
// alert rules and the dashboard, with a real Prometheus.
package prom

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/redlatchprom"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// watched returns a client of which m tells everything.
func watched(w *locktest.World, m *redlatchprom.Metrics) *redlatch.Client {
	w.Helper()
	c := w.Client(redlatch.Config{})
	m.Watch(c)
	return c
}

// series returns what Prometheus sees of these metrics, without their help: a line
// for each, histograms as their counts and sums.
func series(w *locktest.World, g prometheus.Gatherer, names ...string) string {
	w.Helper()
	families, err := g.Gather()
	w.OK(err)
	var text strings.Builder
	for _, name := range names {
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			for _, metric := range family.GetMetric() {
				var labels []string
				for _, l := range metric.GetLabel() {
					if l.GetValue() != "" {
						labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
					}
				}
				fmt.Fprintf(&text, "%s{%s}", strings.TrimPrefix(name, "redlatch_"), strings.Join(labels, ","))
				switch {
				case metric.GetHistogram() != nil:
					h := metric.GetHistogram()
					fmt.Fprintf(&text, " %d times %v\n", h.GetSampleCount(), time.Duration(h.GetSampleSum()*float64(time.Second)).Round(100*time.Millisecond))
				case metric.GetCounter() != nil:
					fmt.Fprintf(&text, " %v\n", metric.GetCounter().GetValue())
				default:
					fmt.Fprintf(&text, " %v\n", metric.GetGauge().GetValue())
				}
			}
		}
	}
	return text.String()
}

func registered(w *locktest.World, all ...prometheus.Collector) *prometheus.Registry {
	w.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range all {
		w.OK(registry.Register(c))
	}
	return registry
}

// The figures are those of a story: an acquisition, two that gave up, a loss.
func TestMetricsTellWhatHappened(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := redlatchprom.New(redlatchprom.Options{Name: redlatchprom.Only("orders")})
		registry := registered(w, m)
		c := watched(w, m)
		other := w.Client(redlatch.Config{})

		h := w.Acquire(bg, c.Lock("orders"))
		_, err := c.Lock("orders").TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		time.Sleep(5 * time.Second)
		w.Release(h)

		writer := w.Acquire(bg, other.ReadWriteLock("accounts").Write())
		_, err = c.ReadWriteLock("accounts").Read().TryAcquire(bg, 2*time.Second)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(writer)

		lost := w.Acquire(bg, c.Lock("orders"))
		w.Server.Del("orders")
		<-lost.Context().Done() // with its renewal
		synctest.Wait()

		want := `acquisitions_total{kind="lock",name="orders",outcome="acquired"} 2
acquisitions_total{kind="lock",name="orders",outcome="busy"} 1
acquisitions_total{kind="read-write lock",mode="read",outcome="timed_out"} 1
acquire_wait_seconds{kind="lock",name="orders",outcome="acquired"} 2 times 0s
acquire_wait_seconds{kind="lock",name="orders",outcome="busy"} 1 times 0s
acquire_wait_seconds{kind="read-write lock",mode="read",outcome="timed_out"} 1 times 2s
hold_seconds{kind="lock",name="orders",reason="lost"} 1 times 10s
hold_seconds{kind="lock",name="orders",reason="released"} 1 times 5s
lost_total{reason="expired"} 0
lost_total{reason="gone"} 1
lost_total{reason="lease over"} 0
lost_total{reason="max hold"} 0
lost_total{reason="revoked"} 0
`
		got := series(w, registry, "redlatch_acquisitions_total", "redlatch_acquire_wait_seconds", "redlatch_hold_seconds", "redlatch_lost_total")
		if got != want {
			t.Errorf("Prometheus sees\n%s, want\n%s", got, want)
		}
		problems, err := testutil.GatherAndLint(registry)
		w.OK(err)
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// What is held and waited for now is that of all clients, while they are watched.
func TestGaugesAddUpWatchedClients(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := redlatchprom.New(redlatchprom.Options{})
		registry := registered(w, m)
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		stop := m.Watch(a)
		once := m.Watch(b)
		m.Watch(b) // which is collected once

		w.Acquire(bg, a.FairLock("x"))
		w.Acquire(bg, a.Lock("y"))
		w.Acquire(bg, b.Lock("z"))
		w.Permit(w.Permits(b, 1))
		ctx, cancel := context.WithCancel(bg)
		waiter := w.Waiting(ctx, b.FairLock("x"))

		names := []string{"redlatch_clients", "redlatch_held", "redlatch_permits", "redlatch_waiters", "redlatch_renewals_due"}
		want := "clients{} 2\nheld{} 3\npermits{} 1\nwaiters{} 1\nrenewals_due{} 0\n"
		if got := series(w, registry, names...); got != want {
			t.Errorf("Prometheus sees\n%s, want\n%s", got, want)
		}
		stop()
		stop()
		once() // the other one has not stopped
		want = "clients{} 1\nheld{} 1\npermits{} 1\nwaiters{} 1\nrenewals_due{} 0\n"
		if got := series(w, registry, names...); got != want {
			t.Errorf("with one of them watched, Prometheus sees\n%s, want\n%s", got, want)
		}
		cancel()
		<-waiter
	})
}

// A server that is silent shows in the renewals, long before anything is lost.
func TestAnOutageShowsBeforeItCostsAHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := redlatchprom.New(redlatchprom.Options{})
		registry := registered(w, m)
		h := w.Acquire(bg, watched(w, m).Lock("orders"))
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(18 * time.Second)
		if err := h.Err(); err != nil {
			t.Fatal(err)
		}
		read := func(name string) (v float64) {
			if _, err := fmt.Sscanf(strings.TrimPrefix(series(w, registry, name), strings.TrimPrefix(name, "redlatch_")+"{} "), "%g", &v); err != nil {
				t.Fatal(name, err)
			}
			return v
		}
		if n := read("redlatch_renewals_failed_total"); n < 1 {
			t.Errorf("%v renewals failed", n)
		}
		if n := read("redlatch_renewals_due"); n != 1 {
			t.Errorf("%v renewals are due, want 1", n)
		}
		if lag := read("redlatch_renewal_lag_ratio"); lag < 0.6 || lag > 0.63 {
			t.Errorf("the lag is %v after 18 s of 30", lag)
		}
		w.Server.SetError("")
		time.Sleep(10 * time.Second)
		if lag := read("redlatch_renewal_lag_ratio"); lag > 0.36 {
			t.Errorf("after the outage the lag is %v", lag)
		}
		w.Release(h)
	})
}

// Clients that have labels of their own share a registry.
func TestClientsCanBeToldApart(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		registry := prometheus.NewPedanticRegistry()
		for _, name := range []string{"orders", "users"} {
			m := redlatchprom.New(redlatchprom.Options{})
			w.OK(prometheus.WrapRegistererWith(prometheus.Labels{"client": name}, registry).Register(m))
			w.Release(w.Acquire(bg, watched(w, m).Lock(name)))
		}
		want := `acquisitions_total{client="orders",kind="lock",outcome="acquired"} 1
acquisitions_total{client="users",kind="lock",outcome="acquired"} 1
clients{client="orders"} 1
clients{client="users"} 1
`
		if got := series(w, registry, "redlatch_acquisitions_total", "redlatch_clients"); got != want {
			t.Errorf("Prometheus sees\n%s, want\n%s", got, want)
		}
	})
}

// To be collected keeps nobody from acquiring, nor the other way round.
func TestMetricsAreGatheredWhileLocksAreAcquired(t *testing.T) {
	w := locktest.InRealTime(t)
	m := redlatchprom.New(redlatchprom.Options{Name: func(name string) string { return name }})
	registry := registered(w, m)
	const callers, pairs = 4, 50
	ended := make(chan error)
	for i := range callers {
		c := watched(w, m)
		go func() {
			for range pairs {
				if err := c.Lock(fmt.Sprint("lock ", i%2)).Do(bg, func(context.Context) error { return nil }); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for left := callers; left > 0; {
		select {
		case err := <-ended:
			w.OK(err)
			left--
		default:
			_, err := registry.Gather()
			w.OK(err)
		}
	}
	n := 0
	for line := range strings.Lines(series(w, registry, "redlatch_hold_seconds")) {
		var name string
		var times int
		if _, err := fmt.Sscanf(line, `hold_seconds{kind="lock",name="lock %1s",reason="released"} %d times`, &name, &times); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		n += times
	}
	if n != callers*pairs {
		t.Errorf("%d holds were told, want %d", n, callers*pairs)
	}
}

// A client is watched from New or Watch on until all have stopped that, however
// often.
func TestAClientIsCountedOnceUntilNobodyWatchesIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		m := redlatchprom.New(redlatchprom.Options{}, c)
		registry := registered(w, m)
		stop, again := m.Watch(other), m.Watch(other)
		want := func(when string, times, clients int) {
			t.Helper()
			for _, c := range []*redlatch.Client{c, other} {
				h := w.Acquire(bg, c.Lock("orders"))
				w.Release(h)
			}
			got := series(w, registry, "redlatch_acquisitions_total", "redlatch_clients")
			if want := fmt.Sprintf("acquisitions_total{kind=\"lock\",outcome=\"acquired\"} %d\nclients{} %d\n", times, clients); got != want {
				t.Errorf("%s:\n%s, want\n%s", when, got, want)
			}
		}
		want("both", 2, 2)
		m.Watch(c)
		stop()
		stop()
		want("watched once more", 4, 2)
		again()
		want("one left", 5, 1)
		m.Watch(other)
		want("watched anew", 7, 2)
	})
}

// An election is told of while a candidate of this process runs: two series of the
// same labels would spoil the whole scrape.
func TestMetricsTellWhoLeads(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		as := func(name string) string { kind, _, _ := strings.Cut(name, ":"); return kind }
		m, short := redlatchprom.New(redlatchprom.Options{}), redlatchprom.New(redlatchprom.Options{Name: as})
		registry, shortly := registered(w, m), registered(w, short)
		one, two := watched(w, m), watched(w, m)
		short.Watch(one)
		want := func(g prometheus.Gatherer, text string) {
			t.Helper()
			if got := series(w, g, "redlatch_leader"); got != text {
				t.Errorf("Prometheus sees\n%s, want\n%s", got, text)
			}
		}
		want(registry, "")
		ctx, stop := context.WithCancel(bg)
		defer stop()
		run := func(c *redlatch.Client, name string) (end func()) {
			ctx, stop := context.WithCancel(ctx)
			ended := locktest.Later(func() error {
				return election.New(c, name).Run(ctx, func(ctx context.Context, _ int64) error { <-ctx.Done(); return nil })
			})
			time.Sleep(time.Second)
			return func() { stop(); w.WantErr(<-ended, context.Canceled) }
		}
		foreign := run(w.Client(redlatch.Config{}), "shard:1")
		ends := []func(){run(one, "shard:1"), run(one, "shard:2"), run(two, "shard:2"), run(one, "bad\x00\xff")}
		want(registry, "leader{name=\"bad\uFFFD\uFFFD\"} 1\nleader{name=\"shard:1\"} 0\nleader{name=\"shard:2\"} 1\n")
		want(shortly, "leader{name=\"bad\uFFFD\uFFFD\"} 1\nleader{name=\"shard\"} 1\n")
		ends[1]() // the other client of this process follows
		time.Sleep(time.Second)
		want(registry, "leader{name=\"bad\uFFFD\uFFFD\"} 1\nleader{name=\"shard:1\"} 0\nleader{name=\"shard:2\"} 1\n")
		want(shortly, "leader{name=\"bad\uFFFD\uFFFD\"} 1\nleader{name=\"shard\"} 0\n")
		foreign()
		time.Sleep(time.Second)
		want(shortly, "leader{name=\"bad\uFFFD\uFFFD\"} 1\nleader{name=\"shard\"} 1\n")
		for _, end := range []func(){ends[0], ends[2], ends[3]} {
			end()
		}
		want(registry, "")
		want(shortly, "")
	})
}
