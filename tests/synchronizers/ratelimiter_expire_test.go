package synchronizers

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Callers that go on until the end meet the limiter's last millisecond, in which
// its TTL is 0.
func TestALimiterThatEndsInUseLeavesNothing(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		raw := locktest.RawGoredis(t, s)
		stays, counts := 0, 0
		for i := range 100 {
			name := fmt.Sprintf("r%d", i)
			l, rate := ratelimit.New(c, name, ratelimit.Rate{}), ratelimit.Rate{Permits: 100_000, Interval: time.Hour}
			if err := l.SetRate(bg, rate); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Expire(bg, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			for ended := false; !ended; {
				ended = l.TryAcquire(bg, 1, 0) != nil
			}
			if i%2 == 0 && raw.PTTL(bg, "{"+name+"}:permits").Val() == -1 {
				stays++
			}
			if _, err := l.TrySetRate(bg, rate); err != nil { // mostly within a millisecond, for odd i
				t.Fatal(err)
			}
			if err := l.TryAcquire(bg, 1, 0); err != nil {
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

// A TTL that a KeepAlive has set is gone with it; that of Expire is somebody's
// word, and stays.
func TestAnotherRateEndsNoExpire(t *testing.T) {
	hour := ratelimit.Rate{Permits: 5, Interval: time.Hour}
	kept := hour
	kept.KeepAlive = 2 * time.Hour
	for name, change := range map[string]func(l *ratelimit.Limiter, r ratelimit.Rate) error{
		"set":    func(l *ratelimit.Limiter, r ratelimit.Rate) error { return l.SetRate(bg, r) },
		"update": func(l *ratelimit.Limiter, r ratelimit.Rate) error { return l.UpdateRate(bg, r) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
				ends := func(want time.Duration) {
					t.Helper()
					if ttl := w.Server.TTL("api"); ttl != want {
						t.Errorf("it ends in %v, want %v", ttl, want)
					}
				}
				w.SetRate(l, hour)
				_, err := l.Expire(bg, time.Minute)
				w.OK(err)
				w.OK(change(l, hour))
				w.OK(l.TryAcquire(bg, 1, 0))
				ends(time.Minute)
				w.OK(change(l, kept))
				ends(2 * time.Hour)
				w.OK(change(l, hour))
				ends(0)
				_, err = l.Expire(bg, time.Minute)
				w.OK(err)
				w.OK(change(l, hour))
				time.Sleep(2 * time.Minute)
				_, err = l.Config(bg)
				w.WantErr(err, redlatch.ErrUninitialized)
			})
		})
	}
}
