package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// A Dial returns a driver that makes its connections with dial, and ends with the
// test.
type Dial = func(t *testing.T, dial func(context.Context) (net.Conn, error)) driver.Redis

// A Bubble runs f in fake time.
type Bubble = func(t *testing.T, f func(t *testing.T, open Dial))

// A site is an embedded server behind a proxy, and a client of it.
type site struct {
	*redlatch.Client

	proxy          *faultnet.Proxy
	traits         driver.Traits
	dials, scripts atomic.Int64 // so many have been
}

// newSite makes a site that is so far away, and to which there is a connection.
func newSite(t *testing.T, open Dial, away time.Duration) *site {
	t.Helper()
	mini := miniredis.NewMiniRedis()
	mini.ClockTTL(true)
	t.Cleanup(mini.Close)
	s := &site{proxy: faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })}
	t.Cleanup(s.proxy.Close)
	s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		if r.Script() != "" {
			s.scripts.Add(1)
		}
		return faultnet.Delay(away)
	})
	d := open(t, func(ctx context.Context) (net.Conn, error) {
		s.dials.Add(1)
		return s.proxy.Dial(ctx)
	})
	s.traits = d.Traits()
	var err error
	if s.Client, err = redlatch.New(d, redlatch.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Lock("first").Do(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	return s
}

func nothing(context.Context) error { return nil }

// soon is how late a caller may be that leaves, unless it is in the driver when
// the server falls silent.
const soon = 20 * time.Millisecond

// LeaversAreInTime has callers leave a server that has fallen silent. Those that
// were in the driver at that moment may be late, but no others, whether or not
// their contexts have said when they will end; and Close and Shutdown wait for
// none of them.
func LeaversAreInTime(t *testing.T, in Bubble) {
	t.Helper()
	for name, end := range map[string]func(t *testing.T, s *site) (limit time.Duration){
		"when the client is closed": func(t *testing.T, s *site) time.Duration {
			_ = s.Close() // an error: requests are in flight
			return closeTimeout
		},
		"when the client is shut down": func(t *testing.T, s *site) time.Duration {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.Shutdown(ctx)
			return time.Second + 2*closeTimeout // once for the hold, once for the requests
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, open Dial) {
				s := newSite(t, open, time.Millisecond)
				hold, err := s.Lock("held").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.proxy.Blackhole(true)
				var callers sync.WaitGroup
				come := func(n int, late time.Duration) {
					callers.Go(func() { leaves(t, time.Millisecond, late, hold.Release) })
					for i := range 100 {
						callers.Go(func() {
							leaves(t, time.Duration(i)*time.Millisecond, late, func(ctx context.Context) error {
								return s.Lock(fmt.Sprint(n, ":", i)).Do(ctx, nothing)
							})
						})
					}
				}
				come(1, s.traits.Timeout)
				time.Sleep(soon)
				come(2, soon)
				time.Sleep(time.Second)
				come(3, soon)
				time.Sleep(50 * time.Millisecond) // half of them have left
				start := time.Now()
				if limit := end(t, s); time.Since(start) > limit {
					t.Errorf("it took %v, want %v at most", time.Since(start), limit)
				}
				callers.Wait()
			})
		})
	}
	t.Run("and others come when it answers again", func(t *testing.T) {
		in(t, func(t *testing.T, open Dial) {
			s := newSite(t, open, time.Millisecond)
			s.proxy.Blackhole(true)
			var callers sync.WaitGroup
			for i := range 10 {
				callers.Go(func() {
					leaves(t, time.Duration(i)*time.Millisecond, s.traits.Timeout, func(ctx context.Context) error { return s.Lock("first").Do(ctx, nothing) })
				})
			}
			callers.Wait()
			s.proxy.Blackhole(false)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // whatever was left behind would stay for longer
			defer cancel()
			if err := s.Lock("first").Do(ctx, nothing); err != nil {
				t.Error(err)
			}
		})
	})
}

// closeTimeout is the default of redlatch.Config.CloseTimeout.
const closeTimeout = 3 * time.Second

// leaves has a caller leave after some time.
func leaves(t *testing.T, after, late time.Duration, call func(context.Context) error) {
	t.Helper()
	for _, foreseen := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if foreseen {
			ctx, cancel = context.WithTimeout(ctx, after)
			defer cancel()
		} else {
			time.AfterFunc(after, cancel)
		}
		start := time.Now()
		if err := call(ctx); err == nil {
			t.Error("a server that is silent has answered")
		}
		if took := time.Since(start) - after; took > late {
			t.Errorf("a caller was late by %v, want %v at most", took, late)
		}
	}
}

// LeaversCostNothing counts what callers send that give up before a distant server
// could answer: to take a lock, and to release it when it is known that it was
// taken.
func LeaversCostNothing(t *testing.T, in Bubble) {
	t.Helper()
	in(t, func(t *testing.T, open Dial) {
		s := newSite(t, open, 60*time.Millisecond)
		scripts := s.scripts.Load()
		const callers, patience = 1000, 20 * time.Millisecond
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				if err := s.Lock(fmt.Sprint(i)).Do(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if took := time.Since(start); took > patience+soon {
					t.Errorf("a caller left after %v", took)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		time.Sleep(5 * time.Minute) // whatever is released again and again has been
		n, conns := s.scripts.Load()-scripts, s.dials.Load()
		t.Logf("%d scripts, %d connections", n, conns)
		if n > 2*callers+callers/100 {
			t.Errorf("%d scripts were sent, want 2 for each of %d callers", n, callers)
		}
		if conns > 25 {
			t.Errorf("%d connections were made", conns)
		}
	})
}

// AFarMemberCostsNothing counts what callers of a RedLock send to a member that
// has not answered when they have released the lock.
func AFarMemberCostsNothing(t *testing.T, in Bubble) {
	t.Helper()
	for _, away := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
		in(t, func(t *testing.T, open Dial) {
			near, other, far := newSite(t, open, time.Millisecond/2), newSite(t, open, time.Millisecond/2), newSite(t, open, away)
			red := redlatch.RedLock(near.Lock("red"), other.Lock("red"), far.Lock("red"))
			for range 40 {
				if err := red.Do(t.Context(), nothing); err != nil {
					t.Error(err)
				}
				time.Sleep(250 * time.Millisecond)
			}
			time.Sleep(5 * time.Minute) // whatever is released again and again has been
			n, want := far.scripts.Load(), near.scripts.Load()
			t.Logf("%v away: %d scripts, and %d to a near member", away, n, want)
			if n > want+want/4 {
				t.Errorf("%v away: %d scripts were sent there, and %d to a near member", away, n, want)
			}
		})
	}
}
