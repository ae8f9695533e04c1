package goredis

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// Visits are the calls of go-redis by callers that may want to leave. go-redis itself ends a wait for a connection when a
// context ends, but not the wait for an answer. So its connections are ours, and the one that a request was sent over is
// broken off.
//
// Nothing of that costs a request more than an entry in a list. A clock looks through the list, while there is one.
type visits struct {
	writing atomic.Int64  // how many of our connections go-redis is about to write to
	moment  atomic.Uint64 // counts what visits ask for and what connections write: what was first
	refused atomic.Int64  // how many connections were refused since the last one was made that is ours
	foreign int64         // how many there can be at most that are not, if new ones are ours

	mu      sync.Mutex                      // guards what follows; before that of a conn
	first   visit                           // a ring of all visits, in the order in which they came
	conns   map[weak.Pointer[conn]]struct{} // weak: go-redis 9.19 leaves connections whose handshake was refused to the garbage collector
	clock   *time.Timer
	running bool
	ticks   uint64 // of the clock
}

const (
	// tick is how often the clock looks. At the first look after its context has ended, a caller leaves the wait for a
	// connection. At the second look it leaves the wait for an answer: a healthy server has answered by then, and the
	// connection stays.
	tick = 5 * time.Millisecond
	// patience is for how many ticks a visit is left alone: of a handshake that somebody waits for who wants to leave, or whose
	// request was broken off.
	patience = uint64(100 * time.Millisecond / tick)
)

// A visit is also the context that go-redis gets.
type visit struct {
	context.Context // the limit of what comes before the request is sent

	of    *visits
	leave <-chan struct{} // closed when the caller wants to leave
	done  chan struct{}
	shook atomic.Uint64 // the moment before go-redis began the latest step of a handshake for it; 0: it has not
	sent  atomic.Uint64 // and before the script was put on a connection
	words []any         // of the command, not to be read before it is sent: a hook may change them

	// Guarded by visits.mu.
	next, prev *visit
	left       uint64 // the tick at which its caller had left, which says nothing of the connection; 0: it has not
	broken     uint64 // the tick at which its request was broken off; 0: it was not
}

// newVisits makes the connections of a client ours, from now on.
func newVisits(c *redis.Client) *visits {
	vs := &visits{conns: make(map[weak.Pointer[conn]]struct{})}
	vs.first.next, vs.first.prev = &vs.first, &vs.first
	c.AddHook(hook{vs})
	const more = 8 // for what the program has it dial just now
	vs.foreign = int64(c.PoolStats().TotalConns) + int64(c.Options().MinIdleConns) + more
	return vs
}

// Done, Err and Value are a context's.
func (v *visit) Done() <-chan struct{} { return v.done }

func (v *visit) Err() error {
	select {
	case <-v.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	return v.Context.Value(key)
}

type visitKey struct{}

// handshakes notes that go-redis begins a step of a handshake, if ctx is that of a visit.
func (vs *visits) handshakes(ctx context.Context) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok && v.of == vs {
		v.shook.Store(vs.moment.Add(1))
	}
}

// errForeign is for a command that go-redis was about to write to a connection that is not ours. So go-redis drops that
// connection.
var errForeign = errors.New("goredis: a connection from before Use is replaced by one that a caller can leave")

// refuse says whether the connection that go-redis is writing a visit's script to is to be dropped. With more than one writer
// nobody can tell whether it is ours: then its caller stays until go-redis returns.
func (vs *visits) refuse(v *visit) bool {
	if vs.writing.Load() == 0 && vs.refused.Add(1) <= vs.foreign {
		return true
	}
	v.sent.Store(vs.moment.Add(1))
	return false
}

// strange says that go-redis makes connections that are not ours, as for a copy of a client, which dials as the
// original does. Its callers leave a goroutine behind that waits.
func (vs *visits) strange() bool { return vs.refused.Load() > vs.foreign }

func (vs *visits) opened(c *conn) {
	vs.refused.Store(0)
	p := weak.Make(c)
	runtime.AddCleanup(c, vs.closed, p)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.conns[p] = struct{}{}
}

func (vs *visits) closed(p weak.Pointer[conn]) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	delete(vs.conns, p)
}

func (vs *visits) begin(v *visit) {
	v.done = make(chan struct{})
	vs.mu.Lock()
	defer vs.mu.Unlock()
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
	if v.Err() == nil {
		close(v.done) // hooks of the program may wait for the end of their context
	}
	return v.left > 0
}

// look ends the visits that are over.
func (vs *visits) look() {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.running = vs.first.next != &vs.first; !vs.running {
		return
	}
	vs.clock.Reset(tick)
	vs.ticks++
	for v := vs.first.next; v != &vs.first; v = v.next {
		if v.left > 0 {
			vs.breakOffLocked(v)
			continue
		}
		select {
		case <-v.leave:
			v.left = vs.ticks
		default:
		}
		if v.Err() == nil && (v.left > 0 || v.Context.Err() != nil) {
			close(v.done) // ends the wait for a connection
		}
	}
}

// breakOffLocked ends the wait for an answer: to the script, or to a step of a handshake before that. What a visit has sent is
// what was written first after it was about to. If another caller sends the very same at the very same time, that may be broken
// off instead.
func (vs *visits) breakOffLocked(v *visit) {
	moment, since := v.sent.Load(), v.broken
	script := moment > 0
	if !script {
		moment, since = v.shook.Load(), max(v.broken, v.left)
	}
	if moment == 0 || since > 0 && vs.ticks-since < patience {
		return
	}
	var request []byte
	if script {
		request = ending(v.words)
	}
	var right *conn
	var wrote uint64
	for p := range vs.conns {
		c := p.Value()
		if c == nil {
			continue
		}
		if at := c.sentAfter(moment, request); at > 0 && (right == nil || at < wrote) {
			right, wrote = c, at
		}
	}
	if right != nil {
		v.broken = vs.ticks
		right.breakOff(wrote)
	}
}
