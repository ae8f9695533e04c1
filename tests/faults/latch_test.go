package faults

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestLatchAndBarrier(t *testing.T) {
	together(t,
		telling{"a latch releases a thousand", (*story).latchReleasesAThousand},
		telling{"a barrier goes round and round", (*story).barrierGoesRoundAndRound})
}

// What the embedded server says of the scripts of latches and barriers a real one
// says too.

func (s *story) latchReleasesAThousand() {
	t := s.T
	l, other := latch.New(s.c, s.lock), latch.New(s.client(s.direct, redlatch.Config{}), s.lock)
	if set, err := l.TrySetCount(bg, 2); !set || err != nil {
		t.Fatal(set, err)
	}
	soon, cancel := context.WithTimeout(bg, locktest.Generous)
	defer cancel()
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if err := l.Wait(soon); err != nil {
				t.Error(err)
			}
		})
	}
	if err := other.CountDown(bg); err != nil {
		t.Error(err)
	}
	if n, err := other.Count(bg); n != 1 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
	time.Sleep(50 * time.Millisecond) // they wait by then; if not they return all the same
	if err := other.CountDown(bg); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if set, err := other.TrySetCount(bg, 1); !set || err != nil {
		t.Error("not to be set again:", set, err)
	}
	if was, err := l.Delete(bg); !was || err != nil {
		t.Error(was, err)
	}
	s.forget()
}

func (s *story) barrierGoesRoundAndRound() {
	t := s.T
	const parties, rounds = 4, 50
	clients := [2]*redlatch.Client{s.c, s.client(s.direct, redlatch.Config{})}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last [rounds]int
	for i := range parties {
		b := barrier.New(clients[i%2], s.lock, parties)
		wg.Go(func() {
			for round := range rounds {
				soon, cancel := context.WithTimeout(bg, locktest.Generous)
				index, err := b.Await(soon)
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				if index == 0 {
					mu.Lock()
					last[round]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for round, n := range last {
		if n != 1 {
			t.Errorf("round %d had %d last ones", round, n)
		}
	}
	// One leaves, one is late.
	x := arrivingFor(barrier.New(clients[0], s.lock, 2), locktest.Generous)
	y := arrivingFor(barrier.New(clients[1], s.lock, 3), locktest.Generous)
	if err := <-x; err == nil {
		t.Error("two parties instead of four")
	}
	if err := <-y; err == nil {
		t.Error("three parties instead of four")
	}
	x = arrivingFor(barrier.New(clients[0], s.lock, parties), locktest.Generous)
	y = arrivingFor(barrier.New(clients[1], s.lock, parties), 200*time.Millisecond)
	if err := <-y; err == nil {
		t.Error("two of four have gone")
	}
	// The other one comes whenever the machine lets it, perhaps behind a reset: then
	// it needs another.
	if !locktest.Within(locktest.Generous, func() bool {
		if err := barrier.New(clients[1], s.lock, parties).Reset(bg); err != nil {
			t.Error(err)
		}
		select {
		case err := <-x:
			if !errors.Is(err, barrier.ErrBroken) {
				t.Errorf("of one of four: %v, want %v", err, barrier.ErrBroken)
			}
			return true
		default:
			return false
		}
	}) {
		t.Error("one of four waits, however often the barrier is reset")
	}
	s.forget()
}

// forget deletes what latches and barriers leave to its TTL. Callers that have
// left a barrier say so in the background, and write in the place of those that
// are not there any more: Close waits for them.
func (s *story) forget() {
	s.T.Helper()
	for _, c := range s.clients {
		if err := c.Close(); err != nil {
			s.T.Error(err)
		}
	}
	if keys := s.list("KEYS", "*"+s.lock+"*"); len(keys) > 0 {
		s.server.MustDo(append([]string{"DEL"}, keys...)...)
	}
}

func arrivingFor(b *barrier.Barrier, d time.Duration) <-chan error {
	return locktest.Later(func() error {
		ctx, cancel := context.WithTimeout(bg, d)
		defer cancel()
		_, err := b.Await(ctx)
		return err
	})
}
