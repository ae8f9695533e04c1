package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/pipe"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

var bg = context.Background()

// Near is how far from the server a process is, unless it is said otherwise.
const Near = 200 * time.Microsecond

// OK stops the test if a call failed.
func (w *World) OK(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// A World is an embedded server and the clients that share it, in fake time.
type World struct {
	*testing.T
	Server  *miniredis.Miniredis
	Timeout time.Duration // of a driver
	real    bool          // it is not in fake time

	dialing sync.Mutex // miniredis does not bear to be dialled while it is closed
	over    bool
}

// NewWorld returns a world that ends with the test.
func NewWorld(t *testing.T) *World {
	t.Helper()
	w := &World{T: t, Server: miniredis.NewMiniRedis(), Timeout: 100 * time.Millisecond}
	w.Server.ClockTTL(true)
	t.Cleanup(func() {
		w.dialing.Lock()
		w.over = true
		w.dialing.Unlock()
		w.Server.Close()
	})
	return w
}

// InFakeTime runs f in a bubble of its own. Everything that f started must
// have ended when the bubble does, which is the leak check.
func InFakeTime(t *testing.T, f func(w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(NewWorld(t)) })
}

// Long leaves a test out of make test, for which it takes too long.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
}

// WithSeeds runs f in fake time, once with each seed below n; a short test has a
// third of them.
func WithSeeds(t *testing.T, n uint64, f func(w *World, seed uint64)) {
	t.Helper()
	if testing.Short() {
		n = min(n, max(3, n/3))
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			InFakeTime(t, func(w *World) { f(w, seed) })
		})
	}
}

// Client returns a client of its own connection pool, as another process has.
func (w *World) Client(cfg redlatch.Config, of ...observe.Hooks) *redlatch.Client {
	w.Helper()
	return w.ClientWith(w.Driver(), cfg, of...)
}

// ClientOver is Client, over a network on which a script takes its time: from
// half to one and a half rtt, as it happens.
func (w *World) ClientOver(rtt time.Duration, cfg redlatch.Config) *redlatch.Client {
	w.Helper()
	p := w.Proxy()
	p.SetRule(func(r faultnet.Request) faultnet.Action {
		if r.Script() == "" {
			return faultnet.Pass // go-redis would wait for it with a mutex, which fake time does not forgive
		}
		return faultnet.Delay(rtt/2 + rand.N(rtt))
	})
	return w.ClientWith(w.DriverBy(p.Dial), cfg)
}

// ClientWith is Client, with this driver.
func (w *World) ClientWith(d driver.Redis, cfg redlatch.Config, of ...observe.Hooks) *redlatch.Client {
	w.Helper()
	c, err := redlatch.New(d, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := c.Close(); err != nil {
			w.Error(err)
		}
	})
	return Observed(c, of...)
}

// Observed returns c, with hooks that call these functions.
func Observed(c *redlatch.Client, of ...observe.Hooks) *redlatch.Client {
	for _, h := range of {
		observe.Add(c, h)
	}
	return c
}

// Proxy returns one before the server.
func (w *World) Proxy() *faultnet.Proxy {
	p := faultnet.New(w.Dial)
	w.Cleanup(p.Close)
	return p
}

// Driver returns one of go-redis, with a pool of its own.
func (w *World) Driver() driver.Redis {
	return w.DriverBy(w.Dial)
}

// Dial connects to the server.
func (w *World) Dial(context.Context) (net.Conn, error) {
	w.dialing.Lock()
	defer w.dialing.Unlock()
	if w.over {
		return nil, net.ErrClosed
	}
	c, err := w.Server.Dial()
	if err != nil {
		return nil, err
	}
	return pipe.Buffered(c), nil
}

// DriverBy is Driver, over connections that dial makes.
func (w *World) DriverBy(dial func(context.Context) (net.Conn, error)) driver.Redis {
	rdb := redis.NewClient(w.Options(dial))
	w.Cleanup(func() { _ = rdb.Close() })
	return redlatchgoredis.Use(rdb)
}

// Options are those of a client that dials in this way.
func (w *World) Options(dial func(context.Context) (net.Conn, error)) *redis.Options {
	return &redis.Options{
		Addr:        "127.0.0.1:1", // never dialled; an IP, so that nothing is resolved
		Dialer:      func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DialTimeout: 3 * time.Second, ReadTimeout: w.Timeout, WriteTimeout: w.Timeout,
		MaxRetries: -1, DisableIdentity: true,
		PoolSize: 1000, // who waits for a connection does so by a timer that go-redis shares among bubbles
	}
}

// Acquire acquires, or ends the test.
func (w *World) Acquire(ctx context.Context, l *redlatch.Lock) *redlatch.Hold {
	w.Helper()
	h, err := l.Acquire(ctx)
	if err != nil {
		w.Fatalf("Acquire(%s): %v", l.Name(), err)
	}
	return h
}

// AcquireWithin acquires within that time, or ends the test.
func (w *World) AcquireWithin(ctx context.Context, l *redlatch.Lock, wait time.Duration) *redlatch.Hold {
	w.Helper()
	h, err := l.TryAcquire(ctx, wait)
	if err != nil {
		w.Fatalf("TryAcquire(%s): %v", l.Name(), err)
	}
	return h
}

// Release releases, or ends the test.
func (w *World) Release(h *redlatch.Hold) {
	w.Helper()
	if err := h.Release(context.Background()); err != nil {
		w.Fatalf("Release(%s): %v", h.Name(), err)
	}
}

// Settle lets what nobody waits for come to its end, in fake time.
func (w *World) Settle() {
	if !w.real {
		synctest.Wait()
	}
}

// Count returns the hold count that Redis shows.
func (w *World) Count(h *redlatch.Hold) string {
	w.Settle()
	return w.Server.HGet(h.Name(), h.ID())
}

// Sets says whether a request that a tap sees sets the hold count to n.
func Sets(n, script string, args []string) bool {
	return strings.HasSuffix(script, ".renew") && !strings.HasPrefix(script, "expirable") && args[2] == n
}

// WantErr checks that err is all of these.
func (w *World) WantErr(err error, is ...error) {
	w.Helper()
	for _, want := range is {
		if !errors.Is(err, want) {
			w.Fatalf("got error %v, want one that is %v", err, want)
		}
	}
}

// Later runs f on a goroutine and returns a channel that delivers its result.
func Later[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// InRealTime is for what fake time cannot show, such as the garbage collector. Its
// time-outs are long: a busy machine may make anybody wait for seconds. Such tests
// run side by side.
func InRealTime(t *testing.T) *World {
	t.Helper()
	t.Parallel()
	w := NewWorld(t)
	w.Timeout = 5 * time.Second
	w.real = true
	return w
}

// Generous is how long a test waits for what must happen: only what is stuck takes
// that long.
const Generous = 2 * time.Minute

// Within waits until ok returns true, for at most d.
func Within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// An Outcome is what Acquire returned.
type Outcome struct {
	Hold *redlatch.Hold
	Err  error
	at   time.Time
}

// Acquiring acquires on a goroutine, for a generous time.
func Acquiring(l *redlatch.Lock) <-chan Outcome {
	return Later(func() Outcome {
		ctx, cancel := context.WithTimeout(bg, Generous)
		defer cancel()
		h, err := l.Acquire(ctx)
		return Outcome{h, err, time.Now()}
	})
}
