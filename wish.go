package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/script"
)

// wishTime is for how long others believe that somebody waits to write. It is
// renewed with each try, every longestSleep or so.
const wishTime = 5 * time.Second

var wishScript = script.Load(luaFiles, "readwrite.write.wish")

// A wish is a writer's announcement that it waits.
type wish struct {
	l    *Lock
	id   string
	last *op // the latest announcement; nil: none was made
}

// wishOf prepares the announcement of a caller that is inside the gate, to be
// made when it has to wait. It returns nil if the lock gives writers no
// precedence.
func (c *Client) wishOf(l *Lock, p *patience) *wish {
	if l.side != writing || l.writers == "" {
		return nil
	}
	w, until := &wish{l: l, id: c.nextID()}, p.until
	p.waiting = func(ctx context.Context) { // keeping p would cost every caller an allocation
		w.last = w.ask(wishTime)
		w.last.stop, w.last.until = c.done, until
		_, _ = w.last.run(ctx)
	}
	return w
}

// over takes the announcement back, if it was made; not before its outcome is
// known, if the caller has left.
func (w *wish) over() {
	if w == nil || w.last == nil {
		return
	}
	w.l.c.settle(func() {
		_, _ = w.last.outcome()
		_, _ = w.ask(0).run(context.Background())
	})
}

// ask prepares a request that tells the server once; should it fail, the next try
// or the key's TTL makes up for it.
func (w *wish) ask(d time.Duration) *op {
	c := w.l.c
	return &op{
		c: c, script: wishScript, keys: []string{w.l.name, w.l.writers}, args: []string{w.id, millis(d), w.l.channel},
		lease: c.cfg.WatchdogTimeout, stop: c.over, single: true,
	}
}
