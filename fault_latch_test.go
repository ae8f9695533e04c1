package redlatch_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
)

// What the embedded server says of these scripts a real one says too.
func TestLatchesAndBarriersOnARealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real server")
	}
	t.Parallel()
	server := testserver.Start(t, testserver.Redis)
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			var clients [2]*redlatch.Client
			for i := range clients {
				c, err := redlatch.New(a.connect(t, server.Addr()), redlatch.Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				clients[i] = c
			}
			aLatchReleasesAThousand(t, clients)
			aBarrierGoesRoundAndRound(t, clients)
		})
	}
}

func aLatchReleasesAThousand(t *testing.T, clients [2]*redlatch.Client) {
	t.Helper()
	l, other := clients[0].CountDownLatch("orders"), clients[1].CountDownLatch("orders")
	if set, err := l.TrySetCount(bg, 2); !set || err != nil {
		t.Fatal(set, err)
	}
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if err := l.Wait(bg, redlatch.Wait(generous)); err != nil {
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
	start := time.Now()
	if err := other.CountDown(bg); err != nil {
		t.Error(err)
	}
	wg.Wait()
	t.Logf("a thousand were released within %v", time.Since(start))
	if set, err := other.TrySetCount(bg, 1); !set || err != nil {
		t.Error("not to be set again:", set, err)
	}
	if was, err := l.Delete(bg); !was || err != nil {
		t.Error(was, err)
	}
}

func aBarrierGoesRoundAndRound(t *testing.T, clients [2]*redlatch.Client) {
	t.Helper()
	const parties, rounds = 4, 50
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last [rounds]int
	for i := range parties {
		b := clients[i%2].Barrier("orders", parties)
		wg.Go(func() {
			for round := range rounds {
				index, err := b.Await(bg, redlatch.Wait(generous))
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
	t.Logf("%d rounds of %d took %v", rounds, parties, time.Since(start))
	for round, n := range last {
		if n != 1 {
			t.Errorf("round %d had %d last ones", round, n)
		}
	}
	// One leaves, one is late.
	x := arrivingFor(clients[0].Barrier("orders", 2), generous)
	y := arrivingFor(clients[1].Barrier("orders", 3), generous)
	if a := <-x; a.err == nil {
		t.Error("two parties instead of four")
	}
	if a := <-y; a.err == nil {
		t.Error("three parties instead of four")
	}
	x = arrivingFor(clients[0].Barrier("orders", parties), generous)
	y = arrivingFor(clients[1].Barrier("orders", parties), 200*time.Millisecond)
	if a := <-y; a.err == nil {
		t.Error("two of four have gone")
	}
	if err := clients[1].Barrier("orders", parties).Reset(bg); err != nil { // should x have come later
		t.Error(err)
	}
	a := <-x
	if a.err == nil {
		t.Error("one of four has gone")
	}
}

func arrivingFor(b *redlatch.Barrier, d time.Duration) <-chan arrived {
	return later(func() arrived {
		i, err := b.Await(bg, redlatch.Wait(d))
		return arrived{i, err, time.Now()}
	})
}
