package synchronizers

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func counting(ctx context.Context, l *latch.Latch) <-chan error {
	return locktest.Later(func() error { return l.CountDownAndWait(ctx) })
}

func TestThoseThatCountDownAndWaitGoOnTogether(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		if err := latch.New(a, "orders").CountDownAndWait(bg); err != nil {
			t.Errorf("at a latch that is not set: %v", err)
		}
		for range 3 {
			l := w.Latch(latch.New(a, "orders"), 4)
			var all []<-chan error
			for _, c := range []*redlatch.Client{a, b, b} {
				all = append(all, counting(bg, latch.New(c, "orders")))
				time.Sleep(10 * time.Second)
			}
			for _, x := range all {
				wantWaiting(w, x)
			}
			wantCount(w, l, 1)
			for _, x := range append(all, counting(bg, latch.New(b, "orders"))) {
				wantReleased(w, x)
			}
			wantCount(w, l, 0)
			w.WantQuiet()
		}
	})
}

// The last one would wait for those of the next time, if the latch is set again
// before it looks.
func TestWhoOpensALatchDoesNotWaitWhenItIsSetAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		other := latch.New(w.Client(redlatch.Config{}), "orders")
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "latch.down" {
				w.Latch(other, 7)
			}
			return r, err
		}})
		w.Latch(other, 1)
		wantReleased(w, counting(bg, latch.New(c, "orders")))
		wantCount(w, other, 7)
	})
}

// One that was not counted would wait for others at a latch that does not expect
// it, and say that it has counted.
func TestWhoCountsNothingDownDoesNotWaitWhenTheLatchIsSetMeanwhile(t *testing.T) {
	for left, prepare := range map[string]func(w *locktest.World){
		"not set":                        func(*locktest.World) {},
		"left at 0 by another client":    func(w *locktest.World) { w.OK(w.Server.Set("orders", "0")) },
		"left below 0 by another client": func(w *locktest.World) { w.OK(w.Server.Set("orders", "-1")) },
	} {
		t.Run(left, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				other := latch.New(w.Client(redlatch.Config{}), "orders")
				var asked atomic.Bool
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					switch s {
					case "latch.down":
						w.Latch(other, 7)
					case "latch.count":
						asked.Store(true)
					}
					return r, err
				}})
				prepare(w)
				wantReleased(w, counting(bg, latch.New(c, "orders")))
				wantCount(w, other, 7)
				if asked.Load() {
					t.Error("it waited, if only for one answer")
				}
			})
		})
	}
}

// A caller that does not know whether it was counted cannot know whether to count
// again.
func TestAWaitBehindACountDownSaysThatItHasCounted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var fate atomic.Value // of latch.down and latch.count
		fate.Store(map[string]locktest.Fate{})
		tap := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			return fate.Load().(map[string]locktest.Fate)[s].Of(next)
		}}
		c := w.Tapped(redlatch.Config{}, tap)
		seen := latch.New(w.Client(redlatch.Config{}), "orders")
		l := w.Latch(latch.New(c, "orders"), 10)
		failed := func(err error, counted bool, left int, is ...error) {
			t.Helper()
			w.WantErr(err, is...)
			if counted {
				w.WantErr(err, latch.ErrCounted)
			}
			if text := err.Error(); counted != strings.Contains(text, "was counted down") || redlatch.IsRetryable(err) && counted {
				t.Errorf("%s; retryable: %t", text, redlatch.IsRetryable(err))
			}
			wantCount(w, seen, left)
		}
		ended, cancel := context.WithCancel(bg)
		cancel()
		failed(l.CountDownAndWait(ended), false, 10, context.Canceled)
		var none context.Context
		failed(l.CountDownAndWait(none), false, 10, redlatch.ErrInvalid)

		soon, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		failed(l.CountDownAndWait(soon), true, 9, redlatch.ErrBusy, context.DeadlineExceeded)

		fate.Store(map[string]locktest.Fate{"latch.count": locktest.ReplyLost})
		failed(l.CountDownAndWait(bg), true, 8, redlatch.ErrUnavailable)

		// It is executed, and its answer never comes.
		fate.Store(map[string]locktest.Fate{"latch.down": locktest.ReplyLost})
		err := l.CountDownAndWait(bg)
		failed(err, false, 7, redlatch.ErrUnavailable)
		if !redlatch.IsRetryable(err) {
			t.Errorf("%v is not retryable", err)
		}
		fate.Store(map[string]locktest.Fate{})
		time.Sleep(time.Minute)
		wantCount(w, seen, 7)

		x := counting(bg, l)
		wantWaiting(w, x)
		w.OK(c.Close())
		failed(<-x, true, 6, redlatch.ErrClosed)
		w.WantErr(l.CountDownAndWait(bg), redlatch.ErrClosed)
		wantCount(w, seen, 6)
	})
}

func TestCountDownAndWaitCountsOnceWhenRepliesAreLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lose atomic.Int64
		c := newCounting(w, redlatch.Config{}, func(string, int) locktest.Fate {
			if lose.Add(-1) >= 0 {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		l := w.Latch(latch.New(c.Client, "orders"), 3)
		var all []<-chan error
		for left := 2; left >= 1; left-- {
			lose.Store(2)
			all = append(all, counting(bg, l))
			time.Sleep(5 * time.Second)
			wantCount(w, l, left)
			wantWaiting(w, all[len(all)-1])
		}
		lose.Store(2)
		w.OK(l.CountDownAndWait(bg))
		for _, x := range all {
			w.OK(<-x)
		}
	})
}

func TestCountDownAndWaitOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		const parties = 20
		var all []*latch.Latch
		for range 2 {
			all = append(all, latch.New(locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{}), "orders"))
		}
		for range 5 {
			if set, err := all[0].TrySetCount(bg, parties); !set || err != nil {
				t.Fatal(set, err)
			}
			var came atomic.Int32
			ended := make(chan error, parties)
			for i := range parties {
				go func() {
					came.Add(1)
					err := all[i%2].CountDownAndWait(bg)
					if n := came.Load(); n != parties {
						t.Errorf("one went on when %d had come", n)
					}
					ended <- err
				}()
			}
			for range parties {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
	})
}
