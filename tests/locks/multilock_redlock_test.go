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
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redsync #186: a majority that was slow to answer is trusted from when it was
// asked, not from when it answered.
func TestTheValidityOfARedLockCountsFromTheFirstSend(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		slow := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			defer time.Sleep(time.Second)
			return next()
		}
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: slow, 1: slow, 2: slow}, redlatch.Lease(30*time.Second))
		start := time.Now()
		h := p.Acquire(bg, m)
		if d := time.Since(start); d != time.Second {
			t.Fatalf("acquired after %v", d)
		}
		const margin = 10*time.Millisecond + 30*time.Second/50
		if end := h.Expires(); end.After(start.Add(30*time.Second - margin)) {
			t.Errorf("trusted until %v after the first request", end.Sub(start))
		}
		<-h.Context().Done()
		if d := time.Since(start); d > 30*time.Second-margin {
			t.Errorf("ended %v after the first request", d)
		}
		synctest.Wait()
		p.WantErr(h.Release(bg), redlatch.ErrLost)
		p.wantNothing()
	})
}

// A poll is the servers of red locks.
type poll struct {
	*locktest.World
	servers []*locktest.World
}

func inRedTime(t *testing.T, n int, f func(p *poll)) {
	t.Helper()
	locktest.InFakeTime(t, func(w *locktest.World) {
		p := &poll{World: w, servers: []*locktest.World{w}}
		for len(p.servers) < n {
			p.servers = append(p.servers, another(w))
		}
		f(p)
	})
}

// red returns the red lock of a process of its own.
func (p *poll) red(name string, opts ...redlatch.PlainOption) *redlatch.Lock {
	return p.tappedRed(name, nil, opts...)
}

// tappedRed is red with hooks between the clients and some of the servers.
func (p *poll) tappedRed(name string, hooks map[int]func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error), opts ...redlatch.PlainOption) *redlatch.Lock {
	locks := make([]*redlatch.Lock, len(p.servers))
	for i, w := range p.servers {
		if hook := hooks[i]; hook != nil {
			locks[i] = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: hook}).Lock(name, opts...)
		} else {
			locks[i] = w.Client(redlatch.Config{}).Lock(name, opts...)
		}
	}
	return redlatch.RedLock(locks...)
}

func (p *poll) wantNothing() {
	p.Helper()
	for _, w := range p.servers {
		w.WantNothing()
	}
}

// has counts the servers that have the key.
func (p *poll) has(key string) (n int) {
	for _, w := range p.servers {
		if w.Server.Exists(key) {
			n++
		}
	}
	return n
}

// blackHole takes requests and never answers; they are executed when late says
// so.
func blackHole(on *atomic.Bool, late time.Duration) func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
	return func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if !on.Load() {
			return next()
		}
		if late > 0 {
			time.AfterFunc(late, func() { _, _ = next() })
		}
		time.Sleep(3 * time.Second)
		return driver.Reply{}, locktest.ErrReplyLost
	}
}

func TestARedLockIsHeldByAMajority(t *testing.T) {
	inRedTime(t, 5, func(p *poll) {
		m, other := p.red("a"), p.red("a")
		h := p.Acquire(bg, m)
		synctest.Wait()
		if n := p.has("a"); n != 5 || len(h.Members()) != 5 {
			t.Errorf("%d servers have it, %d holds; those that are free were to join", n, len(h.Members()))
		}
		_, err := other.TryAcquire(bg, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Name != "a" || busy.Owner == "" {
			t.Errorf("Try: %v", err)
		}
		if left := time.Until(h.Expires()); left > 30*time.Second-610*time.Millisecond || left < 29*time.Second {
			t.Errorf("trusted for %v", left)
		}
		time.Sleep(10 * time.Minute)
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		p.Release(h)
		p.wantNothing()
		p.Release(p.Acquire(bg, other))
		p.WantErr(h.Release(bg), redlatch.ErrNotHeld)
		time.Sleep(time.Minute)
		p.wantNothing()
	})
}

func TestARedLockWorksWithAMinorityDown(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		p.servers[1].Server.SetError("LOADING down")
		m := p.red("a")
		start := time.Now()
		h := p.Acquire(bg, m)
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("acquired after %v", d)
		}
		time.Sleep(5 * time.Minute)
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		start = time.Now()
		p.Release(h)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("released after %v", d)
		}
		p.servers[1].Server.SetError("")
		time.Sleep(5 * time.Minute)
		p.wantNothing()
	})
}

// A member that takes requests and does not answer delays neither the
// acquisition nor the release, and what it executes late is undone.
func TestABlackHoledMinorityDelaysNothing(t *testing.T) {
	for _, late := range []time.Duration{0, 2 * time.Second, 20 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			inRedTime(t, 5, func(p *poll) {
				var on atomic.Bool
				on.Store(true)
				hole := blackHole(&on, late)
				m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: hole, 3: hole})
				for range 3 {
					start := time.Now()
					h := p.Acquire(bg, m)
					if d := time.Since(start); d > 10*time.Millisecond {
						t.Errorf("acquired after %v", d)
					}
					if n := len(h.Members()); n != 3 {
						t.Errorf("%d holds", n)
					}
					start = time.Now()
					ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
					if err := h.Release(ctx); err != nil {
						t.Error(err)
					}
					cancel()
					if d := time.Since(start); d > 50*time.Millisecond {
						t.Errorf("released after %v", d)
					}
				}
				on.Store(false)
				time.Sleep(40 * time.Second) // less than a lease after the latest request
				p.wantNothing()
			})
		})
	}
}

// A member that goes silent while the hold lives does not keep Release.
func TestAMemberThatFallsSilentDoesNotKeepTheReleaseOfARedLock(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var on atomic.Bool
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){1: blackHole(&on, 0)})
		h := p.Acquire(bg, m)
		synctest.Wait()
		on.Store(true)
		start := time.Now()
		if err := h.Release(bg); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 2*1500*time.Millisecond {
			t.Errorf("released after %v, want a twentieth of the lease at most", d)
		}
		on.Store(false)
		time.Sleep(10 * time.Minute)
		p.wantNothing()
	})
}

func TestARedLockFailsPromptlyWithAMajorityDown(t *testing.T) {
	for _, kind := range []string{"down", "black hole", "late"} {
		t.Run(kind, func(t *testing.T) {
			inRedTime(t, 3, func(p *poll) {
				var on atomic.Bool
				on.Store(true)
				hole := blackHole(&on, 0)
				if kind == "late" {
					hole = blackHole(&on, 2*time.Second)
				}
				var m *redlatch.Lock
				if kind == "down" {
					p.servers[0].Server.SetError("LOADING down")
					p.servers[2].Server.SetError("LOADING down")
					m = p.red("a")
				} else {
					m = p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: hole, 2: hole})
				}
				timed := func(what string, limit time.Duration, f func() error) {
					t.Helper()
					start := time.Now()
					err := f()
					p.WantErr(err, redlatch.ErrUnavailable)
					if d := time.Since(start); d > limit {
						t.Errorf("%s: after %v", what, d)
					}
					synctest.Wait()
					if p.servers[1].Server.Exists("a") {
						t.Errorf("%s: the member that works is left behind", what)
					}
				}
				timed("Try", 1600*time.Millisecond, func() error { _, err := m.TryAcquire(bg, 0); return err })
				timed("Wait", 5100*time.Millisecond, func() error { _, err := m.TryAcquire(bg, 5*time.Second); return err })
				timed("Acquire", 14*time.Second, func() error { _, err := m.Acquire(bg); return err })
				timed("with a context", 4*time.Second, func() error {
					ctx, cancel := context.WithTimeout(bg, 4*time.Second)
					defer cancel()
					_, err := m.Acquire(ctx)
					p.WantErr(err, context.DeadlineExceeded)
					return err
				})
				on.Store(false)
				for _, w := range p.servers {
					w.Server.SetError("")
				}
				time.Sleep(10 * time.Minute)
				p.wantNothing()
				p.Release(p.Acquire(bg, m))
				p.wantNothing()
			})
		})
	}
}

// The end of Wait cuts the last ballot short. Members that had no time to answer
// it are not down: those of the ballot before said that the lock is taken.
func TestAWaitThatEndsDuringABallotIsNoOutage(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		far := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(20 * time.Millisecond)
			defer time.Sleep(20 * time.Millisecond)
			return next()
		}
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: far, 1: far, 2: far})
		h := p.Acquire(bg, p.red("a"))
		for wait := 200 * time.Millisecond; wait < time.Second; wait += 10 * time.Millisecond {
			_, err := m.TryAcquire(bg, wait)
			if !errors.Is(err, redlatch.ErrBusy) || errors.Is(err, redlatch.ErrUnavailable) {
				t.Errorf("after %v: %v, want ErrBusy", wait, err)
			}
		}
		p.Release(h)
		time.Sleep(10 * time.Minute)
		p.wantNothing()
	})
}

func TestARedLockIsLostWhenNoMajorityIsRenewed(t *testing.T) {
	inRedTime(t, 5, func(p *poll) {
		m := p.red("a")
		h := p.Acquire(bg, m)
		synctest.Wait()
		p.servers[0].Server.SetError("LOADING cut off")
		p.servers[1].Server.SetError("LOADING cut off")
		time.Sleep(5 * time.Minute)
		if h.Err() != nil {
			t.Fatalf("with three of five: %v", h.Err())
		}
		p.servers[4].Server.SetError("LOADING cut off")
		<-h.Context().Done()
		if ttl := p.servers[4].Server.TTL("a"); ttl <= 0 {
			t.Error("told when another could have had a majority")
		}
		p.WantErr(h.Err(), redlatch.ErrLost)
		p.WantErr(h.Release(bg), redlatch.ErrLost)
		for _, w := range p.servers {
			w.Server.SetError("")
		}
		time.Sleep(5 * time.Minute)
		p.wantNothing()
	})
}

// Members that vote twice (restarted without their data) end the hold as soon as
// a majority is known to be gone.
func TestARedLockIsLostWhenAMajorityForgetsIt(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		h := p.Acquire(bg, p.red("a"))
		synctest.Wait()
		p.servers[0].Server.FlushAll()
		time.Sleep(11 * time.Second)
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		p.servers[1].Server.FlushAll()
		time.Sleep(11 * time.Second)
		p.WantErr(h.Err(), redlatch.ErrLost)
		p.WantErr(h.Release(bg), redlatch.ErrLost)
		p.wantNothing()
	})
}

func TestTheLeaseOfARedLockEndsWithItsMajority(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		h := p.Acquire(bg, p.red("a", redlatch.Lease(time.Second)))
		synctest.Wait()
		p.servers[0].Server.SetError("LOADING down")
		if err := h.Extend(bg, 10*time.Second); err != nil {
			t.Errorf("extended at two of three: %v", err)
		}
		if left := time.Until(h.Expires()); left < 9*time.Second {
			t.Errorf("trusted for %v", left)
		}
		p.servers[1].Server.SetError("LOADING down")
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		if err := h.Extend(ctx, 20*time.Second); err == nil {
			t.Error("extended at one of three")
		}
		<-h.Context().Done()
		if left := p.servers[1].Server.TTL("a"); left <= 0 {
			t.Error("told too late")
		}
		p.servers[0].Server.SetError("")
		p.servers[1].Server.SetError("")
		p.WantErr(h.Release(bg), redlatch.ErrLost)
		time.Sleep(5 * time.Minute)
		p.wantNothing()
	})
}

func TestARedLockIsReentered(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		m := p.red("a")
		h := p.Acquire(bg, m)
		synctest.Wait()
		err := m.Do(h.Context(), func(ctx context.Context) error {
			synctest.Wait()
			for i, member := range h.Members() {
				if got := p.servers[i].Server.HGet("a", member.ID()); got == "1" {
					t.Errorf("member %d is not re-entered", i)
				}
			}
			return m.Do(ctx, func(context.Context) error { return nil })
		})
		if err != nil {
			t.Error(err)
		}
		p.Release(h)
		_, err = m.Acquire(h.Context())
		p.WantErr(err, redlatch.ErrNotHeld)
		p.wantNothing()
	})
}

func TestARedLockWithAClosedMinorityWorksOn(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		clients := make([]*redlatch.Client, 3)
		locks := make([]*redlatch.Lock, 3)
		for i, w := range p.servers {
			clients[i] = w.Client(redlatch.Config{})
			locks[i] = clients[i].Lock("a")
		}
		m := redlatch.RedLock(locks...)
		h := p.Acquire(bg, m)
		synctest.Wait()
		if err := clients[0].Close(); err != nil {
			t.Fatal(err)
		}
		if h.Err() != nil {
			t.Error(h.Err())
		}
		p.Release(h)
		h = p.Acquire(bg, m)
		if err := clients[2].Close(); err != nil {
			t.Fatal(err)
		}
		<-h.Context().Done()
		p.WantErr(h.Err(), redlatch.ErrClosed)
		p.WantErr(h.Release(bg), redlatch.ErrClosed)
		_, err := m.Acquire(bg)
		p.WantErr(err, redlatch.ErrClosed)
	})
}

// The context of Acquire is often one for Acquire alone. A hold that has only the
// majority that was there at first ends with the next server that is lost.
func TestWhoAnswersLateJoinsARedLockWhoseCallersContextHasEnded(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		far := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			time.Sleep(100 * time.Millisecond)
			return next()
		}
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){2: far})
		ctx, cancel := context.WithCancel(bg)
		h := p.Acquire(ctx, m)
		cancel()
		time.Sleep(time.Second)
		if n := len(h.Members()); n != 3 || p.has("a") != 3 {
			t.Errorf("%d holds", n)
		}
		p.servers[0].Server.Del("a")
		time.Sleep(time.Minute)
		p.OK(h.Err())
		p.Release(h)
		time.Sleep(time.Second)
		p.wantNothing()
		_, err := m.Acquire(ctx)
		p.WantErr(err, context.Canceled)
		p.wantNothing()
	})
}
