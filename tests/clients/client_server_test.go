package clients

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #7238: the whole script went over the wire each time.
func TestScriptsAreSentOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := w.Proxy()
		p.Record(true)
		c := w.ClientWith(w.DriverBy(p.Dial), redlatch.Config{})
		for range 50 {
			outer := w.Acquire(bg, c.Lock("orders"))
			w.Release(w.Acquire(outer.Context(), c.Lock("orders")))
			w.Release(outer)
		}
		bodies, hashes := map[string]int{}, 0
		for _, r := range p.Requests() {
			switch r.Args[0] {
			case "EVAL":
				bodies[r.Script()]++
			case "EVALSHA":
				hashes++
			}
		}
		if hashes < 150 || len(bodies) != 3 {
			t.Errorf("%d requests by hash, of %d scripts: not what this test is about", hashes, len(bodies))
		}
		for sha, n := range bodies {
			if n > 1 {
				t.Errorf("the body of %s was sent %d times", sha, n)
			}
		}
	})
}

// redisson #2734: a server without scripting.
func TestAServerThatRefusesScriptsIsSaidAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		start := time.Now()
		for _, reply := range []string{
			"ERR unknown command 'EVALSHA', with args beginning with:",
			"NOPERM User default has no permissions to run the 'evalsha' command",
		} {
			w.Server.SetError(reply)
			_, err := c.Lock("orders").Acquire(bg)
			var re *driver.RunError
			if !errors.As(err, &re) || re.Outcome != driver.Refused || errors.Is(err, redlatch.ErrUnavailable) || redlatch.IsRetryable(err) {
				t.Errorf("%s: %v, want a refusal", reply, err)
			}
		}
		w.Server.SetError("")
		if d := time.Since(start); d != 0 {
			t.Errorf("told after %v", d)
		}
	})
}

// rueidislock #244, #261: where RESP3 was missing there was polling, or nothing.
func TestRESP2IsEnough(t *testing.T) {
	for name, connect := range map[string]func(w *locktest.World) driver.Redis{
		"goredis": func(w *locktest.World) driver.Redis {
			rdb := goredisclient.NewClient(&goredisclient.Options{
				Addr: "127.0.0.1:1", Protocol: 2, DisableIdentity: true,
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx) },
			})
			w.Cleanup(func() { _ = rdb.Close() })
			return redlatchgoredis.Use(rdb)
		},
		"rueidis": func(w *locktest.World) driver.Redis {
			p := w.Proxy()
			d, err := redlatchrueidis.New(rueidis.ClientOption{
				InitAddress: []string{"embedded"}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
				DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
					return p.Dial(ctx)
				},
			})
			if err != nil {
				w.Fatal(err)
			}
			w.Cleanup(func() { _ = d.Close() })
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				holder, waiter := w.ClientWith(connect(w), redlatch.Config{}), w.ClientWith(connect(w), redlatch.Config{})
				for range 20 {
					h := w.Acquire(bg, holder.Lock("orders"))
					waiting := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, waiter.Lock("orders")) })
					time.Sleep(100 * time.Millisecond) // it has looked, and subscribed, and looked
					w.Release(h)
					start := time.Now()
					next := <-waiting
					if d := time.Since(start); d > 10*time.Millisecond {
						t.Fatalf("woken after %v", d)
					}
					w.Release(next)
				}
			})
		})
	}
}

// A driver (or a hook of the user's go-redis client) that looks at its context
// after Run has returned.
func TestADriverMayKeepItsContext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var kept context.Context
		d := &locktest.Tap{Seen: func(ctx context.Context) { kept = ctx }}
		c := w.Tapped(redlatch.Config{}, d)
		w.Release(w.Acquire(bg, c.Lock("orders")))
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("panic: %v", r)
			}
		}()
		_ = kept.Value("trace")
	})
}
