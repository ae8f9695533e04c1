package redlatch_test

import (
	"context"
	"errors"
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
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/pipe"
)

// A world is an embedded server and the clients that share it, in fake time.
type world struct {
	*testing.T
	server  *miniredis.Miniredis
	timeout time.Duration // of a driver
	real    bool          // it is not in fake time

	dialing sync.Mutex // miniredis does not bear to be dialled while it is closed
	over    bool
}

// newWorld returns a world that ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, server: miniredis.NewMiniRedis(), timeout: 100 * time.Millisecond}
	w.server.ClockTTL(true)
	t.Cleanup(func() {
		w.dialing.Lock()
		w.over = true
		w.dialing.Unlock()
		w.server.Close()
	})
	return w
}

// inFakeTime runs f in a bubble of its own. Everything that f started must
// have ended when the bubble does, which is the leak check.
func inFakeTime(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t)) })
}

// client returns a client of its own connection pool, as another process has.
func (w *world) client(cfg redlatch.Config) *redlatch.Client {
	w.Helper()
	return w.clientWith(w.driver(), cfg)
}

// clientOver is client, over a network on which a script takes its time: from
// half to one and a half rtt, as it happens.
func (w *world) clientOver(rtt time.Duration, cfg redlatch.Config) *redlatch.Client {
	w.Helper()
	p := w.proxy()
	p.SetRule(func(r faultnet.Request) faultnet.Action {
		if r.Script() == "" {
			return faultnet.Pass // go-redis would wait for it with a mutex, which fake time does not forgive
		}
		return faultnet.Delay(rtt/2 + rand.N(rtt))
	})
	return w.clientWith(w.driverBy(p.Dial), cfg)
}

func (w *world) clientWith(d driver.Redis, cfg redlatch.Config) *redlatch.Client {
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
	return c
}

func (w *world) proxy() *faultnet.Proxy {
	p := faultnet.New(w.dial)
	w.Cleanup(p.Close)
	return p
}

func (w *world) driver() driver.Redis {
	return w.driverBy(w.dial)
}

func (w *world) dial(context.Context) (net.Conn, error) {
	w.dialing.Lock()
	defer w.dialing.Unlock()
	if w.over {
		return nil, net.ErrClosed
	}
	c, err := w.server.Dial()
	if err != nil {
		return nil, err
	}
	return pipe.Buffered(c), nil
}

func (w *world) driverBy(dial func(context.Context) (net.Conn, error)) driver.Redis {
	rdb := redis.NewClient(w.options(dial))
	w.Cleanup(func() { _ = rdb.Close() })
	return goredis.Use(rdb)
}

// options are those of a client that dials in this way.
func (w *world) options(dial func(context.Context) (net.Conn, error)) *redis.Options {
	return &redis.Options{
		Addr:        "127.0.0.1:1", // never dialled; an IP, so that nothing is resolved
		Dialer:      func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DialTimeout: 3 * time.Second, ReadTimeout: w.timeout, WriteTimeout: w.timeout,
		MaxRetries: -1, DisableIdentity: true,
		PoolSize: 1000, // who waits for a connection does so by a timer that go-redis shares among bubbles
	}
}

func (w *world) acquire(l *redlatch.Lock, ctx context.Context, opts ...redlatch.Option) *redlatch.Hold {
	w.Helper()
	h, err := l.Acquire(ctx, opts...)
	if err != nil {
		w.Fatalf("Acquire(%s): %v", l.Name(), err)
	}
	return h
}

func (w *world) release(h *redlatch.Hold) {
	w.Helper()
	if err := h.Release(context.Background()); err != nil {
		w.Fatalf("Release(%s): %v", h.Name(), err)
	}
}

// settle lets what nobody waits for come to its end, in fake time.
func (w *world) settle() {
	if !w.real {
		synctest.Wait()
	}
}

// count returns the hold count that Redis shows.
func (w *world) count(h *redlatch.Hold) string {
	w.settle()
	return w.server.HGet(h.Name(), h.Owner())
}

// sets says whether a request that a tap sees sets the hold count to n.
func sets(n, script string, args []string) bool {
	return strings.HasSuffix(script, ".renew") && !strings.HasPrefix(script, "expirable") && args[2] == n
}

func (w *world) wantErr(err error, is ...error) {
	w.Helper()
	for _, want := range is {
		if !errors.Is(err, want) {
			w.Fatalf("got error %v, want one that is %v", err, want)
		}
	}
}

// later runs f on a goroutine and returns a channel that delivers its result.
func later[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// realTime is for what fake time cannot show, such as the garbage collector. Its
// time-outs are long: a busy machine may make anybody wait for seconds.
func realTime(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.timeout = 5 * time.Second
	w.real = true
	return w
}

// generous is how long a test waits for what must happen: only what is stuck takes
// that long.
const generous = 2 * time.Minute

// within waits until ok returns true, for at most d.
func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// An outcome is what Acquire returned.
type outcome struct {
	hold *redlatch.Hold
	err  error
	at   time.Time
}

func acquiring(l *redlatch.Lock, opts ...redlatch.Option) <-chan outcome {
	return later(func() outcome {
		ctx, cancel := context.WithTimeout(bg, generous)
		defer cancel()
		h, err := l.Acquire(ctx, opts...)
		return outcome{h, err, time.Now()}
	})
}
