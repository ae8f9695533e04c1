package redlatchgoredis

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// manage keeps what is subscribed at the servers equal to what is wanted, until
// nothing is wanted any more.
func (h *hub) manage() {
	for {
		for _, t := range h.changes() {
			h.place(t)
		}
		h.tidy()
		if h.done() {
			return
		}
		<-h.wake
	}
}

// done ends the manager if nothing is wanted any more.
func (h *hub) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && len(h.topics) > 0 {
		return false
	}
	for _, l := range h.links {
		h.drop(l)
	}
	clear(h.rests)
	h.managing = false
	return true
}

// changes has what nobody wants any more unsubscribed, and returns what is to be
// subscribed.
func (h *hub) changes() (join []*topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	dirty := h.dirty
	h.dirty = make(map[string]*topic) // to clear one that was large takes as long each time
	for name, t := range dirty {
		switch {
		case len(t.listeners) == 0:
			delete(h.topics, name)
			if l := t.link; l != nil {
				t.leave()
				l.ask(unsubscribe, name)
			}
		case t.link == nil && !t.resting:
			join = append(join, t)
		}
	}
	return join
}

// place has a channel subscribed at a node where it belongs, or has the manager
// look at it later.
func (h *hub) place(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, due := h.find(t)
	if l == nil {
		t.resting = true
		time.AfterFunc(time.Until(due), func() { h.rested(t) })
		return
	}
	t.link = l
	l.topics[t.name] = t
	l.ask(subscribe, t.name)
}

// rested has the manager look at t, if anybody still wants it.
func (h *hub) rested(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.resting = false
	if h.topics[t.name] == t {
		h.touch(t)
	}
}

// find returns the connection for a channel, a new one if need be, or until when
// that has to wait. h.mu is held, but not during what may be I/O.
func (h *hub) find(t *topic) (l *link, due time.Time) {
	now := time.Now()
	for _, r := range []rest{t.refused, h.rests[nil]} {
		if r.until.After(now) {
			return nil, r.until
		}
	}
	if !h.sharded { // one connection serves all
		for _, l := range h.links {
			return l, time.Time{}
		}
	}
	anew := t.refused.failures > 0 || len(h.rests) > 0
	h.mu.Unlock()
	nodes, err := h.route(t.name, anew)
	h.mu.Lock()
	if err != nil {
		return nil, h.failed(nil, err)
	}
	delete(h.rests, nil)
	for _, node := range nodes {
		switch r := h.rests[node]; {
		case h.links[node] != nil:
			return h.links[node], time.Time{}
		case !r.until.After(now):
			return h.connect(node), time.Time{}
		case due.IsZero() || r.until.Before(due):
			due = r.until
		}
	}
	return nil, due
}

// failed notes that a node, or with nil the cluster, has failed, and returns until
// when it is left alone. h.mu is held.
//
// A cluster's client closes the clients of nodes that left the cluster. So there
// it takes some attempts to find out that it was closed itself.
func (h *hub) failed(node *redis.Client, err error) (until time.Time) {
	r := h.rests[node].after()
	h.rests[node] = r
	if errors.Is(err, redis.ErrClosed) && (h.d.single != nil || r.failures > 5) {
		h.closed = true
		poke(h.wake)
	}
	return r.until
}

// tidy closes connections on which nothing is subscribed, but for the last one,
// which done closes. It forgets nodes that nobody has wanted for a while.
func (h *hub) tidy() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		if len(l.topics) == 0 && len(h.links) > 1 {
			h.drop(l)
		}
	}
	for node, r := range h.rests {
		if time.Since(r.until) > time.Minute {
			delete(h.rests, node)
		}
	}
}
