package synchronizers

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// packed writes and reads records with Lua's struct library, as Redisson does.
const packed = `
for i = 1, 9000 do
  redis.call('ZADD', KEYS[1], ARGV[1], struct.pack('Bc0I', 16, string.format('%016d', i), 1))
end
redis.call('ZADD', KEYS[1], ARGV[1], struct.pack('Bc0I', 8, '\0\255\128\10\13\0\0\1', 70000))
local seen = {}
for _, r in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, 1)) do
  local random, n = struct.unpack('Bc0I', r)
  seen[#seen + 1] = #random .. '=' .. n
end
return seen`

// The records are Redisson's own on servers that have what it uses, and the
// scripts are the same there.
func TestRateLimiterOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		for _, a := range drivers.Adapters {
			s.MustDo("FLUSHALL")
			c, err := redlatch.New(a.Open(t, drivers.Single(s.Addr())), redlatch.Config{OutageTimeout: locktest.Generous})
			if err != nil {
				t.Fatal(err)
			}
			l := ratelimit.New(c, "api", ratelimit.Rate{})
			set := func(permits int, interval time.Duration) {
				t.Helper()
				if err := l.SetRate(bg, ratelimit.Rate{Permits: permits, Interval: interval, KeepAlive: time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
			available := func(want int) {
				t.Helper()
				if n, err := l.Available(bg); err != nil || n != want {
					t.Fatalf("%s: available: %d (%v), want %d", a.Name, n, err, want)
				}
			}
			set(200000, time.Hour)
			if err := l.Acquire(bg, 100000); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-time.Minute).UnixMilli()
			s.MustDo("EVAL", packed, "1", "{api}:permits", fmt.Sprint(at))
			s.MustDo("DEL", "{api}:value")
			available(200000 - 100000 - 9000 - 70000)
			if seen := fmt.Sprint(s.MustDo("EVAL", packed, "1", "{api}:permits", fmt.Sprint(at))); !strings.HasPrefix(seen, "[16=100000 ") {
				t.Errorf("%s: read as %s", a.Name, seen)
			}
			if err := l.TryAcquire(bg, 21001, 0); err == nil {
				t.Error("more than there are")
			}
			if err := l.Release(bg, 80000); err != nil { // most of what is older than ours
				t.Fatal(err)
			}
			available(101000)
			if ttl := fmt.Sprint(s.MustDo("TTL", "{api}:value"), s.MustDo("TTL", "{api}:permits")); !strings.HasPrefix(ttl, "36") && !strings.HasPrefix(ttl, "35") {
				t.Errorf("%s: they last %s s", a.Name, ttl)
			}

			// In real time, from many goroutines.
			set(50, 200*time.Millisecond)
			start := time.Now()
			var wg sync.WaitGroup
			for range 120 {
				wg.Go(func() {
					if err := l.Acquire(bg, 1); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if d := time.Since(start); d < 400*time.Millisecond {
				t.Errorf("%s: 120 permits took %v at 250 a second", a.Name, d)
			}
			if was, err := l.Delete(bg); err != nil || !was {
				t.Errorf("Delete: %v, %v", was, err)
			}
			if keys := s.Keys(); len(keys) != 1 || !strings.HasPrefix(keys[0], "redlatch_session:{api}:") {
				t.Errorf("%s: left behind: %q", a.Name, keys)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
