package synchronizers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// limiterOver returns a limiter, and lets fate decide what becomes of the n-th
// request of a script; late returns those that are still on the way.
func limiterOver(w *locktest.World, script string, fate func(n int) locktest.Fate) (l *ratelimit.Limiter, late *locktest.Counting) {
	x := &locktest.Counting{}
	c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if s != script {
			return next()
		}
		x.Mu.Lock()
		x.Tries++
		what := fate(x.Tries)
		if what != locktest.Good {
			x.Held = append(x.Held, func() { _, _ = next() })
		}
		x.Mu.Unlock()
		return what.Of(next)
	}})
	return ratelimit.New(c, "api", ratelimit.Rate{}), x
}

func firstIs(what locktest.Fate) func(int) locktest.Fate {
	return func(n int) locktest.Fate {
		if n == 1 {
			return what
		}
		return locktest.Good
	}
}

// A take is known by its record: nobody remembers it otherwise, however often it
// is executed.
func TestATakeWithALostReplyTakesOnce(t *testing.T) {
	for _, what := range []locktest.Fate{locktest.ReplyLost, locktest.Late} {
		t.Run(fmt.Sprint(what), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l, x := limiterOver(w, "ratelimiter.take", firstIs(what))
				if _, err := l.TrySetRate(bg, ratelimit.Rate{Permits: 10, Interval: time.Minute}); err != nil {
					t.Fatal(err)
				}
				w.TakeRate(l, 3)
				wantAvailable(w, l, 7)
				x.Arrive()
				wantAvailable(w, l, 7)
				w.TakeRate(l, 2)
				x.Arrive()
				wantAvailable(w, l, 5)
				if keys := w.Keys(); len(keys) != 3 {
					t.Errorf("there are %q", keys)
				}
			})
		})
	}
}

// Limiters that last for a second leave nothing that lasts for longer.
func TestARateLimiterLeavesNoKeyForEachClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		clients := []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{})}
		for i := range 50 {
			for j, c := range clients {
				l := ratelimit.New(c, fmt.Sprint("api", i), ratelimit.Rate{})
				if set, err := l.TrySetRate(bg, ratelimit.Rate{Permits: 10, Interval: time.Second, KeepAlive: time.Second}); set != (j == 0) || err != nil {
					t.Fatal(set, err)
				}
				w.TakeRate(l, 1)
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if keys := w.Keys(); len(keys) > 0 {
			t.Errorf("%d keys are left, such as %q", len(keys), keys[0])
		}
	})
}

// Who has set the rate is told so, also by a later answer.
func TestARateThatWasSetIsAnsweredSoAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l, x := limiterOver(w, "ratelimiter.tryset", firstIs(locktest.ReplyLost))
		rate := ratelimit.Rate{Permits: 10, Interval: time.Second}
		if set, err := l.TrySetRate(bg, rate); !set || err != nil {
			t.Error(set, err)
		}
		if set, err := l.TrySetRate(bg, rate); set || err != nil {
			t.Error(set, err)
		}
		if err := l.SetRate(bg, ratelimit.Rate{Permits: 20, Interval: time.Second}); err != nil {
			t.Error(err)
		}
		x.Arrive()
		wantAvailable(w, l, 20)
	})
}

// What a client has for itself ends when nothing of it counts any longer, and not
// before: an answer that was lost is given from when it was given again.
func TestTheStateOfAClientThatIsGoneEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var wg sync.WaitGroup
		l, _ := limiterOver(w, "ratelimiter.take", func(n int) locktest.Fate {
			if n > 1 && n < 12 {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		if _, err := l.TrySetRate(bg, ratelimit.Rate{Permits: 10, Interval: 3 * time.Second, PerClient: true}); err != nil {
			t.Fatal(err)
		}
		w.TakeRate(l, 1)
		wg.Go(func() { w.TakeRate(l, 9) }) // is answered after three seconds and more
		wg.Wait()
		for range 29 {
			if n, err := l.Available(bg); n > 1 || err != nil { // the first one's comes back before
				t.Errorf("available: %d (%v)", n, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1200 * time.Millisecond)
		if keys := w.Keys(); strings.Join(keys, " ") != "api" {
			t.Errorf("left are %q", keys)
		}
		wantAvailable(w, l, 10)
	})
}

// A rate that is set once is not set again by an attempt that comes when somebody
// has deleted the limiter, whose client has long been answered.
func TestALateAttemptDoesNotSetARateThatWasDeleted(t *testing.T) {
	for _, x := range []struct {
		name    string
		fate    func(n int) locktest.Fate
		deletes func(own, other *ratelimit.Limiter) *ratelimit.Limiter
		leave   bool
	}{
		{"own delete", firstIs(locktest.Late), func(own, _ *ratelimit.Limiter) *ratelimit.Limiter { return own }, false},
		{"other's delete", firstIs(locktest.Late), func(_, other *ratelimit.Limiter) *ratelimit.Limiter { return other }, false},
		{"two attempts", func(n int) locktest.Fate {
			return []locktest.Fate{locktest.Late, locktest.Late, locktest.Good}[min(n-1, 2)]
		}, func(_, other *ratelimit.Limiter) *ratelimit.Limiter { return other }, false},
		{"the answer is lost", firstIs(locktest.ReplyLost), func(_, other *ratelimit.Limiter) *ratelimit.Limiter { return other }, false},
		{"whose caller has left", firstIs(locktest.Late), func(own, _ *ratelimit.Limiter) *ratelimit.Limiter { return own }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l, late := limiterOver(w, "ratelimiter.tryset", x.fate)
				other := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
				ctx, cancel := context.WithTimeout(bg, time.Hour)
				if x.leave {
					ctx, cancel = context.WithTimeout(bg, time.Millisecond)
				}
				defer cancel()
				set, err := l.TrySetRate(ctx, ratelimit.Rate{Permits: 10, Interval: time.Second})
				if set == x.leave || (err != nil) != x.leave {
					t.Fatal(set, err)
				}
				time.Sleep(time.Second)
				if was, err := x.deletes(l, other).Delete(bg); !was || err != nil {
					t.Fatal(was, err)
				}
				late.Arrive()
				_, err = other.Config(bg)
				w.WantErr(err, redlatch.ErrUninitialized)
				if set, err := l.TrySetRate(bg, ratelimit.Rate{Permits: 10, Interval: time.Second}); !set || err != nil {
					t.Error(set, err)
				}
			})
		})
	}
}

// That a TrySetRate leaves no key is no sign that the server has forgotten what a
// Delete beside it did.
func TestADeleteBesideATrySetRateIsNotForgotten(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var tries atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			switch {
			case s == "ratelimiter.tryset":
				time.Sleep(10 * time.Millisecond)
			case s == "ratelimiter.delete" && tries.Add(1) == 1:
				return locktest.NotSent.Of(next)
			}
			return next()
		}})
		l := ratelimit.New(c, "api", ratelimit.Rate{})
		set := locktest.Later(func() error {
			_, err := l.TrySetRate(bg, ratelimit.Rate{Permits: 1, Interval: time.Second})
			return err
		})
		synctest.Wait()
		was, err := l.Delete(bg)
		w.OK(<-set)
		if !was || err != nil {
			t.Errorf("Delete: %v, %v", was, err)
		}
	})
}
