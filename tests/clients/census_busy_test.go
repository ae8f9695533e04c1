package clients

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// curious returns a client, and how often it has asked who another client is. An
// answer to that takes as long as is said.
func curious(w *locktest.World, takes time.Duration) (c *redlatch.Client, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	c = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if s == "client.read" {
			asked.Add(1)
			time.Sleep(takes)
		}
		return next()
	}})
	return c, asked
}

// refusal returns what an acquisition that fails says of the holder.
func refusal(ctx context.Context, t *testing.T, l *redlatch.Lock, wait time.Duration) *redlatch.BusyError {
	t.Helper()
	var busy *redlatch.BusyError
	if _, err := l.TryAcquire(ctx, wait); !errors.As(err, &busy) {
		t.Fatalf("no BusyError: %v", err)
	}
	return busy
}

// A caller that waits learns who has the lock, with one request. One that only
// tries sends none, and says what others have learnt.
func TestABusyErrorSaysWhoHasTheLock(t *testing.T) {
	for kind, of := range locktest.TypesOfLock {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				holder := w.Client(redlatch.Config{Identity: billing})
				c, asked := curious(w, time.Millisecond)
				holds := of
				if kind == "read" { // readers do not refuse one another
					holds = locktest.TypesOfLock["write"]
				}
				h := w.Acquire(bg, holds(holder, "orders"))
				time.Sleep(2 * time.Second)
				for range 2 {
					if e := refusal(bg, t, of(c, "orders"), 0); e.By != "" || e.Owner == "" {
						t.Errorf("before anybody has waited: %+v", e)
					}
					time.Sleep(2 * time.Second)
				}
				if n := asked.Load(); n != 0 {
					t.Errorf("%d requests of a caller that does not wait", n)
				}
				want, requests := "billing@host-7 pid 4121", int64(1)
				if kind == "spin" {
					want, requests = "", 0
				}
				e := refusal(bg, t, of(c, "orders"), 100*time.Millisecond)
				if said := kind != "spin"; e.By != want || e.Renewed != said || (e.For > 6*time.Second) != said || e.TTL == 0 {
					t.Errorf("after a wait: %+v", e)
				}
				for range 3 {
					if e := refusal(bg, t, of(c, "orders"), 0); e.By != want {
						t.Errorf("of a client that knows it: %+v", e)
					}
				}
				if n := asked.Load(); n != requests {
					t.Errorf("%d requests", n)
				}
				if e := refusal(bg, t, of(holder, "orders"), 0); e.By != "billing@host-7 pid 4121" || (kind != "group" && (e.For != 6*time.Second+100*time.Millisecond || !e.Renewed)) {
					t.Errorf("of this very client: %+v", e)
				}
				w.Release(h)
			})
		})
	}
}

// A holder that has no note yet is asked about again, whoever has been told
// meanwhile that it is not known.
func TestAWaitThatGivesUpHasLookedAfterItsLastRefusal(t *testing.T) {
	for _, kind := range []string{"lock", "fair"} {
		of := locktest.TypesOfLock[kind]
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c, asked := curious(w, 0)
				h := w.Acquire(bg, of(w.Client(redlatch.Config{Identity: billing}), "orders")) // it writes its note within two seconds
				start := time.Now()
				e := refusal(bg, t, of(c, "orders"), 5*time.Second) // the second refusal after that comes in less than that
				if e.By != "billing@host-7 pid 4121" || time.Since(start) != 5*time.Second {
					t.Errorf("after %v: %+v", time.Since(start), e)
				}
				if n := asked.Load(); n < 2 || n > 4 {
					t.Errorf("%d requests in five seconds", n)
				}
				w.Release(h)
			})
		})
	}
}

// A holder may never write a note, or the user may not read it. A caller that
// waits for long asks about it ever less often.
func TestALongWaitForAHolderWithoutANoteAsksSeldom(t *testing.T) {
	denied := driver.ServerError("NOPERM No permissions to access a key", nil)
	for _, kind := range []string{"lock", "fair"} {
		of := locktest.TypesOfLock[kind]
		for name, tc := range map[string]struct {
			note, read error // what the server says to the holder, and to who reads the note
			wait       time.Duration
			most       int64
		}{
			"no note, a minute":          {note: denied, wait: time.Minute, most: 8},
			"no note, ten minutes":       {note: denied, wait: 10 * time.Minute, most: 26},
			"refused, four minutes":      {read: denied, wait: 4 * time.Minute, most: 1},
			"both refused, nine minutes": {note: denied, read: denied, wait: 9 * time.Minute, most: 2},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var asked atomic.Int64
					refusing := func(script string, err error) *locktest.Tap {
						return &locktest.Tap{Notes: true, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
							if s == "client.read" {
								asked.Add(1)
							}
							if s == script && err != nil {
								return driver.Reply{}, err
							}
							return next()
						}}
					}
					h := w.Acquire(bg, of(w.Tapped(redlatch.Config{}, refusing("client.note", tc.note)), "orders"))
					c := w.Tapped(redlatch.Config{}, refusing("client.read", tc.read))
					if e := refusal(bg, t, of(c, "orders"), tc.wait); e.By != "" {
						t.Errorf("%+v", e)
					}
					if n := asked.Load(); n == 0 || n > tc.most {
						t.Errorf("%d requests in %v", n, tc.wait)
					}
					w.Release(h)
				})
			})
		}
	}
}

// A client that the server gave no answer at first writes its note half a minute
// later. A caller that still waits learns of it.
func TestANoteThatComesLateIsFound(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		tries := 0
		holder := w.Tapped(redlatch.Config{Identity: billing}, &locktest.Tap{Notes: true, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.note" {
				if tries++; tries == 1 {
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return next()
		}})
		c, _ := curious(w, 0)
		h := w.Acquire(bg, holder.Lock("orders"))
		if e := refusal(bg, t, c.Lock("orders"), 80*time.Second); e.By != "billing@host-7 pid 4121" { // 36 s, 32 s and a poll
			t.Errorf("%+v", e)
		}
		if tries < 2 {
			t.Error("the note was written at once, so this shows nothing")
		}
		w.Release(h)
	})
}

// A context that ends ends the wait at once, and so does the end of the wait,
// whatever becomes of the question.
func TestNoAnswerWaitsForANameOfTheHolder(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, asked := curious(w, time.Hour)
		h := w.Acquire(bg, w.Client(redlatch.Config{Identity: billing}).Lock("orders"))
		time.Sleep(2 * time.Second)
		for _, end := range []struct {
			ctx, wait time.Duration
		}{{time.Hour, 300 * time.Millisecond}, {300 * time.Millisecond, time.Hour}} {
			ctx, cancel := context.WithTimeout(bg, end.ctx)
			start := time.Now()
			e := refusal(ctx, t, c.Lock("orders"), end.wait)
			cancel()
			if d := time.Since(start); d != 300*time.Millisecond || e.Owner != h.ID() || e.By != "" {
				t.Errorf("after %v: %+v", d, e)
			}
		}
		if n := asked.Load(); n == 0 {
			t.Error("nothing was asked, so this shows nothing")
		}
		w.Release(h)
		time.Sleep(time.Hour) // for what waits in the hook
	})
}

// Callers that give up by the hundred share what one of them has asked, also if
// there is nothing to learn.
func TestAHundredThatGiveUpTogetherHaveAskedOnce(t *testing.T) {
	for _, kind := range []string{"lock", "fair", "read", "write"} {
		of := locktest.TypesOfLock[kind]
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				holder := w.Client(redlatch.Config{Identity: billing})
				c, asked := curious(w, time.Millisecond)
				h := w.Acquire(bg, locktest.TypesOfLock[map[bool]string{true: "write", false: kind}[kind == "read"]](holder, "orders"))
				all := func() (errs []*redlatch.BusyError) {
					var each []<-chan *redlatch.BusyError
					for range 100 {
						each = append(each, locktest.Later(func() *redlatch.BusyError {
							_, err := of(c, "orders").TryAcquire(bg, 500*time.Millisecond)
							var busy *redlatch.BusyError
							_ = errors.As(err, &busy)
							return busy
						}))
					}
					for _, e := range each {
						errs = append(errs, <-e)
					}
					return errs
				}
				for _, e := range all() { // in less than a second, in which the holder writes no note
					if e == nil || e.By != "" {
						t.Fatalf("%+v", e)
					}
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("%d requests about a holder that is not known", n)
				}
				time.Sleep(2 * time.Second)
				for _, e := range all() {
					if e == nil || e.By != "billing@host-7 pid 4121" {
						t.Fatalf("%+v", e)
					}
				}
				if n := asked.Load(); n != 2 {
					t.Errorf("%d requests in all", n)
				}
				w.Release(h)
			})
		})
	}
}

// A question about one holder keeps nobody from asking about another.
func TestTwoHoldersAreAskedAboutAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, _ := curious(w, 100*time.Millisecond)
		names := []string{"a", "b", "c"}
		for _, name := range names {
			h := w.Acquire(bg, w.Client(redlatch.Config{Identity: redlatch.Identity{Name: "has-" + name}}).Lock(name))
			defer w.Release(h)
		}
		time.Sleep(2 * time.Second)
		var each []<-chan *redlatch.BusyError
		for _, name := range names {
			each = append(each, locktest.Later(func() *redlatch.BusyError { return refusal(bg, t, c.Lock(name), 300*time.Millisecond) }))
		}
		for i, e := range each {
			if e := <-e; !strings.HasPrefix(e.By, "has-"+names[i]+"@") {
				t.Errorf("%s: %+v", names[i], e)
			}
		}
	})
}

// Several locks as one are waited for, too: also where each is on a server of its
// own, whose clients only try.
func TestABusyErrorOfSeveralLocksSaysWhoHasOne(t *testing.T) {
	for _, kind := range []string{"multi", "red"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := locktest.NewWorld(t)
				worlds := []*locktest.World{w, w, w}
				join, has := redlatch.MultiLock, []int{1}
				if kind == "red" {
					worlds = []*locktest.World{w, locktest.NewWorld(t), locktest.NewWorld(t)}
					join, has = redlatch.RedLock, []int{1, 2} // the majority, without the first one
				}
				var locks []*redlatch.Lock
				for i, w := range worlds {
					locks = append(locks, w.Client(redlatch.Config{}).Lock("orders"+string(rune('a'+i))))
				}
				for _, i := range has {
					h := w.Acquire(bg, worlds[i].Client(redlatch.Config{Identity: billing}).Lock(locks[i].Name()))
					defer w.Release(h)
				}
				time.Sleep(2 * time.Second)
				_, err := join(locks...).TryAcquire(bg, 0)
				var busy *redlatch.BusyError
				if !errors.As(err, &busy) || busy.By != "" {
					t.Errorf("of a try: %v", err)
				}
				_, err = join(locks...).TryAcquire(bg, 3*time.Second)
				if !errors.As(err, &busy) || busy.By != "billing@host-7 pid 4121" {
					t.Errorf("after a wait: %v", err)
				}
			})
		})
	}
}

// The same on real servers: each client asks once, for all its callers that wait,
// and one whose callers only try asks nothing.
func TestOnRealServersAWaitNamesTheHolder(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		place := drivers.Single(s.Addr())
		client := func(a drivers.Adapter) *redlatch.Client {
			return locktest.ClientOf(t, a.Open(t, place), redlatch.Config{Identity: redlatch.Identity{Name: a.Name}})
		}
		holder := client(drivers.Adapters[0])
		h, err := holder.Lock("orders", redlatch.Note("nightly")).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !locktest.Within(locktest.Generous, func() bool { return s.MustDo("EXISTS", noteOf(holder)) == int64(1) }) {
			t.Fatal("there is no note")
		}
		locktest.Executed(t, s)
		for _, adapter := range drivers.Adapters {
			tries, waits := client(adapter), client(adapter)
			var busy *redlatch.BusyError
			for range 10 {
				if _, err := tries.Lock("orders").TryAcquire(t.Context(), 0); !errors.As(err, &busy) || busy.Owner != h.ID() || busy.By != "" || busy.Note != "" {
					t.Errorf("%s, a try: %v", adapter.Name, err)
				}
			}
			named := locktest.Within(locktest.Generous, func() bool { // at once, unless the machine stands still
				var each []<-chan error
				for range 50 {
					each = append(each, locktest.Later(func() error {
						_, err := waits.Lock("orders").TryAcquire(t.Context(), 300*time.Millisecond)
						return err
					}))
				}
				known := 0
				for _, c := range each {
					if err := <-c; errors.As(err, &busy) && busy.Owner == h.ID() && strings.HasPrefix(busy.By, drivers.Adapters[0].Name+"@") && busy.Note == "nightly" && busy.For > 0 && busy.Renewed {
						known++
					}
				}
				return known == len(each)
			})
			if !named {
				t.Errorf("%s, after a wait: %v", adapter.Name, busy)
			}
		}
		if n := locktest.Executed(t, s)["getrange"]; n != len(drivers.Adapters) {
			t.Errorf("%d notes were read by %d clients that wait", n, len(drivers.Adapters))
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
