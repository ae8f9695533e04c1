package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
)

// What miniredis cannot vouch for: real servers that stop answering or die, and
// the scripts on real Redis and Valkey.
func TestRedLockOnRealServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs real servers")
	}
	t.Parallel()
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			kinds := testserver.Kinds()
			servers := make([]*testserver.Server, 3)
			red := func() *redlatch.Multi {
				locks := make([]*redlatch.Lock, len(servers))
				for i, s := range servers {
					if s == nil {
						servers[i] = testserver.Start(t, kinds[i%len(kinds)])
						s = servers[i]
					}
					c, err := redlatch.New(a.connect(t, s.Addr()), redlatch.Config{})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() })
					locks[i] = c.Lock("leader")
				}
				return redlatch.RedLock(locks...)
			}
			m, other := red(), red()
			var inside atomic.Int64
			sections := func() {
				t.Helper()
				var wg sync.WaitGroup
				for _, m := range []*redlatch.Multi{m, other} {
					wg.Go(func() {
						for range 5 {
							if err := m.Do(bg, func(ctx context.Context) error {
								if inside.Add(1) != 1 {
									t.Error("two holders")
								}
								inside.Add(-1)
								return ctx.Err()
							}, redlatch.Wait(time.Minute)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
			sections()
			servers[1].Pause() // takes requests, answers nothing
			start := time.Now()
			h, err := m.Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > 4*time.Second { // two attempts of a twentieth of the lease, and a slow machine
				t.Errorf("a hung minority delays the acquisition by %v", d)
			}
			ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
			start = time.Now()
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d > time.Second {
				t.Errorf("a hung minority delays the release by %v", d)
			}
			cancel()
			servers[1].Resume()
			servers[2].Kill()
			sections()
			servers[0].Kill()
			start = time.Now()
			if _, err := m.Try(bg); err == nil {
				t.Error("acquired with a majority down")
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("Try took %v", d)
			}
			start = time.Now()
			if _, err := m.Acquire(bg); !errors.Is(err, redlatch.ErrUnavailable) {
				t.Errorf("with a majority down: %v", err)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("Acquire took %v", d)
			}
			var keys any
			if !within(10*time.Second, func() bool {
				keys = servers[1].MustDo("KEYS", "*")
				return fmt.Sprint(keys) == "[]"
			}) {
				t.Errorf("left behind: %v", keys)
			}
		})
	}
}

// Tokens that are seeded from the server's clock, on real servers.
func TestTokensOnRealServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs real servers")
	}
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		s := testserver.Start(t, kind)
		c, err := redlatch.New(connectGoredis(t, s.Addr()), redlatch.Config{TokenTTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		last := int64(0)
		for range 20 {
			h, err := c.FencedLock("orders").Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			if h.Token() <= last || fmt.Sprint(s.MustDo("GET", tokenKey)) != fmt.Sprint(h.Token()) {
				t.Errorf("%s: token %d after %d", kind, h.Token(), last)
			}
			last = h.Token()
			if err := h.Release(bg); err != nil {
				t.Fatal(err)
			}
			if last%3 == 0 {
				s.MustDo("DEL", tokenKey)
			}
		}
		if d := time.Since(time.UnixMicro(last)); d < -time.Second || d > time.Minute {
			t.Errorf("%s: token %d is %v off the clock", kind, last, d)
		}
	}
}
