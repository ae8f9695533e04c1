package goredis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Visits are the calls of go-redis by callers that may want to leave. go-redis itself ends a wait for a connection when a
// context ends, but not the wait for an answer. So its connections are ours, and the one that a request was sent over is
// broken off.
//
// Nothing of that costs a request more than an entry in a list. A clock looks through the list, while there is one.
type visits struct {
	foreign atomic.Int64  // how many connections may be left that are not ours
	writing atomic.Int64  // how many of ours go-redis is about to write to
	ticks   atomic.Uint64 // of the clock; written under mu

	mu      sync.Mutex // guards what follows; before that of a conn
	first   visit      // a ring of all visits, in the order in which they came
	conns   map[*conn]struct{}
	clock   *time.Timer
	running bool
}

const (
	// tick is how often the clock looks. At the first look after its context has ended, a caller leaves the wait for a
	// connection. At the second look it leaves the wait for an answer: a healthy server has answered by then, and the
	// connection stays.
	tick = 5 * time.Millisecond
	// longestVisit is how long a visit may last, in ticks.
	longestVisit = uint64(mostPatience / tick)
	// slowHandshake is how long, in ticks, a server may take for a step of a handshake that somebody waits for who wants to leave.
	slowHandshake = uint64(100 * time.Millisecond / tick)
)

// A visit is also the context that go-redis gets.
type visit struct {
	context.Context // the limit of what comes before the request is sent

	leave      <-chan struct{} // closed when the caller wants to leave
	script     string
	keys, args []string
	done       chan struct{}

	// Guarded by visits.mu.
	next, prev *visit
	came       uint64 // the tick of its beginning
	ended      uint64 // and of its end, for its caller; 0: none so far
	left       bool   // its caller has left, which says nothing of the connection
}

// newVisits makes the connections of a client ours, from now on.
func newVisits(c *redis.Client) *visits {
	vs := &visits{conns: make(map[*conn]struct{})}
	vs.first.next, vs.first.prev = &vs.first, &vs.first
	c.AddHook(hook{vs})
	vs.foreign.Store(int64(c.PoolStats().TotalConns))
	return vs
}

// Done and Err are a context's.
func (v *visit) Done() <-chan struct{} { return v.done }

func (v *visit) Err() error {
	select {
	case <-v.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// errForeign is for a command that go-redis was about to write to a connection that is not ours. So go-redis drops that
// connection.
var errForeign = errors.New("goredis: a connection from before Use is replaced by one that a caller can leave")

// refuse says whether the connection that go-redis is writing to is to be dropped. With more than one writer nobody can
// tell whether it is ours: then the caller that uses it stays until go-redis returns.
func (vs *visits) refuse() bool {
	return vs.foreign.Load() > 0 && vs.writing.Load() == 0 && vs.foreign.Add(-1) >= 0
}

func (vs *visits) opened(c *conn) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.conns[c] = struct{}{}
}

func (vs *visits) closed(c *conn) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	delete(vs.conns, c)
}

func (vs *visits) begin(v *visit) {
	v.done = make(chan struct{})
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v.came = vs.ticks.Load()
	v.prev, v.next = vs.first.prev, &vs.first
	v.prev.next, v.next.prev = v, v
	if vs.running {
		return
	}
	vs.running = true
	if vs.clock == nil {
		vs.clock = time.AfterFunc(tick, vs.look)
	} else {
		vs.clock.Reset(tick)
	}
}

// end returns whether the caller has left.
func (vs *visits) end(v *visit) (left bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v.prev.next, v.next.prev = v.next, v.prev
	return v.left
}

// look ends the visits that are over.
func (vs *visits) look() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.running = vs.first.next != &vs.first; !vs.running {
		return
	}
	vs.clock.Reset(tick)
	now := vs.ticks.Add(1)
	for v := vs.first.next; v != &vs.first; v = v.next {
		if v.ended > 0 {
			vs.breakOffLocked(v, now)
			continue
		}
		select {
		case <-v.leave:
			v.left = true
		default:
		}
		if v.left || now-v.came >= longestVisit {
			v.ended = now
		}
		if v.Err() == nil && (v.ended > 0 || v.Context.Err() != nil) {
			close(v.done) // ends the wait for a connection
		}
	}
}

// breakOffLocked ends the wait for an answer: to the request, or to a handshake before that. If another caller has sent the
// very same request, that may be broken off instead. It is sent again then, and the next look finds the right one.
func (vs *visits) breakOffLocked(v *visit, now uint64) {
	request := ending(v.script, v.keys, v.args)
	for c := range vs.conns {
		if c.breakOff(request, v.came) {
			return
		}
	}
	if now-v.ended < slowHandshake {
		return
	}
	for c := range vs.conns {
		c.breakHandshake(now - slowHandshake)
	}
}
