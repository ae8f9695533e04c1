package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

// scrape asks as Prometheus does that waits for so many seconds, and returns what
// it reads.
func scrape(t *testing.T, metrics http.Handler, timeout string) (text string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", timeout)
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%d, %s: %s", w.Code, got, w.Body)
	}
	return w.Body.String()
}

// A storm of scrapes is no storm of questions: those that come together, and the
// pages, share one look. So do those that come while that goes on, which may not
// know what they want to know.
func TestScrapesShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.set(nil, held("orders:1", "billing"), held("orders:2", "billing"))
		h := handler(t, s, Options{Interval: 2 * time.Second})
		metrics := h.Metrics()
		for round := range 3 {
			before, _ := s.asked()
			var all sync.WaitGroup
			for range mostViewers {
				all.Go(func() {
					contains(t, scrape(t, metrics, "10"), "\nredlatch_server_up 1\n", "redlatch_server_held{prefix=\"orders\"} 2\n")
				})
			}
			all.Wait()
			contains(t, get(t, h, "/").Body.String(), "orders:1")
			looks, _ := s.asked()
			if looks -= before; looks < 1 || looks > 2 {
				t.Errorf("round %d: %d looks", round, looks)
			}
			time.Sleep(2 * time.Second)
		}
		before, _ := s.asked()
		time.Sleep(time.Minute)
		if looks, _ := s.asked(); looks != before {
			t.Errorf("%d looks, although nobody scrapes", looks-before)
		}
	})
}

// Without an answer there is a page that says so, and no number of a time before;
// what was counted stays.
func TestAScrapeOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		lost := held("orders:1", "billing")
		lost.Lost = []overview.Claim{{Client: "u", Owner: "u:1", Reason: "gone"}}
		s.set(nil, lost)
		h := handler(t, s, Options{Interval: time.Second, Mask: func(text string) string { return strings.ReplaceAll(text, "secret", "***") }})
		metrics := h.Metrics()
		contains(t, scrape(t, metrics, "10"), "\nredlatch_server_up 1\n", "redlatch_server_lost_total{reason=\"gone\"} 1\n")
		s.set(errors.New("no secret\nredlatch_server_up 1"))
		for range 3 {
			time.Sleep(15 * time.Second)
			text := scrape(t, metrics, "10")
			contains(t, text, "# the server does not answer: no ***\\nredlatch_server_up 1\n", "\nredlatch_server_up 0\n", "redlatch_server_lost_total{reason=\"gone\"} 1\n")
			if strings.Contains(text, "held") || strings.Contains(text, "secret") {
				t.Error(text)
			}
		}
		s.set(nil)
		time.Sleep(15 * time.Second)
		contains(t, scrape(t, metrics, "10"), "\nredlatch_server_up 1\n", "redlatch_server_held{prefix=\"orders\"} 0\n", "redlatch_server_lost_total{reason=\"gone\"} 1\n")
		h.Close()
		if w := get(t, metrics, "/metrics"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// A look that takes long is waited for until shortly before Prometheus gives up,
// and not longer: else it would read nothing at all.
func TestAScrapeIsAnsweredInTime(t *testing.T) {
	for timeout, most := range map[string]time.Duration{
		"": 9 * time.Second, "10": 9 * time.Second, "2.5": 1500 * time.Millisecond, "1": 500 * time.Millisecond,
		"1e300": 29 * time.Second, "Inf": 29 * time.Second, "NaN": 9 * time.Second, "-1": 9 * time.Second, "0": 9 * time.Second, "soon": 9 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(func(ctx context.Context, _ []string) (overview.Listing, error) {
				<-ctx.Done()
				return overview.Listing{}, ctx.Err()
			}, Options{})
			defer h.Close()
			began := time.Now()
			contains(t, scrape(t, h.Metrics(), timeout), "has not answered in time", "\nredlatch_server_up 0\n", "lost_total")
			if took := time.Since(began); took != most {
				t.Errorf("with a timeout of %q it takes %v, want %v", timeout, took, most)
			}
		})
	}
}

// The metrics are as safe from pages of other sites as the pages are.
func TestMetricsRefuse(t *testing.T) {
	metrics := handler(t, &source{}, Options{}).Metrics()
	for name, change := range map[string]func(r *http.Request){
		"POST":       func(r *http.Request) { r.Method = http.MethodPost },
		"cross-site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		change(r)
		metrics.ServeHTTP(w, r)
		if w.Code < 400 || strings.Contains(w.Body.String(), "redlatch_server") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
