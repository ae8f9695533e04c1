package main

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
)

// A lockJSON is a lock or synchronizer in JSON: a contract, described in
// docs/cli.md. Fields may be added, and are never renamed or removed.
type lockJSON struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`
	Held    bool         `json:"held"`
	TTL     int64        `json:"ttl_ms"` // -1: none
	Token   int64        `json:"token"`
	Holders []holderJSON `json:"holders"`
	Queue   []waiterJSON `json:"queue"`

	// These are left out where there is no such thing.
	Count      *int      `json:"count,omitempty"`
	Total      *int      `json:"total,omitempty"`
	Rate       *rateJSON `json:"rate,omitempty"`
	Generation string    `json:"generation,omitempty"`
}

type holderJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Count    int    `json:"count"`
	Redlatch bool   `json:"redlatch"`
	TTL      int64  `json:"ttl_ms"` // -1: none
	Mode     string `json:"mode"`
	Value    string `json:"value"`
}

type waiterJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Redlatch bool   `json:"redlatch"`
	Until    int64  `json:"until_ms"` // Unix time; 0: not stored
}

func lockOf(info redlatch.Info) lockJSON {
	l := lockJSON{
		Name:    info.Name,
		Kind:    info.Kind,
		Held:    info.Held(),
		TTL:     milliseconds(info.TTL),
		Token:   info.Token,
		Holders: make([]holderJSON, 0, len(info.Holders)), // [] and not null
		Queue:   make([]waiterJSON, 0, len(info.Queue)),
	}
	l.addCounts(info)
	if !l.Held && isLock(l.Kind) {
		l.TTL = 0 // what is left of a group whose locks are all free
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, holderJSON{
			Owner: h.Owner, Client: h.Client, Count: h.Count, Redlatch: h.Redlatch, TTL: milliseconds(h.TTL), Mode: h.Mode, Value: h.Value,
		})
	}
	for _, q := range info.Queue {
		w := waiterJSON{Owner: q.Owner, Client: q.Client, Redlatch: q.Redlatch}
		if !q.Until.IsZero() {
			w.Until = q.Until.UnixMilli()
		}
		l.Queue = append(l.Queue, w)
	}
	return l
}

// milliseconds returns a TTL as the JSON has it.
func milliseconds(ttl time.Duration) int64 {
	if ttl < 0 {
		return -1
	}
	return ttl.Milliseconds()
}

// what says what a holder has of the lock.
func (l *lockJSON) what(h holderJSON) string {
	switch {
	case h.Mode != "":
		return l.Kind + ", " + h.Mode
	case h.Value != "":
		return l.Kind + ", " + h.Value
	case len(l.Queue) > 0:
		return l.Kind + ", " + strconv.Itoa(len(l.Queue)) + " waiting"
	}
	return l.Kind
}

// ttlText shows a TTL in milliseconds.
func ttlText(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

func (h *holderJSON) library() string { return library(h.Client, h.Redlatch) }

func library(client string, redlatch bool) string {
	switch {
	case redlatch:
		return "redlatch"
	case client != "":
		return "redisson"
	}
	return "unknown"
}

func (h *holderJSON) count() string { return strconv.Itoa(h.Count) }
