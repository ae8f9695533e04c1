package lock

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// intentTime is for how long others believe that somebody waits to write. It is
// renewed with each try, every request.LongestPause or so.
const intentTime = 5 * time.Second

// A writerIntent is a writer's announcement that it waits.
type writerIntent struct {
	l    *Spec
	id   string
	last *request.Call // the latest announcement; nil: none was made
}

// intentOf prepares the announcement of a caller that is inside the gate, to be
// made when it has to wait. It returns nil if the lock gives writers no
// precedence.
func (c *Locks) intentOf(l *Spec, p *waitParams) *writerIntent {
	if !l.kind.stops || l.writers == "" {
		return nil
	}
	w, until := &writerIntent{l: l, id: c.NewID()}, p.until
	p.waiting = func(ctx context.Context) { // keeping p would cost every caller an allocation
		w.last = w.ask(intentTime)
		w.last.Stop, w.last.Until = c.Server.Done, until
		_, _ = w.last.Run(ctx)
	}
	return w
}

// over takes the announcement back, if it was made; not before its outcome is
// known, if the caller has left.
func (w *writerIntent) over() {
	if w == nil || w.last == nil {
		return
	}
	w.l.c.Server.Go(func() {
		_, _ = w.last.Outcome()
		_, _ = w.ask(0).Run(context.Background())
	})
}

// ask prepares a request that tells the server once; should it fail, the next try
// or the key's TTL makes up for it.
func (w *writerIntent) ask(d time.Duration) *request.Call {
	c := w.l.c
	return &request.Call{
		Server: c.Server, Script: lua.ReadWriteWriteIntent, Keys: []string{w.l.name, w.l.writers}, Args: []string{w.id, wire.Millis(d), w.l.channel},
		Lease: c.Watchdog, Stop: c.Server.Over, Single: true,
	}
}
