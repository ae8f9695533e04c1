package multilock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// clients returns a client of each server, and the red lock that they have. The callers of the process wait for one
// another at the first one.
func (p *poll) clients(cfg redlatch.Config) ([]*redlatch.Client, *redlatch.Multi) {
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

// The callers of one process wait for one another at one of its clients. That client may have no member of the
// hold that they wait for.
func TestShutdownDoesNotWaitForARedLockOfOtherClients(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		clients, m := p.clients(redlatch.Config{})
		p.servers[0].Server.SetError("LOADING down")
		h := p.AcquireMulti(bg, m)
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
		p.ReleaseMulti(h)
		p.OK(<-next)
		p.wantNothing()
	})
}

func TestShutdownWaitsForItsMemberOfARedLock(t *testing.T) {
	for i := range 3 {
		inRedTime(t, 3, func(p *poll) {
			clients, m := p.clients(redlatch.Config{})
			h := p.AcquireMulti(bg, m)
			synctest.Wait() // for the third answer
			ctx, cancel := context.WithTimeout(bg, 5*time.Minute)
			defer cancel()
			down := locktest.Later(func() error { return clients[i].Shutdown(ctx) })
			time.Sleep(2 * time.Minute)
			if !locktest.NoneYet(down) {
				t.Error("Shutdown did not wait")
			}
			p.OK(h.Err())
			p.WantErr(context.Cause(h.Context()), redlatch.ErrClosed)
			p.ReleaseMulti(h)
			p.OK(<-down)
			p.wantNothing()
		})
	}
}
