package main

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
)

// A lockJSON is a lock in JSON: a contract, described in docs/cli.md. Fields
// may be added, and are never renamed or removed.
type lockJSON struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`
	Held    bool         `json:"held"`
	TTL     int64        `json:"ttl_ms"` // -1: none
	Holders []holderJSON `json:"holders"`
}

type holderJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Count    int    `json:"count"`
	Redlatch bool   `json:"redlatch"`
}

func lockOf(info redlatch.Info) lockJSON {
	l := lockJSON{
		Name:    info.Name,
		Kind:    info.Kind,
		Held:    len(info.Holders) > 0,
		TTL:     info.TTL.Milliseconds(),
		Holders: make([]holderJSON, 0, len(info.Holders)), // [] and not null
	}
	if info.TTL < 0 {
		l.TTL = -1
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, holderJSON{Owner: h.Owner, Client: h.Client, Count: h.Count, Redlatch: h.Redlatch})
	}
	return l
}

func (l *lockJSON) ttl() string {
	switch {
	case !l.Held:
		return "-"
	case l.TTL < 0:
		return "none"
	}
	return (time.Duration(l.TTL) * time.Millisecond).Round(100 * time.Millisecond).String()
}

func (h *holderJSON) library() string {
	switch {
	case h.Redlatch:
		return "redlatch"
	case h.Client != "":
		return "redisson"
	}
	return "unknown"
}

func (h *holderJSON) count() string { return strconv.Itoa(h.Count) }
