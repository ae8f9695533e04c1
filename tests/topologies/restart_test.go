package topologies

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/semaphore"
)

// A server that has lost everything has given every lock away. The holders are
// told because the connection broke: no clock would tell them for minutes.
func restartWithoutData(s *scene) {
	s.each(func(h *household) { h.forgets.Store(true) })
	s.server.Restart()
	s.each(func(h *household) {
		h.wantLost(soon, redlatch.LostGone)
		h.wantForgotten()
	})
}

// wantForgotten checks what those learn who wait for something of which the server
// knows nothing any more: a semaphore that nobody can set up is an error, and no
// longer waited for. One whose number the waiter knows has its permits again.
func (h *household) wantForgotten() {
	h.Helper()
	h.wantError("permit", soon, redlatch.ErrUninitialized)
	h.wantError("rate", soon, redlatch.ErrUninitialized)
	h.wantError("barrier", soon, barrier.ErrBroken)
	h.wantError("semaphore", soon, redlatch.ErrUninitialized)
	h.wantServed(soon)
	s := semaphore.New(h.b, h.of("semaphore"), 0)
	if err := s.TryAcquire(h.ctx, 1, 0); !errors.Is(err, redlatch.ErrUninitialized) {
		h.Errorf("%s: TryAcquire of a semaphore that is lost: %v, want ErrUninitialized", h.name, err)
	}
	made, err := s.TrySetPermits(h.ctx, 1)
	h.must("TrySetPermits", err)
	if !made {
		h.Errorf("%s: a semaphore that is lost could not be set up", h.name)
	}
	h.must("Acquire", s.Acquire(h.ctx, 1))
}

func restartWithData(s *scene) {
	s.server.Restart()
	s.each(func(h *household) {
		h.awaitListeners()
		h.goesOn()
	})
}

// What was taken since is lost; what was released since comes back.
func restartWithOlderData(s *scene) {
	type since struct{ released, taken, given *redlatch.Hold }
	var all []since
	acquire := func(c *redlatch.Client, name string) *redlatch.Hold {
		hold, err := c.Lock(name).Acquire(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		return hold
	}
	s.each(func(h *household) { all = append(all, since{released: acquire(h.a, h.of("released"))}) })
	s.server.MustDo("SAVE")
	for i, h := range s.households {
		x := &all[i]
		if err := x.released.Release(h.ctx); err != nil {
			s.Fatal(err)
		}
		x.taken, x.given = acquire(h.a, h.of("taken")), acquire(h.b, h.of("released"))
	}
	s.server.Restart()
	for i, h := range s.households {
		for _, hold := range []*redlatch.Hold{all[i].taken, all[i].given} {
			select {
			case <-hold.Context().Done():
			case <-time.After(soon):
				s.Fatalf("%s: the holder of %s is not told", h.name, hold.Name())
			}
			var lost *redlatch.LostError
			if err := hold.Err(); !errors.As(err, &lost) || lost.Reason != redlatch.LostGone {
				s.Errorf("%s: %v", h.name, err)
			}
		}
		// The hold that has come back is nobody's: its client sees that when it asks.
		_, err := h.b.Lock(h.of("released")).TryAcquire(h.ctx, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != all[i].released.ID() {
			s.Errorf("%s: Try: %v, want that the lock of before is back", h.name, err)
		}
		_, err = h.a.Lock(h.of("released")).TryAcquire(h.ctx, 0)
		if !errors.Is(err, redlatch.ErrBusy) {
			s.Errorf("%s: Try: %v", h.name, err)
		}
		h.eventually("what came back is released", func() bool { return h.server.MustDo("EXISTS", h.of("released")) == int64(0) })
		h.awaitListeners()
		h.goesOn()
	}
}

// slowToLoad makes a server take ten seconds to read its file, unless it is told
// not to. It looks at connections for every 2 MB.
var slowToLoad = []string{"--key-load-delay", "50000", "--rdbcompression", "no"}

const filler = `for i = 1, 200 do redis.call('SET', 'filler' .. i, string.rep('x', 2 ^ 19)) end`

func whileLoading(s *scene) {
	s.server.MustDo("EVAL", filler, "0")
	s.server.MustDo("SAVE")
	s.server.Kill()
	restarted := make(chan struct{})
	go func() { defer close(restarted); s.server.Restart() }()
	eventually(s.T, "the server loads", func() bool {
		info, err := s.server.Do("INFO", "persistence")
		return err == nil && strings.Contains(fmt.Sprint(info), "loading:1")
	})
	var awaits []func()
	s.each(func(h *household) { awaits = append(awaits, h.calls()) })
	s.each(func(h *household) { h.refused("LOADING") })
	select {
	case <-restarted:
		s.Error("the server has loaded too quickly to be of use")
	default:
	}
	s.each((*household).wantHeld)
	s.each(func(h *household) { h.wantWaiting() })
	_, _ = s.server.Do("CONFIG", "SET", "key-load-delay", "0") // Redis 6.2 refuses it now, and goes on loading
	<-restarted
	for _, await := range awaits {
		await()
	}
	s.each(func(h *household) {
		h.awaitListeners()
		h.goesOn()
	})
}
