package main

import (
	"strconv"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// countRows is what show prints of a synchronizer, after its name and kind.
func countRows(l *overview.Lock) (rows [][]string) {
	add := func(key, value string) { rows = append(rows, []string{key, value}) }
	add("ttl", overview.TTLText(l.TTL))
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
			rows = append(rows, sinceRows(&h.Told)...)
			add("ttl", h.LeaseText(h.TTL))
		}
	case redlatch.KindRateLimiter:
		add("rate", l.Rate.Text())
		if l.Rate.PerClient {
			add("mode", "each client for itself")
		} else {
			add("mode", "all clients together")
			add("available", strconv.Itoa(*l.Count))
		}
		if l.Rate.KeepAlive > 0 {
			add("keep-alive", milliseconds(l.Rate.KeepAlive))
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
