package clients

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// healthy asks as a probe does, and says how long that took.
func healthy(c *redlatch.Client) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	start := time.Now()
	err := c.Healthy(ctx)
	return time.Since(start), err
}

// wantSaid checks that an error has these sentences, in this order, and no others.
func wantSaid(w *locktest.World, err error, sentences ...string) {
	w.Helper()
	var said []string
	if err != nil {
		said = strings.Split(err.Error(), "\n")
	}
	if len(said) != len(sentences) {
		w.Fatalf("said %q, want %q", said, sentences)
	}
	for i, want := range sentences {
		if !strings.Contains(said[i], want) {
			w.Errorf("said %q, want %q", said[i], want)
		}
	}
}

// A program that has only just started, and wants no lock yet, was never ready.
func TestAClientThatHasNeverAskedIsHealthy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for range 3 {
			_, err := healthy(c)
			w.OK(err)
			time.Sleep(time.Minute)
		}
		if keys := w.Server.Keys(); len(keys) > 0 {
			t.Errorf("to ask has left %q", keys)
		}
		w.WantErr(c.Healthy(nil), redlatch.ErrInvalid) //nolint:staticcheck // on purpose
	})
}

// In an outage a probe is answered in its time, and the client is healthy again
// soon after it. Its hold lives on.
func TestAClientIsNotHealthyInAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		_, err := healthy(c)
		w.OK(err)

		p.Blackhole(true)
		took, err := healthy(c)
		w.WantErr(err, redlatch.ErrUnavailable, context.DeadlineExceeded)
		wantSaid(w, err, "server unavailable")
		if took > time.Second+20*time.Millisecond {
			t.Errorf("a probe took %v", took)
		}
		time.Sleep(16 * time.Second)
		_, err = healthy(c)
		w.WantErr(err, redlatch.ErrUnavailable)
		wantSaid(w, err, "server unavailable", "renewals are late: of 1 holds and permits, one was confirmed 1") // no rights would mend that

		p.Blackhole(false)
		p.BreakAll()
		time.Sleep(5 * time.Second)
		_, err = healthy(c)
		w.OK(err)
		w.OK(h.Err())
		w.Release(h)
	})
}

// A server that refuses a client answers, and the client is of no use.
func TestAClientThatTheServerRefusesIsNotHealthy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Server.SetError("NOPERM this user has no permissions to run the 'evalsha' command")
		took, err := healthy(c)
		wantSaid(w, err, "NOPERM")
		if errors.Is(err, redlatch.ErrUnavailable) || took > 100*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		w.Server.SetError("")
		_, err = healthy(c)
		w.OK(err)
	})
}

// Renewals that fail beside a server that answers everything else went unnoticed
// until the hold was lost.
func TestAClientWhoseRenewalsAreLateIsNotHealthy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var stalls atomic.Bool
		c := w.Tapped(redlatch.Config{WatchdogTimeout: 30 * time.Second}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if stalls.Load() && strings.HasSuffix(script, ".renew") {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		h, leased := w.Acquire(bg, c.Lock("orders")), w.Acquire(bg, c.Lock("report", redlatch.Lease(20*time.Second)))
		for range 60 { // also just before each renewal
			time.Sleep(time.Second)
			_, err := healthy(c)
			w.OK(err)
		}
		w.WantErr(leased.Release(bg), redlatch.ErrLost) // what is not to be renewed is never late
		synctest.Wait()                                 // for the renewal that is due now
		stalls.Store(true)
		confirmed := h.Expires()
		time.Sleep(time.Until(confirmed.Add(-16 * time.Second)))
		_, err := healthy(c)
		w.OK(err) // a renewal has failed, and there is time to try again
		time.Sleep(3 * time.Second)
		_, err = healthy(c)
		wantSaid(w, err, "renewals are late: of 1 holds and permits, one was confirmed 16")
		stalls.Store(false)
		time.Sleep(2 * time.Second)
		_, err = healthy(c)
		w.OK(err)
		w.OK(h.Err())
		w.Release(h)
	})
}

// A user that may not subscribe waits by polling, which nobody noticed.
func TestAClientWhoseSubscriptionsAreMissingIsNotHealthy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		var refuses atomic.Bool
		refuses.Store(true)
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if refuses.Load() && r.Args[0] == "SUBSCRIBE" {
				return faultnet.DropReply
			}
			return faultnet.Pass
		})
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		_, err := healthy(c)
		w.OK(err) // it may take a while
		time.Sleep(4 * time.Second)
		_, err = healthy(c)
		wantSaid(w, err, "has not confirmed 1 of them for 3s")
		refuses.Store(false)
		time.Sleep(5 * time.Second)
		_, err = healthy(c)
		w.OK(err)
	})
}

// A process that ends gets no requests any more, and its holders end in peace.
func TestAClientThatIsShutDownIsNotHealthy(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		ended := locktest.Later(func() error { return c.Shutdown(bg) })
		synctest.Wait()
		p.Record(true)
		took, err := healthy(c)
		w.WantErr(err, redlatch.ErrClosed)
		if took > 0 || len(p.Requests()) > 0 {
			t.Errorf("after %v, with %v", took, p.Requests())
		}
		w.Release(h)
		w.OK(<-ended)
		_, err = healthy(c)
		w.WantErr(err, redlatch.ErrClosed)
	})
}

// A probe that waits for the server when the client is closed ends.
func TestCloseEndsAProbe(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		p.Blackhole(true)
		probe := locktest.Later(func() error { return c.Healthy(bg) })
		time.Sleep(time.Second)
		_ = c.Close() // it may say that the request was still in flight
		if err := <-probe; err == nil {
			t.Error("no error")
		}
	})
}

// Not every driver returns in time from a server that is silent. A probe that
// waited for it was taken for one without an answer, and each of a crowd of them
// asked the server anew.
func TestAReadinessProbeDoesNotWaitForTheDriver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var late atomic.Bool
		var requests atomic.Int32
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			requests.Add(1)
			if late.Load() {
				time.Sleep(1500 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		probe := dashboard.Health(c, nil)
		ask := func() (took time.Duration, code int, text string) {
			start, answer := time.Now(), httptest.NewRecorder()
			probe.ServeHTTP(answer, httptest.NewRequestWithContext(bg, http.MethodGet, "/readyz", nil))
			return time.Since(start), answer.Code, answer.Body.String()
		}
		late.Store(true)
		crowd := make(chan string, 20)
		for range cap(crowd) {
			go func() {
				took, code, text := ask()
				if took > 800*time.Millisecond || code != http.StatusServiceUnavailable {
					t.Errorf("%d %q after %v", code, text, took)
				}
				crowd <- text
			}()
		}
		for range cap(crowd) {
			if text := <-crowd; !strings.HasPrefix(text, "redlatch: server unavailable") || strings.Count(text, "\n") != 1 {
				t.Errorf("%q", text)
			}
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d requests for one answer", n)
		}
		time.Sleep(700 * time.Millisecond) // the late answer is over
		late.Store(false)
		time.Sleep(time.Second)
		if took, code, text := ask(); code != http.StatusOK {
			t.Errorf("%d %q after %v", code, text, took)
		}
	})
}

// A platform reads the status, people read the text, and neither waits for the
// server.
func TestAReadinessProbeIsAnsweredInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		probe := dashboard.Health(c, func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") })
		ask := func(method string) (code int, text string) {
			w.Helper()
			start, answer := time.Now(), httptest.NewRecorder()
			probe.ServeHTTP(answer, httptest.NewRequestWithContext(bg, method, "/readyz", nil))
			if took := time.Since(start); took > 900*time.Millisecond {
				t.Errorf("an answer took %v", took)
			}
			return answer.Code, answer.Body.String()
		}
		if code, text := ask(http.MethodGet); code != http.StatusOK || text != "ok\n" {
			t.Errorf("%d %q", code, text)
		}
		if code, _ := ask(http.MethodPost); code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", code)
		}
		w.Server.SetError("ERR hunter2 \x1b[31m")
		if code, text := ask(http.MethodGet); code != http.StatusServiceUnavailable || !strings.Contains(text, "ERR *** ") || strings.ContainsAny(text, "\x1b") {
			t.Errorf("%d %q", code, text)
		}
		w.Server.SetError("")
		p.Blackhole(true)
		if code, text := ask(http.MethodGet); code != http.StatusServiceUnavailable || !strings.Contains(text, "server unavailable") {
			t.Errorf("%d %q", code, text)
		}
		p.Blackhole(false)
		p.BreakAll()
		time.Sleep(5 * time.Second)
		if code, text := ask(http.MethodHead); code != http.StatusOK {
			t.Errorf("%d %q", code, text)
		}
	})
}
