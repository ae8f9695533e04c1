package overview

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// A Lock is a lock or synchronizer. Its fields may get more in JSON, and are never
// renamed or removed.
type Lock struct {
	Name    string        `json:"name"`
	Kind    redlatch.Kind `json:"kind"`
	Held    bool          `json:"held"`
	TTL     int64         `json:"ttl_ms"` // -1: none
	Token   int64         `json:"token"`
	Holders []Holder      `json:"holders"`
	Queue   []Waiter      `json:"queue"`

	// These are left out where there is no such thing.
	Count      *int   `json:"count,omitempty"`
	Total      *int   `json:"total,omitempty"`
	Rate       *Rate  `json:"rate,omitempty"`
	Generation string `json:"generation,omitempty"`

	Exists bool `json:"exists"` // else its kind says nothing
	Who
}

// Who is what clients say of a lock, beyond what is stored.
type Who struct {
	Waiting []Claim `json:"waiting"`
	Claims  []Claim `json:"claims,omitempty"` // holds that are not stored
	Lost    []Claim `json:"lost,omitempty"`   // what was lost lately
	Others  *int    `json:"others,omitempty"` // who waits and does not say who it is
	Silent  *int    `json:"silent,omitempty"` // clients that gave no answer

	Deadlocks [][]Wait `json:"possible_deadlocks,omitempty"` // in which somebody waits for it
}

// A Holder is who has the lock, or a permit.
type Holder struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Count    int    `json:"count"`
	Redlatch bool   `json:"redlatch"`
	TTL      int64  `json:"ttl_ms"` // -1: none
	Mode     string `json:"mode"`
	Value    string `json:"value"`
	Told
}

// Told is what a client says of itself, its hold or its waiter. What is not known
// is left out.
type Told struct {
	By       string    `json:"by,omitempty"`
	Identity *Identity `json:"identity,omitempty"`
	Answered *bool     `json:"answered,omitempty"` // of a client of redlatch that was asked
	For      *int64    `json:"for_ms,omitempty"`
	Renewed  *bool     `json:"renewed,omitempty"`
	Site     string    `json:"site,omitempty"`
	Note     string    `json:"note,omitempty"` // what the hold is for
}

// An Identity is who a client says it is.
type Identity struct {
	Name    string            `json:"name,omitempty"`
	Program string            `json:"program,omitempty"`
	Host    string            `json:"host,omitempty"`
	PID     int               `json:"pid,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// A Claim is what a client says that it holds or waits for.
type Claim struct {
	Kind     redlatch.Kind `json:"kind"`
	Mode     string        `json:"mode"`
	Owner    string        `json:"owner"`
	Client   string        `json:"client"`
	Count    int           `json:"count"`
	Evidence string        `json:"evidence"`
	Reason   string        `json:"reason,omitempty"` // how it was lost
	Told

	Under []string `json:"-"` // of a waiter: the owners as which it holds something meanwhile
}

// A Waiter is a place in a queue.
type Waiter struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Redlatch bool   `json:"redlatch"`
	Until    int64  `json:"until_ms"` // Unix time; 0: not stored
	Told
}

// Of is what is stored of a lock or synchronizer.
func Of(info admin.Info) Lock {
	l := Lock{
		Name:    info.Name,
		Kind:    info.Kind,
		Held:    info.Held(),
		TTL:     milliseconds(info.TTL),
		Token:   info.Token,
		Holders: make([]Holder, 0, len(info.Holders)), // [] and not null
		Queue:   make([]Waiter, 0, len(info.Queue)),
		Exists:  exists(info),
		Who:     Who{Waiting: []Claim{}},
	}
	l.addCounts(info)
	if !l.Held && IsLock(l.Kind) {
		l.TTL = 0 // what is left of a group whose locks are all free
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, Holder{
			Owner: h.Owner, Client: h.Client, Count: h.Count, Redlatch: h.Redlatch, TTL: milliseconds(h.TTL), Mode: h.Mode, Value: h.Value,
			Told: Told{By: h.By},
		})
	}
	for _, q := range info.Queue {
		w := Waiter{Owner: q.Owner, Client: q.Client, Redlatch: q.Redlatch}
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

// exists says whether anything is stored under the name: what a lock that is free
// leaves behind counts, a lock that is free and leaves nothing does not.
func exists(info admin.Info) bool {
	return info.Kind != redlatch.KindLock || info.Held() || info.TTL != 0 || info.Token != 0 || len(info.Queue) > 0
}
