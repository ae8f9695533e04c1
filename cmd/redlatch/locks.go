package main

import (
	"cmp"
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

	Exists bool `json:"exists"` // else its kind says nothing
	whoJSON
}

// whoJSON is what clients say of a lock, beyond what is stored.
type whoJSON struct {
	Waiting []claimJSON `json:"waiting"`
	Claims  []claimJSON `json:"claims,omitempty"` // holds that are not stored
	Lost    []claimJSON `json:"lost,omitempty"`   // what was lost lately
	Others  *int        `json:"others,omitempty"` // who waits and does not say who it is
	Silent  *int        `json:"silent,omitempty"` // clients that gave no answer

	Deadlocks [][]waitJSON `json:"possible_deadlocks,omitempty"` // in which somebody waits for it
}

type holderJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Count    int    `json:"count"`
	Redlatch bool   `json:"redlatch"`
	TTL      int64  `json:"ttl_ms"` // -1: none
	Mode     string `json:"mode"`
	Value    string `json:"value"`
	toldJSON
}

// toldJSON is what a client says of itself, its hold or its waiter. What is not known is
// left out.
type toldJSON struct {
	By       string        `json:"by,omitempty"`
	Identity *identityJSON `json:"identity,omitempty"`
	Answered *bool         `json:"answered,omitempty"` // of a client of redlatch that was asked
	For      *int64        `json:"for_ms,omitempty"`
	Renewed  *bool         `json:"renewed,omitempty"`
	Site     string        `json:"site,omitempty"`
}

type identityJSON struct {
	Name    string            `json:"name,omitempty"`
	Program string            `json:"program,omitempty"`
	Host    string            `json:"host,omitempty"`
	PID     int               `json:"pid,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// A claimJSON is what a client says that it holds or waits for.
type claimJSON struct {
	Kind     string `json:"kind"`
	Mode     string `json:"mode"`
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Count    int    `json:"count"`
	Evidence string `json:"evidence"`
	Reason   string `json:"reason,omitempty"` // how it was lost
	toldJSON
}

type waiterJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Redlatch bool   `json:"redlatch"`
	Until    int64  `json:"until_ms"` // Unix time; 0: not stored
	toldJSON
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
		Exists:  exists(info),
		whoJSON: whoJSON{Waiting: []claimJSON{}},
	}
	l.addCounts(info)
	if !l.Held && isLock(l.Kind) {
		l.TTL = 0 // what is left of a group whose locks are all free
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, holderJSON{
			Owner: h.Owner, Client: h.Client, Count: h.Count, Redlatch: h.Redlatch, TTL: milliseconds(h.TTL), Mode: h.Mode, Value: h.Value,
			toldJSON: toldJSON{By: h.By},
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

// exists says whether anything is stored under the name: what a lock that is free leaves
// behind counts, a lock that is free and leaves nothing does not.
func exists(info redlatch.Info) bool {
	return info.Kind != redlatch.KindLock || info.Held() || info.TTL != 0 || info.Token != 0 || len(info.Queue) > 0
}

// what says what a holder has of the lock.
func (l *lockJSON) what(h holderJSON) string {
	switch {
	case h.Mode != "":
		return l.Kind + ", " + h.Mode
	case h.Value != "":
		return l.Kind + ", " + h.Value
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

// leaseText shows for how long a holder has what it has: nothing, for a lease that is
// renewed, says when it ends.
func (t *toldJSON) leaseText(ms int64) string {
	if t.Renewed != nil && *t.Renewed {
		return "renewed while it lives"
	}
	return ttlText(ms)
}

// forText shows for how long it has been so, "-" if that is not known.
func (t *toldJSON) forText() string {
	if t.For == nil {
		return "-"
	}
	return ttlText(*t.For)
}

// byText says who it is: by its own word, else by the library that its owner id tells.
func (t *toldJSON) byText(client string, redlatch bool) string {
	by := cmp.Or(t.By, library(client, redlatch))
	if t.Answered != nil && !*t.Answered {
		by += " (no answer)"
	}
	return by
}

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
