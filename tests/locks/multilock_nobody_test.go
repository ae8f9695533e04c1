package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An ended is a client whose program ends: it closes the client, and then the
// connections under it.
type ended struct {
	*redlatch.Client
	gone atomic.Bool // the connections are
}

// ending returns a client from which every request takes twice so long.
func ending(w *locktest.World, far time.Duration) *ended {
	c := &ended{}
	c.Client = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		time.Sleep(far)
		defer time.Sleep(far)
		if c.gone.Load() {
			return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("the program has closed its connections")}
		}
		return next()
	}})
	return c
}

func (c *ended) end() error {
	defer c.gone.Store(true)
	return c.Close()
}

// wholes are locks that are several, by what makes them: of the clients of three
// servers.
var wholes = map[string]func(cs []*ended) *redlatch.Lock{
	"together": func(cs []*ended) *redlatch.Lock {
		return redlatch.MultiLock(cs[0].Lock("a"), cs[0].Lock("b"), cs[0].Lock("c"))
	},
	"in turn": func(cs []*ended) *redlatch.Lock {
		return redlatch.MultiLock(cs[0].Lock("a", redlatch.Fenced()), cs[0].FairLock("b"), cs[0].ReadWriteLock("c").Read())
	},
	"several": func(cs []*ended) *redlatch.Lock {
		return redlatch.MultiLock(cs[0].Lock("a"), cs[1].Lock("b"), cs[2].Lock("c"))
	},
	"red": func(cs []*ended) *redlatch.Lock {
		return redlatch.RedLock(cs[0].Lock("a"), cs[1].Lock("a"), cs[2].Lock("a"))
	},
}

// Members stayed for their whole TTL that an acquisition had when it met Close,
// although nobody ever held them.
func TestCloseLeavesNoMemberThatNobodyHolds(t *testing.T) {
	met := 0
	for kind, whole := range wholes {
		for _, closed := range [][]int{{0}, {2}, {0, 1, 2}, {2, 1, 0}} {
			for at := range 30 {
				inRedTime(t, 3, func(p *poll) {
					var cs []*ended
					for i, w := range p.servers {
						cs = append(cs, ending(w, time.Duration(1+2*i)*time.Millisecond))
					}
					got := locktest.Later(func() error { _, err := whole(cs).Acquire(bg); return err })
					time.Sleep(time.Duration(at) * time.Millisecond)
					for _, i := range closed {
						p.OK(cs[i].end())
					}
					if err := <-got; err == nil { // a section may run
						return
					} else if !errors.Is(err, redlatch.ErrClosed) {
						t.Errorf("%s, %v closed after %d ms: %v", kind, closed, at, err)
					}
					met++
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
					for i, w := range p.servers {
						if w.Server.Exists("a") || w.Server.Exists("b") || w.Server.Exists("c") {
							t.Errorf("%s, %v closed after %d ms: server %d keeps %q", kind, closed, at, i, w.Keys())
						}
					}
				})
			}
		}
	}
	if met < 60 {
		t.Errorf("only %d acquisitions met Close", met)
	}
}

// The same of one lock, and of permits, that two callers of the process want.
// Their requests are on the way when the client is closed, and then its
// connections are gone.
func TestCloseLeavesNothingThatNobodyHolds(t *testing.T) {
	kinds := map[string]func(c *redlatch.Client) error{
		"permits": func(c *redlatch.Client) error {
			_, err := locktest.Each(semaphore.NewExpirable(c, "permits", 0).Acquire(bg, 3))
			return err
		},
		// It has its place among the readers, whose lease it raises, when the one who
		// asked for them has left.
		"place": func(c *redlatch.Client) error {
			l := c.ReadWriteLock("orders").Read()
			ctx, cancel := context.WithTimeout(bg, time.Millisecond)
			defer cancel()
			left := locktest.Later(func() error { _, err := l.Acquire(ctx); return err })
			synctest.Wait()
			_, err := locktest.With(l, redlatch.Lease(time.Hour)).Acquire(bg)
			if <-left == nil {
				t.Error("the first reader has not left")
			}
			return err
		},
	}
	for kind, lock := range locktest.TypesOfLock {
		kinds[kind] = func(c *redlatch.Client) error { _, err := lock(c, "orders").Acquire(bg); return err }
	}
	for kind, acquire := range kinds {
		met := 0
		for at := range 60 {
			locktest.InFakeTime(t, func(w *locktest.World) {
				permits := semaphore.NewExpirable(w.Client(redlatch.Config{}), "permits", 0)
				if _, err := permits.TrySetPermits(bg, 6); err != nil {
					t.Fatal(err)
				}
				c := ending(w, 2*time.Millisecond)
				callers := []<-chan error{locktest.Later(func() error { return acquire(c.Client) })}
				if kind != "place" {
					callers = append(callers, locktest.Later(func() error { return acquire(c.Client) }))
				}
				time.Sleep(time.Duration(at) * time.Millisecond / 4)
				w.OK(c.end())
				held := false // a section may run
				for _, caller := range callers {
					if err := <-caller; err == nil {
						held = true
					} else if !errors.Is(err, redlatch.ErrClosed) {
						t.Errorf("%s, closed after %d/4 ms: %v", kind, at, err)
					}
				}
				time.Sleep(100 * time.Millisecond)
				if held {
					return
				}
				met++
				given, err := permits.Acquired(bg)
				if w.OK(err); given > 0 || w.Server.Exists("orders") {
					t.Errorf("%s, closed after %d/4 ms: left behind: %d permits, %q", kind, at, given, w.Keys())
				}
			})
		}
		if met < 8 {
			t.Errorf("%s: only %d acquisitions met Close", kind, met)
		}
	}
}
