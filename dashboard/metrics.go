package dashboard

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/promtext"
)

const (
	usualScrape = 10 * time.Second // for which Prometheus waits, unless it says otherwise
	answering   = time.Second      // of that, for the answer to arrive
)

// Metrics returns a handler that answers with what the pages list, as metrics for
// Prometheus: who holds, who waits and what was lost, by prefixes of names.
// docs/production.md lists them.
//
// Without prefixes, a name is counted by what stands before its first colon, and a
// name without a colon by the empty prefix. The first 100 prefixes are kept for as
// long as the handler is used, and all other names are counted as "other". With
// prefixes, a name is counted by the longest of these that it begins with, or as
// "other".
//
// Scrapes and pages share their looks. A look is shown for [Options.Interval], and
// the server is asked once a second at most, however many scrapes come. A scrape
// waits for its look until a second before the end of the time that Prometheus
// gives it (scrape_timeout; 30 seconds at most). If the server has not answered by
// then, the status is 200, redlatch_server_up is 0, and nothing else of now is
// told.
//
// Losses are counted from New on. One of a client that ends before the next look
// is not seen. The first scrape may already count some: to Prometheus these are no
// increase, unless an earlier scrape has told of 0 because the server did not
// answer.
//
// The handler answers GET and HEAD at any path, and may be called by several
// goroutines at a time. It has no authentication. After Close, or while 200 pages
// and scrapes are being answered, its status is 503.
func (h *Handler) Metrics(prefixes ...string) http.Handler {
	var mu sync.Mutex
	m := overview.Metrics{Prefixes: prefixes}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admit(w, r) {
			return
		}
		if err := h.watch.current(r.Context(), "", scrapePatience(r)); err != nil {
			unavailable(w, err)
			return
		}
		mu.Lock()
		text := h.metrics(&m)
		mu.Unlock()
		w.Header().Set("Content-Type", promtext.ContentType)
		_, _ = io.WriteString(w, text) // a Prometheus that is gone is told nothing
	})
}

// metrics are those of now, or why there are none.
func (h *Handler) metrics(m *overview.Metrics) string {
	t := h.watch
	t.mu.RLock()
	defer t.mu.RUnlock()
	why, families := t.last.Problem, overview.Down(&t.histories)
	switch {
	case !t.fresh():
		why = "the server has not answered in time for this scrape"
	case t.last.down != nil:
		why = "the server does not answer: " + t.last.down.Error()
	default:
		families = m.Families(&t.last.Listing, t.last.tried.Sub(t.last.At), &t.histories)
	}
	return promtext.Page(families, h.text(why))
}

// scrapePatience is for how long a scrape may wait for a look.
func scrapePatience(r *http.Request) time.Duration {
	timeout := usualScrape
	if s, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64); err == nil && s > 0 {
		timeout = time.Duration(min(s, mostLooking.Seconds()) * float64(time.Second))
	}
	return max(timeout-answering, timeout/2)
}
