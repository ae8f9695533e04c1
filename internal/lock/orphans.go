package lock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// reap releases an id of ours that has no live term. It is a single attempt: more
// will follow.
func (c *env) reap(l *Lock, id string) {
	if l.kind.gathers {
		c.quit(l, id, nil)
		return
	}
	o := l.releasing(id)
	o.Stop, o.Single = c.Server.Over, true
	reply, err := o.Run(context.Background())
	l.left(context.Background(), reply)
	c.Server.Orphans.Answered(id, err)
}

// lapsed are the ids that were lost by their windows, for as long as they may stand
// in Redis. That time is their holders', to stop: nobody else releases them.
type lapsed struct {
	mu    sync.Mutex // guards what follows
	until map[string]lapse
	most  int // so many are kept before those are looked for whose time is over
}

// A lapse is until when an id may stand in Redis, and whether its hold is over because it was released.
type lapse struct {
	until    time.Time
	released bool
}

func (s *lapsed) add(id string, length time.Duration, released bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.until) >= s.most {
		maps.DeleteFunc(s.until, func(_ string, l lapse) bool { return now.After(l.until) })
		s.most = 2*len(s.until) + 64
	}
	if s.until == nil {
		s.until = make(map[string]lapse)
	}
	s.until[id] = lapse{now.Add(length), released}
}

func (s *lapsed) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, id)
}

func (s *lapsed) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[id].until)
}

// released says whether an id is there of a hold that was released.
func (s *lapsed) released(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[id].released
}

func wireClient(owner string) string {
	id, _ := wire.ClientOf(owner)
	return id
}

// releasing prepares the release of the lock as that owner's.
func (l *Lock) releasing(owner string) request.Call {
	c := l.c
	args := slices.Concat(l.releaseArgs([]string{owner, l.channel, "0"}), l.more)
	return request.Call{Server: c.Server, Script: l.kind.release, Keys: l.allKeys(), Args: args, Lease: c.Watchdog, Stop: c.Server.Quit}
}
