package fair

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
)

// A spare is an entry that nobody has yet, and that listens to its channel
// already. A caller that lines up with it asks once. Any other has to ask again
// when the server confirms its subscription: before that, the lock may have been
// given to it unheard. So a caller that had to wait leaves a spare for the next
// one.
const (
	mostSpares = 16 // for a lock
	spareTime  = time.Second
)

// An ownEntry is the entry of one waiter.
type ownEntry struct {
	wait.Entry

	nonce string      // the message that gives the waiter this lock,
	given atomic.Bool // and that it has come
}

// newOwn returns the entry of a waiter that is yet to come, with the owner id that
// it will have.
func (c *Queuers) newOwn(l *term.Lock) *ownEntry {
	e := &ownEntry{nonce: newNonce()}
	e.Init(c.Table, l, c.NewID())
	return e
}

// hear starts the entry's subscription, if it has none.
func (e *ownEntry) hear(l *term.Lock) {
	l.Env.Server.Listen(e.Notices(), l.Channel+":"+e.ID, func(n driver.Notice) {
		if n.Payload == e.nonce {
			e.given.Store(true)
		}
	}, nil)
}

// spare makes a spare, which is there for a while.
func (c *Queuers) spare(l *term.Lock) {
	e := c.newOwn(l)
	if !c.addSpare(l.Key, e, func() { e.hear(l) }) {
		return
	}
	time.AfterFunc(spareTime, func() {
		if c.takeSpare(l.Key, e) != nil {
			e.Notices().Stop()
		}
	})
}

// addSpare adds a spare for a lock and has hear start its subscription, and says
// whether it did: not if there are enough, or the client is closed.
func (c *Queuers) addSpare(name string, e *ownEntry, hear func()) bool {
	c.mu.Lock()
	all := c.spares[name]
	enough := c.closed || len(all) >= mostSpares
	if !enough {
		if c.spares == nil {
			c.spares = map[string][]*ownEntry{}
		}
		c.spares[name] = append(all, e)
	}
	c.mu.Unlock()
	if enough {
		return false
	}
	hear()
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed { // it may have been ended before there was anything to end
		e.Notices().Stop()
	}
	return !closed
}

// takeSpare takes the oldest spare for a lock that the server has confirmed, or
// the one that is asked for, if it is there.
func (c *Queuers) takeSpare(name string, e *ownEntry) *ownEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.spares[name]
	i := slices.IndexFunc(all, func(x *ownEntry) bool { return x == e || e == nil && x.Notices().Confirmed() })
	if i < 0 {
		return nil
	}
	e = all[i]
	if c.spares[name] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(c.spares, name)
	}
	return e
}

// closeSpares ends all spares. There are no new ones after that.
func (c *Queuers) closeSpares() {
	c.mu.Lock()
	spares := c.spares
	c.spares, c.closed = nil, true
	c.mu.Unlock()
	for _, all := range spares {
		for _, e := range all {
			e.Notices().Stop()
		}
	}
}
