package fair

import (
	"context"
	"sync"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
)

// A caller that waits for a fair lock stands in a queue in Redis, not at a gate of
// this process: each has an entry of its own, with the channel on which it is
// called. They share a local queue only, at which one at a time asks for a place,
// so that they stand in the queue in the order in which they came.

// Queuers are what a client knows of its callers of fair locks.
type Queuers struct {
	*wait.Table

	leavers *queue.Gather[leaver]

	mu     sync.Mutex             // guards what follows
	spares map[string][]*ownEntry // by lock name, of all kinds, the oldest first
	closed bool
}

// New returns the queuers of a client with these entries, and has them leave
// queues and end spares for it (Env.Quit, Table.AtClose).
func New(ls *wait.Table) *Queuers {
	c := &Queuers{Table: ls, leavers: queue.NewGather[leaver](mostQuit, ls.Server.Go)}
	ls.Quit, ls.AtClose = c.leaveQueue, c.closeSpares
	return c
}

// A leaver is an owner id that leaves a fair lock's queue, or gives back the lock
// that nobody wants any more.
type leaver struct {
	id string
	t  *term.Term // whose id it is, unless it is an orphan
}

// mostQuit is how many ids one request releases. It goes through the queue once
// for them all, and keeps the server from everybody else for 25 ms if 10,000 wait.
const mostQuit = 1000

// leaveQueue is Env.Quit of a client.
func (c *Queuers) leaveQueue(l *term.Lock, id string, t *term.Term) {
	c.leavers.Add(l.Key, leaver{id, t}, func(all []leaver) {
		args, _ := l.Forcing()
		call := request.Call{Server: c.Server, Script: l.Kind.Release, Keys: l.AllKeys(), Args: args, Lease: c.Watchdog, Stop: c.Server.Over, Single: true}
		for _, x := range all {
			call.Args = append(call.Args, x.id)
			call.Single = call.Single && x.t == nil // an orphan is released again anyway
		}
		reply, err := call.Run(context.Background())
		for i, x := range all {
			if x.t == nil {
				c.Server.Orphans.Answered(x.id, err)
				continue
			}
			own := reply
			if own.Int != int64(i+1) {
				own.Int = 0
			}
			_ = x.t.Released(&call, own, err)
			x.t.Home.Put()
		}
	})
}
