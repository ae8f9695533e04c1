package synchronizers

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Whoever corrects a rate must not give everything once more, and whoever begins
// anew must not wait for what was.
func TestSetRateBeginsAnewAndUpdateRateKeeps(t *testing.T) {
	five := ratelimit.Rate{Permits: 5, Interval: time.Hour}
	for name, story := range map[string]struct {
		change func(l *ratelimit.Limiter, ctx context.Context, r ratelimit.Rate) error
		left   int // of nine, when two of five were taken
	}{
		"set":    {(*ratelimit.Limiter).SetRate, 9},
		"update": {(*ratelimit.Limiter).UpdateRate, 7},
	} {
		for kind, perClient := range map[string]bool{"all": false, "each": true} {
			t.Run(name+" "+kind, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
					r := five
					r.PerClient = perClient
					w.SetRate(l, r)
					w.OK(l.Acquire(bg, 2))
					r.Permits = 9
					w.OK(story.change(l, bg, r))
					has := func(want int) {
						t.Helper()
						if n, err := l.Available(bg); err != nil || n != want {
							t.Errorf("%d, %v, want %d", n, err, want)
						}
					}
					has(story.left)
					r.PerClient = !perClient // and that begins anew in any case
					w.OK(l.Acquire(bg, 1))
					w.OK(story.change(l, bg, r))
					has(9)
				})
			})
		}
	}
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		w.WantErr(l.UpdateRate(bg, five), redlatch.ErrUninitialized)
		w.OK(l.SetRate(bg, five))
	})
}

// A client has what it has taken for itself in a sum of its own, which another
// client's UpdateRate cannot raise.
func TestAHigherRateIsThereForTheOtherClientsAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := ratelimit.New(w.Client(redlatch.Config{}), "r", ratelimit.Rate{}), ratelimit.New(w.Client(redlatch.Config{}), "r", ratelimit.Rate{})
		const n = 90
		w.SetRate(a, ratelimit.Rate{Permits: n + 3, Interval: time.Hour, PerClient: true})
		for range n {
			time.Sleep(3 * time.Millisecond)
			w.OK(b.TryAcquire(bg, 1, 0))
		}
		w.OK(a.UpdateRate(bg, ratelimit.Rate{Permits: 10 * n, Interval: time.Hour, PerClient: true}))
		for range 20 {
			time.Sleep(time.Millisecond)
			if free, err := b.Available(bg); err != nil || free != 9*n {
				t.Fatalf("%d, %v, want %d", free, err, 9*n)
			}
		}
		w.OK(b.TryAcquire(bg, 9*n, 0))
		w.WantErr(b.TryAcquire(bg, 1, 0), redlatch.ErrBusy)
	})
}

// A client that was given a lower rate to set up takes what the limiter gives, as
// others do.
func TestALimiterGivesWhatItsOwnRateAllows(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{Permits: 10, Interval: time.Minute})
		w.OK(l.TryAcquire(bg, 1, 0))
		w.OK(l.UpdateRate(bg, ratelimit.Rate{Permits: 100, Interval: time.Minute}))
		w.OK(l.TryAcquire(bg, 50, 0))
		w.WantErr(l.TryAcquire(bg, 101, 0), redlatch.ErrInvalid)
	})
}
