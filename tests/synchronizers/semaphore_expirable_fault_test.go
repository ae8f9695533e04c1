package synchronizers

import (
	"encoding/hex"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A permitRequest is a request that changes a semaphore of 5 permits, of which
// somebody else has one. provoke calls arm and sends it; it returns the permits
// that are held then, and how many there are in all.
type permitRequest struct {
	script  string
	opts    []redlatch.HoldOption // of the semaphore
	provoke func(w *locktest.World, s *semaphore.Expirable, arm func()) (held []*redlatch.Hold, total int)
}

var permitRequests = map[string]permitRequest{
	"take": {"expirable.take", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		arm()
		return []*redlatch.Hold{w.Permit(s)}, 5
	}},
	"take of several": {"expirable.take", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		arm()
		ps, err := locktest.Each(s.Acquire(bg, 3))
		if err != nil {
			w.Fatal(err)
		}
		return ps, 5
	}},
	"take that was extended since": {"expirable.take", []redlatch.HoldOption{redlatch.Lease(30 * time.Second)}, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		arm()
		p := w.Permit(s)
		if err := p.Extend(bg, time.Hour); err != nil {
			w.Errorf("Extend: %v", err)
		}
		return []*redlatch.Hold{p}, 5
	}},
	"renew": {"expirable.renew", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		p := w.Permit(s)
		before := p.Expires()
		arm()
		time.Sleep(15 * time.Second)
		if !p.Expires().After(before) {
			w.Error("not renewed")
		}
		return []*redlatch.Hold{p}, 5
	}},
	"extend": {"expirable.renew", []redlatch.HoldOption{redlatch.Lease(30 * time.Second)}, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		p := w.Permit(s)
		arm()
		if err := p.Extend(bg, time.Minute); err != nil {
			w.Errorf("Extend: %v", err)
		}
		return []*redlatch.Hold{p}, 5
	}},
	"release": {"expirable.release", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		p := w.Permit(s)
		arm()
		giveBack(w, p)
		return nil, 5
	}},
	"release by id": {"expirable.give_back", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		p, q := w.Permit(s), w.Permit(s)
		javaPermit(w, javaID, locktest.Forever)
		_, _ = w.Server.Incr(locktest.Pool, -1)
		arm()
		if err := s.Release(bg, javaID, p.ID()); err != nil {
			w.Errorf("Release: %v", err)
		}
		return []*redlatch.Hold{q}, 5
	}},
	"a refused release by id": {"expirable.give_back", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		p := w.Permit(s)
		arm()
		w.WantErr(s.Release(bg, javaID), redlatch.ErrNotHeld)
		return []*redlatch.Hold{p}, 5
	}},
	"AddPermits": {"expirable.add", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		arm()
		if err := s.AddPermits(bg, 2); err != nil {
			w.Error(err)
		}
		return nil, 7
	}},
	"SetPermits": {"expirable.set", nil, func(w *locktest.World, s *semaphore.Expirable, arm func()) ([]*redlatch.Hold, int) {
		arm()
		if err := s.SetPermits(bg, 3); err != nil {
			w.Error(err)
		}
		return nil, 3
	}},
}

// lostOnce loses the reply to a script, or the script itself, once.
type lostOnce struct {
	locktest.Tap
	script   string
	executed bool
	mu       sync.Mutex // guards what follows
	armed    bool
	late     func()
}

func newLostOnce(script string, executed bool) *lostOnce {
	d := &lostOnce{script: script, executed: executed, late: func() {}}
	d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		d.mu.Lock()
		fire := d.armed && s == d.script
		if fire {
			d.armed, d.late = false, d.Again(s, args)
		}
		d.mu.Unlock()
		if !fire {
			return next()
		}
		if d.executed {
			_, _ = next()
		}
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return d
}

func (d *lostOnce) arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = true
}

func (d *lostOnce) wantFired(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed {
		t.Error("no such request was sent")
	}
}

func (d *lostOnce) deliver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late()
}

// A reply is lost, or the request, or it is executed late: after its retry, after
// the release, while somebody else has all the permits. Nothing is done twice,
// lost, cut short or left behind.
func TestALostReplyOrALateRequestAboutPermits(t *testing.T) {
	for name, request := range permitRequests {
		for _, executed := range []bool{true, false} {
			for _, lateAt := range []string{"at once", "after the release", "in another's time"} {
				t.Run(name+"/"+map[bool]string{true: "reply lost", false: "request lost"}[executed]+"/late "+lateAt, func(t *testing.T) {
					locktest.InFakeTime(t, func(w *locktest.World) {
						d := newLostOnce(request.script, executed)
						c, other := w.Tapped(redlatch.Config{}, &d.Tap), w.Client(redlatch.Config{})
						s, theirs := w.Permits(c, 5, request.opts...), semaphore.NewExpirable(other, locktest.Pool, 0)
						keep := w.Permit(theirs)
						held, total := request.provoke(w, s, d.arm)
						d.wantFired(t)
						want := func(given int) {
							t.Helper()
							w.WantPermits(total-given, given)
						}
						want(len(held) + 1)
						deliver := func(moment string) {
							if moment == lateAt {
								d.deliver()
							}
						}
						deliver("at once")
						want(len(held) + 1)
						for _, p := range held {
							raw, _ := hex.DecodeString(p.ID())
							if score, err := w.Server.ZScore(locktest.PoolTimes, string(raw)); err != nil || p.Err() != nil || score < float64(p.Expires().UnixMilli()) {
								t.Errorf("%v; score %v (%v), trusted until %v", p.Err(), score, err, p.Expires())
							}
						}
						giveBack(w, held...)
						want(1)
						// A later request of the same session.
						if err := s.AddPermits(bg, 1); err != nil {
							t.Error(err)
						}
						total++
						deliver("after the release")
						if lateAt == "in another's time" {
							ps, err := locktest.Each(theirs.Acquire(bg, total-1))
							if err != nil {
								t.Fatal(err)
							}
							deliver(lateAt)
							want(total)
							time.Sleep(time.Minute)
							for _, p := range ps {
								if err := p.Err(); err != nil {
									t.Error(err)
								}
							}
							giveBack(w, ps...)
						}
						time.Sleep(15 * time.Second) // the debts of a take are paid by then
						want(1)
						giveBack(w, keep)
						want(0)
					})
				})
			}
		}
	}
}

// Those whose late request would make or destroy the semaphore itself.
func TestASemaphoreIsMadeAndDeletedOnce(t *testing.T) {
	for _, executed := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			d := newLostOnce("expirable.try_set", executed)
			s := semaphore.NewExpirable(w.Tapped(redlatch.Config{}, &d.Tap), locktest.Pool, 0)
			d.arm()
			if set, err := s.TrySetPermits(bg, 5); !set || err != nil {
				t.Error(set, err)
			}
			d.wantFired(t)
			if deleted, err := s.Delete(bg); !deleted || err != nil {
				t.Error(deleted, err)
			}
			d.deliver()
			if w.Server.Exists(locktest.Pool) {
				t.Error("a late request made the semaphore")
			}
		})
		locktest.InFakeTime(t, func(w *locktest.World) {
			d := newLostOnce("expirable.delete", executed)
			s := w.Permits(w.Tapped(redlatch.Config{}, &d.Tap), 5)
			d.arm()
			if deleted, err := s.Delete(bg); !deleted || err != nil {
				t.Error(deleted, err)
			}
			d.wantFired(t)
			w.Permits(w.Client(redlatch.Config{}), 3)
			if err := s.AddPermits(bg, 1); err != nil {
				t.Error(err)
			}
			d.deliver()
			w.WantPermits(4, 0)
		})
	}
}

// A caller that leaves with a request in flight gets nothing, and neither does
// anybody lose anything by that: not if it brings permits later, nor if it never
// tells.
func TestWhoLeavesWithARequestInFlight(t *testing.T) {
	for _, told := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s != "expirable.take" {
					return next()
				}
				time.Sleep(50 * time.Millisecond)
				r, err := next()
				time.Sleep(50 * time.Millisecond)
				if !told {
					return driver.Reply{}, locktest.ErrReplyLost
				}
				return r, err
			}}
			c := w.Tapped(redlatch.Config{}, d)
			s := w.Permits(c, 2)
			start := time.Now()
			_, err := locktest.Each(s.TryAcquire(bg, 2, 70*time.Millisecond))
			w.WantErr(err, redlatch.ErrBusy)
			if waited := time.Since(start); waited != 70*time.Millisecond {
				t.Errorf("waited for %v", waited)
			}
			time.Sleep(time.Second)
			w.WantPermits(2, 0)
		})
	}
}

// A server that does not answer ends a wait with ErrUnavailable, and one that is
// ending with its context says so too.
func TestPermitsInAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var mu sync.Mutex
		down := false
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			mu.Lock()
			is := down
			mu.Unlock()
			if is {
				time.Sleep(20 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}}
		set := func(is bool) {
			mu.Lock()
			defer mu.Unlock()
			down = is
		}
		c := w.Tapped(redlatch.Config{OutageTimeout: 5 * time.Second}, d)
		s := w.Permits(c, 1)
		p := w.Permit(s)
		waiting := locktest.Later(func() error { _, err := s.Acquire(bg, 1); return err })
		time.Sleep(time.Minute) // that it waits for so long is no outage
		set(true)
		start := time.Now()
		w.WantErr(<-waiting, redlatch.ErrUnavailable)
		// The last answer was to a poll, up to 2.4 s before.
		if d := time.Since(start); d < 2500*time.Millisecond || d > 8*time.Second {
			t.Errorf("unavailable after %v", d)
		}
		_, err := s.TryAcquire(bg, 1, 0)
		w.WantErr(err, redlatch.ErrUnavailable)
		_, err = s.TryAcquire(bg, 1, time.Second)
		w.WantErr(err, redlatch.ErrUnavailable)
		if errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		set(false)
		<-p.Context().Done() // not one renewal for half a minute
		time.Sleep(time.Second)
		w.WantPermits(1, 0)
		giveBack(w, w.Permit(s))
	})
}

// An answer that comes when the lease is over brings no permit, and leaves none
// behind.
func TestPermitsThatComeTooLate(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := 2
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "expirable.take" && slow > 0 {
				slow--
				time.Sleep(60 * time.Millisecond)
			}
			return r, err
		}}
		s := w.Permits(w.Tapped(redlatch.Config{}, d), 1, redlatch.Lease(50*time.Millisecond))
		p := w.Permit(s)
		if err := p.Err(); err != nil || slow != 0 {
			t.Errorf("%v; %d slow ones are left", err, slow)
		}
		giveBack(w, p)
		time.Sleep(time.Second)
		w.WantPermits(1, 0)
	})
}

func TestADroppedPermitIsReportedAndReleased(t *testing.T) {
	dropped := make(chan observe.DroppedEvent, 1)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	s := w.Permits(c, 1)
	if _, err := s.Acquire(bg, 1); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(locktest.Generous); time.Now().Before(end); {
		runtime.GC()
		select {
		case e := <-dropped:
			if e.Name != locktest.Pool || !strings.Contains(e.Site, "expirable_fault_test.go") {
				t.Fatalf("%+v", e)
			}
			giveBack(w, w.Permit(s)) // comes through only if it was released
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("nobody noticed that the permit was dropped")
}
