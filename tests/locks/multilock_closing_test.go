package locks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// clients returns a client of each server, and the red lock that they have. The
// callers of the process wait for one another at the first one.
func (p *poll) clients(cfg redlatch.Config) ([]*redlatch.Client, *redlatch.Lock) {
	all := make([]*redlatch.Client, len(p.servers))
	for i, w := range p.servers {
		if all[i] = w.Client(cfg); all[i].ID() < all[0].ID() {
			all[0], all[i] = all[i], all[0]
			p.servers[0], p.servers[i] = p.servers[i], p.servers[0]
		}
	}
	locks := make([]*redlatch.Lock, len(all))
	for i, c := range all {
		locks[i] = c.Lock("a")
	}
	return all, redlatch.RedLock(locks...)
}

// The callers of one process wait for one another at one of its clients. That
// client may have no member of the hold that they wait for.
func TestShutdownDoesNotWaitForARedLockOfOtherClients(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		clients, m := p.clients(redlatch.Config{})
		p.servers[0].Server.SetError("LOADING down")
		h := p.Acquire(bg, m)
		time.Sleep(2 * time.Second) // the third answer
		next := locktest.Later(func() error { return m.Do(bg, func(context.Context) error { return nil }) })
		synctest.Wait()
		p.servers[0].Server.SetError("")
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := clients[0].Shutdown(ctx); err != nil {
			t.Error(err)
		}
		p.OK(h.Err())
		p.OK(h.Context().Err())
		time.Sleep(time.Second)
		p.Release(h)
		p.OK(<-next)
		p.wantNothing()
	})
}

func TestShutdownWaitsForItsMemberOfARedLock(t *testing.T) {
	for i := range 3 {
		inRedTime(t, 3, func(p *poll) {
			clients, m := p.clients(redlatch.Config{})
			h := p.Acquire(bg, m)
			synctest.Wait() // for the third answer
			ctx, cancel := context.WithTimeout(bg, 5*time.Minute)
			defer cancel()
			down := locktest.Later(func() error { return clients[i].Shutdown(ctx) })
			time.Sleep(2 * time.Minute)
			if !locktest.NoneYet(down) {
				t.Error("Shutdown did not wait")
			}
			p.OK(h.Err())
			p.OK(h.Context().Err())
			p.Release(h)
			p.OK(<-down)
			p.wantNothing()
		})
	}
}

// Between two rounds nobody asks a client whether it is closed. Where servers are
// silent that is half the time.
func TestWhoRestsBetweenTwoRoundsHearsAtOnceThatAMajorityIsClosed(t *testing.T) {
	for n := 2; n <= 3; n++ {
		inRedTime(t, 3, func(p *poll) {
			var on atomic.Bool
			on.Store(true)
			cfg := redlatch.Config{WatchdogTimeout: 10 * time.Minute, OutageTimeout: time.Hour}
			clients, locks := make([]*redlatch.Client, 3), make([]*redlatch.Lock, 3)
			for i, w := range p.servers {
				clients[i] = w.Tapped(cfg, &locktest.Tap{Hook: blackHole(&on, 0)})
				locks[i] = clients[i].Lock("a")
			}
			done := locktest.Later(func() error { _, err := redlatch.RedLock(locks...).Acquire(bg); return err })
			time.Sleep(31 * time.Second) // a round takes 30 seconds, and a rest 30 at most
			start := time.Now()
			var closed []<-chan error
			for _, c := range clients[:n] {
				closed = append(closed, locktest.Later(c.Close))
			}
			p.WantErr(<-done, redlatch.ErrClosed)
			if d := time.Since(start); d > time.Second {
				t.Errorf("heard %v later", d)
			}
			on.Store(false)
			for _, err := range closed {
				p.OK(<-err)
			}
		})
	}
}

// A minority that is closed ends no rest: what is tried then is as hopeless as
// before.
func TestWhoRestsBetweenTwoRoundsRestsOnWithAClosedMinority(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		clients, m := p.clients(redlatch.Config{})
		rivals := locktest.Members(p.red("a"))
		busy := []*redlatch.Hold{p.Acquire(bg, rivals[1]), p.Acquire(bg, rivals[2])}
		done := locktest.Later(func() *redlatch.Hold { return p.Acquire(bg, m) })
		time.Sleep(time.Second)
		p.OK(clients[0].Close())
		time.Sleep(time.Second)
		if !locktest.NoneYet(done) {
			t.Fatal("it has given up")
		}
		p.Release(busy[0])
		p.Release(busy[1])
		p.Release(<-done)
		p.wantNothing()
	})
}

// Who waits behind others of his process waits at one client only.
func TestWhoWaitsForARedLockOfItsOwnProcessHearsAtOnceThatAMajorityIsClosed(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		clients, m := p.clients(redlatch.Config{})
		h := p.Acquire(bg, m)
		synctest.Wait()
		next := locktest.Later(func() error { _, err := m.Acquire(bg); return err })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		var down []<-chan error
		for _, c := range clients[1:] {
			down = append(down, locktest.Later(func() error { return c.Shutdown(ctx) }))
		}
		start := time.Now()
		p.WantErr(<-next, redlatch.ErrClosed)
		if d := time.Since(start); d > time.Second {
			t.Errorf("heard %v later", d)
		}
		p.Release(h)
		for _, err := range down {
			p.OK(<-err)
		}
	})
}

// A caller waits for one member at a time, and that one's client may be the only
// one that is not closed.
func TestWhoWaitsForAMemberHearsAtOnceThatAnothersClientIsClosed(t *testing.T) {
	for _, busy := range []string{"a", "b"} {
		t.Run(busy, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				m := redlatch.MultiLock(a.Lock("a"), b.Lock("b"))
				h := w.Acquire(bg, other.Lock(busy))
				done := locktest.Later(func() error { _, err := m.TryAcquire(bg, time.Minute); return err })
				time.Sleep(10 * time.Second)
				closed := b
				if busy == "b" {
					closed = a
				}
				start := time.Now()
				w.OK(closed.Close())
				w.WantErr(<-done, redlatch.ErrClosed)
				if d := time.Since(start); d > 100*time.Millisecond {
					t.Errorf("heard %v later", d)
				}
				w.Release(h)
				w.WantNothing()
			})
		})
	}
}

// At the end of its time Shutdown ends the context of a member, by whose end its
// loss was noticed before.
func TestALossDuringShutdownIsToldOfSeveralLocks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var ends []observe.HoldEndEvent
		a := w.Client(redlatch.Config{}, observe.Hooks{HoldEnd: func(_ context.Context, e observe.HoldEndEvent) { ends = append(ends, e) }})
		b := w.Client(redlatch.Config{CloseTimeout: time.Hour})
		h := w.Acquire(bg, redlatch.MultiLock(a.Lock("a"), b.Lock("b")))
		now, cancel := context.WithCancel(bg)
		cancel()
		down := locktest.Later(func() error { return b.Shutdown(now) })
		time.Sleep(time.Second)
		w.WantErr(context.Cause(h.Context()), redlatch.ErrClosed)
		w.Server.Del("b")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(ends) != 1 || ends[0].Reason != observe.EndLost || ends[0].Held > 30*time.Second {
			t.Errorf("told of a loss: %+v", ends)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.OK(<-down)
		synctest.Wait()
		if len(ends) != 1 {
			t.Errorf("told in the end: %+v", ends)
		}
		w.WantNothing()
	})
}
