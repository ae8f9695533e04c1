package term

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Reap releases an id of ours that has no live term. It is a single attempt: more
// will follow.
func (c *Env) Reap(l *Lock, id string) {
	if l.Kind.Gathers {
		c.Quit(l, id, nil)
		return
	}
	call := l.releasing(id)
	call.Stop, call.Single = c.Server.Over, true
	reply, err := call.Run(context.Background())
	l.left(context.Background(), reply)
	c.Server.Orphans.Answered(id, err)
}

// lapsed are the ids that were lost by their windows, for as long as they may
// stand in Redis. That time is their holders', to stop: nobody else releases them.
type lapsed struct {
	mu    sync.Mutex // guards what follows
	until map[string]lapse
	most  int // so many are kept before those are looked for whose time is over
}

// A lapse is until when an id may stand in Redis, and whether its hold is over
// because it was released.
type lapse struct {
	until    time.Time
	released bool
}

func (ids *lapsed) add(id string, length time.Duration, released bool) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	now := time.Now()
	if len(ids.until) >= ids.most {
		maps.DeleteFunc(ids.until, func(_ string, lapse lapse) bool { return now.After(lapse.until) })
		ids.most = 2*len(ids.until) + 64
	}
	if ids.until == nil {
		ids.until = make(map[string]lapse)
	}
	ids.until[id] = lapse{now.Add(length), released}
}

func (ids *lapsed) remove(id string) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	delete(ids.until, id)
}

func (ids *lapsed) has(id string) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return time.Now().Before(ids.until[id].until)
}

// released says whether an id is there of a hold that was released.
func (ids *lapsed) released(id string) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return ids.until[id].released
}

func wireClient(owner string) string {
	id, _ := wire.ClientOf(owner)
	return id
}

// releasing prepares the release of the lock as that owner's.
func (l *Lock) releasing(owner string) request.Call {
	c := l.Env
	args := slices.Concat(l.releaseArgs([]string{owner, l.Channel, "0"}), l.More)
	return request.Call{Server: c.Server, Script: l.Kind.Release, Keys: l.AllKeys(), Args: args, Lease: c.Watchdog, Stop: c.Server.Quit}
}
