package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/adapter"
)

// quiet is how long a connection may be silent before it is asked for a sign of
// life, and then again before it is given up.
const quiet = 3 * time.Second

// A life tells whether a connection is alive.
type life struct{ last, asked time.Time }

func (l *life) heard() { l.last = time.Now() }

// A manager is the goroutine that keeps what is subscribed at the servers equal
// to what is wanted.
type manager struct {
	*hub
	links map[*redis.Client]*link
}

func (h *hub) manage() {
	m := manager{hub: h, links: make(map[*redis.Client]*link)}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		wait, backOff := quiet, m.step()
		if m.done() {
			return
		}
		if backOff > 0 {
			wait = backOff
		}
		timer.Reset(wait)
		m.sleep(timer.C, backOff > 0)
	}
}

// sleep waits for work, or if firm is set only for the timer or the end.
func (m *manager) sleep(timer <-chan time.Time, firm bool) {
	for {
		select {
		case <-timer:
			return
		case <-m.wake:
			if !firm || m.idle() {
				return
			}
		}
	}
}

func (m *manager) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.topics {
		if len(t.listeners) > 0 {
			return m.closed
		}
	}
	return true
}

// done ends the manager if nothing is wanted any more.
func (m *manager) done() bool {
	m.mu.Lock()
	end := m.closed || len(m.topics) == 0
	if end {
		m.managing = false
	}
	m.mu.Unlock()
	if end {
		for _, l := range m.links {
			m.drop(l)
		}
	}
	return end
}

// step does what there is to do. After a failure it returns how long to wait
// before the next step.
func (m *manager) step() (backOff time.Duration) {
	m.mu.Lock()
	failed := m.failed
	m.failed = nil
	m.mu.Unlock()
	ok := true
	for _, l := range failed {
		ok = !m.drop(l) && ok
	}
	join, leave := m.changes()
	for l, names := range leave {
		m.send(l, names, l.ps.Unsubscribe, l.ps.SUnsubscribe)
	}
	if ok { // else first the pause
		ok = m.join(join)
	} else {
		m.postpone(join)
	}
	m.ping()
	m.tidy()
	if ok {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempt++
	return adapter.Pause(m.attempt - 1)
}

// changes returns what is to be subscribed and, by connection, what is not to be
// any more.
func (m *manager) changes() (join []*topic, leave map[*link][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	leave = make(map[*link][]string)
	for name, t := range m.dirty {
		switch {
		case len(t.listeners) > 0 && t.link == nil:
			join = append(join, t)
		case len(t.listeners) == 0:
			delete(m.topics, name)
			if l := t.link; l != nil {
				t.link, t.confirmed = nil, false
				delete(l.topics, name)
				count(l.leaving, name, 1)
				leave[l] = append(leave[l], name)
			}
		}
	}
	clear(m.dirty)
	return join, leave
}

// join subscribes to channels, each at the node where it belongs.
func (m *manager) join(topics []*topic) (ok bool) {
	names := make(map[*link][]string)
	for i, t := range topics {
		l, err := m.link(t.name)
		if err != nil {
			m.mu.Lock()
			m.noteClosed(err)
			m.mu.Unlock()
			m.postpone(topics[i:])
			break
		}
		m.mu.Lock()
		t.link = l
		l.topics[t.name] = t
		count(l.joining, t.name, 1)
		m.mu.Unlock()
		names[l] = append(names[l], t.name)
		ok = i == len(topics)-1
	}
	for l, names := range names {
		m.send(l, names, l.ps.Subscribe, l.ps.SSubscribe)
	}
	return ok || len(topics) == 0
}

// postpone leaves channels for the next step.
func (m *manager) postpone(topics []*topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range topics {
		m.dirty[t.name] = t
	}
}

// link returns the connection for a channel; it is not yet established.
func (m *manager) link(channel string) (*link, error) {
	m.mu.Lock()
	attempt := m.attempt
	m.mu.Unlock()
	node, err := m.route(context.Background(), channel, attempt)
	if err != nil {
		return nil, err
	}
	if l := m.links[node]; l != nil {
		return l, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		ps: node.Subscribe(ctx), node: node, ctx: ctx, cancel: cancel,
		topics: make(map[string]*topic), joining: make(map[string]int), leaving: make(map[string]int),
	}
	m.links[node] = l
	return l, nil
}

// send sends one request for all names, or one for each if they are sharded:
// channels of several slots must not share one. It connects if need be.
func (m *manager) send(l *link, names []string, classic, sharded func(context.Context, ...string) error) {
	var err error
	if m.sharded {
		for _, name := range names {
			if err = sharded(l.ctx, name); err != nil {
				break
			}
		}
	} else {
		err = classic(l.ctx, names...)
	}
	switch {
	case err != nil:
		m.fail(l, err)
	case !l.reading:
		l.reading = true
		m.mu.Lock()
		l.life.heard()
		m.mu.Unlock()
		go m.read(l)
	}
}

// drop closes a connection and reports whether it was still in use. Its channels
// are to be subscribed anew.
func (m *manager) drop(l *link) bool {
	m.mu.Lock()
	if l.dropped {
		m.mu.Unlock()
		return false
	}
	l.dropped = true
	for _, t := range l.topics {
		t.link, t.confirmed = nil, false
		m.dirty[t.name] = t
	}
	clear(l.topics) // its reader may have a confirmation in hand
	m.mu.Unlock()
	if m.links[l.node] == l {
		delete(m.links, l.node)
	}
	l.cancel()
	_ = l.ps.Close() // the reader ends by it
	return true
}

// tidy closes connections that nothing is subscribed on, but for the last one,
// which done closes.
func (m *manager) tidy() {
	for _, l := range m.links {
		m.mu.Lock()
		unused := len(l.topics) == 0
		m.mu.Unlock()
		if unused && len(m.links) > 1 {
			m.drop(l)
		}
	}
}

// ping finds connections that have fallen silent.
func (m *manager) ping() {
	now := time.Now()
	for _, l := range m.links {
		m.mu.Lock()
		ask, dead := false, false
		switch waiting := l.life.asked.After(l.life.last); {
		case !l.reading:
		case waiting:
			dead = now.Sub(l.life.asked) >= quiet
		case now.Sub(l.life.last) >= quiet:
			ask = true
			l.life.asked = now
		}
		m.mu.Unlock()
		switch {
		case dead:
			m.fail(l, errSilent)
		case ask:
			if err := l.ps.Ping(l.ctx); err != nil {
				m.fail(l, err)
			}
		}
	}
}

var errSilent = errors.New("goredis: the server has fallen silent")

// noteClosed finds out that the client was closed. A cluster's client closes the
// clients of nodes that left the cluster, so there it takes some attempts. h.mu
// is held.
func (h *hub) noteClosed(err error) {
	if errors.Is(err, redis.ErrClosed) && (h.d.single != nil || h.attempt > 5) {
		h.closed = true
	}
}
