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
	made bool
}

// wishOf prepares the announcement of a caller that is inside the gate, to be
// made when it has to wait. It returns nil if the lock gives writers no
// precedence.
func (c *Client) wishOf(l *Lock, p *patience) *wish {
	if l.side != writing || l.writers == "" {
		return nil
	}
	w := &wish{l: l, id: c.nextID()}
	p.waiting = func() {
		w.made = true
		w.say(wishTime)
	}
	return w
}

// over takes the announcement back, if it was made.
func (w *wish) over() {
	if w != nil && w.made {
		w.l.c.settle(func() { w.say(0) })
	}
}

// say tells the server once; should that fail, the next try or the key's TTL
// makes up for it.
func (w *wish) say(d time.Duration) {
	c := w.l.c
	o := op{
		c: c, script: wishScript, keys: []string{w.l.name, w.l.writers}, args: []string{w.id, millis(d), w.l.channel},
		lease: c.cfg.WatchdogTimeout, stop: c.over, single: true,
	}
	_, _ = o.run(context.Background())
}
