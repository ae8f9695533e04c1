package main

import (
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch"
)

// rateJSON is how a rate limiter is configured.
type rateJSON struct {
	Permits   int   `json:"permits"`
	Interval  int64 `json:"interval_ms"`
	PerClient bool  `json:"per_client"`
	KeepAlive int64 `json:"keep_alive_ms"` // 0: for ever
}

// isLock says whether a kind is one of lock.
func isLock(kind string) bool {
	switch kind {
	case redlatch.KindSemaphore, redlatch.KindExpirable, redlatch.KindLatch, redlatch.KindCounter, redlatch.KindRateLimiter, redlatch.KindBarrier:
		return false
	}
	return true
}

// addCounts adds what only a synchronizer has.
func (l *lockJSON) addCounts(info redlatch.Info) {
	if isLock(info.Kind) {
		return
	}
	l.Count, l.Generation = &info.Count, info.Generation
	switch info.Kind {
	case redlatch.KindExpirable, redlatch.KindBarrier:
		l.Total = &info.Total
	case redlatch.KindRateLimiter:
		l.Total = &info.Total
		r := info.Rate
		l.Rate = &rateJSON{r.Permits, r.Interval.Milliseconds(), r.PerClient, r.KeepAlive.Milliseconds()}
		if r.PerClient {
			l.Count = nil // of this program, which takes none
		}
	}
}

// stands says in a few words what it is and how it stands.
func (l *lockJSON) stands() string {
	words := ""
	switch {
	case l.Rate != nil && l.Rate.PerClient:
		words = fmt.Sprintf("%d for each client", l.Rate.Permits)
	case l.Kind == redlatch.KindLatch:
		words = fmt.Sprintf("%d to go", *l.Count)
	case l.Kind == redlatch.KindBarrier:
		words = fmt.Sprintf("%d of %d here", *l.Count, *l.Total)
	case l.Kind == redlatch.KindCounter:
		words = strconv.Itoa(*l.Count)
	case l.Total != nil:
		words = fmt.Sprintf("%d of %d free", *l.Count, *l.Total)
	default:
		words = fmt.Sprintf("%d free", *l.Count)
	}
	return l.Kind + ", " + words
}

// countRows is what show prints of a synchronizer, after its name and kind.
func (l *lockJSON) countRows() (rows [][]string) {
	add := func(key, value string) { rows = append(rows, []string{key, value}) }
	add("ttl", ttlText(l.TTL))
	switch l.Kind {
	case redlatch.KindSemaphore:
		add("available", strconv.Itoa(*l.Count))
		add("total", "not stored")
	case redlatch.KindExpirable:
		add("available", strconv.Itoa(*l.Count))
		add("total", strconv.Itoa(*l.Total))
		add("taken", strconv.Itoa(len(l.Holders)))
		for i, h := range l.Holders {
			add("permit "+strconv.Itoa(i+1), h.Owner)
			if h.By != "" {
				add("by", h.By)
			}
			rows = append(rows, h.sinceRows()...)
			add("ttl", h.leaseText(h.TTL))
		}
	case redlatch.KindRateLimiter:
		add("rate", fmt.Sprintf("%d in %s", l.Rate.Permits, ttlText(l.Rate.Interval)))
		if l.Rate.PerClient {
			add("mode", "each client for itself")
		} else {
			add("mode", "all clients together")
			add("available", strconv.Itoa(*l.Count))
		}
		if l.Rate.KeepAlive > 0 {
			add("keep-alive", ttlText(l.Rate.KeepAlive))
		} else {
			add("keep-alive", "none")
		}
	case redlatch.KindBarrier:
		add("generation", l.Generation)
		add("parties", strconv.Itoa(*l.Total))
		add("arrived", strconv.Itoa(*l.Count))
	default:
		add("count", strconv.Itoa(*l.Count))
	}
	return rows
}
