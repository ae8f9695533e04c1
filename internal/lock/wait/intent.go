package wait

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// intentTime is for how long others believe that somebody waits to write. It is
// renewed with each try, every request.LongestPause or so.
const intentTime = 5 * time.Second

// A writerIntent is a writer's announcement that it waits.
type writerIntent struct {
	l    *term.Lock
	id   string
	last *request.Call // the latest announcement
}

// announce tells others that the caller, which is inside the gate, waits to write,
// if the lock gives writers precedence.
func (p *Waiter) announce(ctx context.Context, l *term.Lock) {
	if !l.Kind.Stops || l.Writers == "" {
		return
	}
	if p.intent == nil {
		p.intent = &writerIntent{l: l, id: p.c.NewID()}
	}
	intent := p.intent
	intent.last = intent.ask(intentTime)
	intent.last.Stop, intent.last.Until = p.c.Server.Done, p.until
	_, _ = intent.last.Run(ctx)
}

// over takes the announcement back; not before its outcome is known, if the caller
// has left.
func (intent *writerIntent) over() {
	intent.l.Env.Server.Go(func() {
		_, _ = intent.last.Outcome()
		_, _ = intent.ask(0).Run(context.Background())
	})
}

// ask prepares a request that tells the server. An announcement is sent once, as
// another one follows; what is never taken back keeps all readers out until the
// key's TTL is over. Close waits for one attempt.
func (intent *writerIntent) ask(d time.Duration) *request.Call {
	c := intent.l.Env
	return &request.Call{
		Server: c.Server, Script: lua.ReadWriteWriteIntent, Keys: []string{intent.l.Key, intent.l.Writers}, Args: []string{intent.id, wire.Millis(d), intent.l.Channel},
		Lease: c.Watchdog, Stop: c.Server.Quit, Single: d > 0,
	}
}
