package ratelimiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Callers that go on until the end meet the limiter's last millisecond, in which its TTL is 0.
func TestALimiterThatEndsInUseLeavesNothing(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		raw := locktest.RawGoredis(t, s)
		stays, counts := 0, 0
		for i := range 100 {
			name := fmt.Sprintf("r%d", i)
			l, rate := c.RateLimiter(name), redlatch.Rate{Permits: 100_000, Interval: time.Hour}
			if err := l.SetRate(bg, rate); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Expire(bg, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			for l.Try(bg, 1) == nil { // until it has ended
			}
			if i%2 == 0 && raw.PTTL(bg, "{"+name+"}:permits").Val() == -1 {
				stays++
			}
			if _, err := l.TrySetRate(bg, rate); err != nil { // mostly within a millisecond, for odd i
				t.Fatal(err)
			}
			if err := l.Try(bg, 1); err != nil {
				t.Fatal(err)
			}
			if n, _ := l.Available(bg); n < rate.Permits-1 {
				counts++
			}
		}
		if stays > 0 || counts > 0 {
			t.Errorf("of 100, %d stay, and %d count for the next limiter", stays, counts)
		}
	})
}
