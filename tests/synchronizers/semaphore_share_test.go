package synchronizers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// countingTap returns a tap that counts scripts of a name.
func countingTap(name string, n *atomic.Int64) *locktest.Tap {
	return &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if s == name {
			n.Add(1)
		}
		return next()
	}}
}

func TestReleasedPermitsPassOnWithoutARoundTrip(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Semaphore(c, 3)
		w.OK(s.Acquire(bg, 3))
		first, second := locktest.AcquiringPermits(bg, s, 2), locktest.AcquiringPermits(bg, s, 1)
		w.Server.SetError("LOADING a hand-off does not ask")
		w.OK(s.Release(bg, 3))
		w.OK(<-first)
		w.OK(<-second)
		w.Server.SetError("")
		w.OK(s.Release(bg, 3))
		wantSemaphore(w, "in the end", "3")
	})
}

func TestWithoutHandOffEachReleaseGoesToRedis(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{NoHandOff: true}), 1)
		w.OK(s.Acquire(bg, 1))
		said := scMessages(w)
		got := locktest.AcquiringPermits(bg, s, 1)
		w.OK(s.Release(bg, 1))
		w.OK(<-got)
		if len(said()) == 0 {
			t.Error("nobody was told")
		}
	})
}

// Who gives up in the moment in which he is served has been told so, and the next
// caller, who waits in the same place, must not hear of it.
func TestWhoGivesUpAsHeIsServedLeavesNoWordBehind(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{}), 1)
		w.OK(s.Acquire(bg, 1))
		gaveUp := 0
		for range 200 {
			ctx, cancel := context.WithCancel(bg)
			ended := make(chan error, 1)
			go func() { ended <- s.Acquire(ctx, 1) }()
			synctest.Wait()
			cancel()
			w.OK(s.Release(bg, 1))
			if err := <-ended; err != nil {
				gaveUp++
				w.OK(s.Acquire(bg, 1))
			}
			if s.TryAcquire(bg, 1, 0) == nil {
				t.Fatal("two have the one permit")
			}
		}
		if gaveUp == 0 {
			t.Error("nobody gave up")
		}
		w.OK(s.Release(bg, 1))
		wantSemaphore(w, "in the end", "1")
	})
}

// However many wait in one process, Redis sees one subscription, and a release
// that reaches it costs a few requests.
func TestTenThousandWaitersCostOneSubscription(t *testing.T) {
	const waiters = 10_000
	locktest.InFakeTime(t, func(w *locktest.World) {
		var scripts atomic.Int64
		d := countingTap("semaphore.exchange", &scripts)
		c := w.Tapped(redlatch.Config{}, d)
		s := w.Semaphore(c, 0)
		idle := d.Subs.Load()
		other := semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 0)
		var got atomic.Int64
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if err := s.Acquire(bg, 1); err != nil {
					t.Error(err)
					return
				}
				got.Add(1)
			})
		}
		synctest.Wait()
		if n := d.Subs.Load() - idle; n != 1 {
			t.Errorf("%d subscriptions", n)
		}
		if n := scripts.Load(); n > 10 {
			t.Errorf("%d requests for nothing", n)
		}
		for _, step := range []struct {
			release, most int64
		}{{1, 2}, {64, 3}, {1000, 20}} {
			before, had := scripts.Load(), got.Load()
			w.OK(other.Release(bg, int(step.release)))
			synctest.Wait()
			if n := got.Load() - had; n != step.release {
				t.Fatalf("%d released, %d acquired", step.release, n)
			}
			if n := scripts.Load() - before; n > step.most {
				t.Errorf("a release of %d permits took %d requests, want %d", step.release, n, step.most)
			}
		}
		// Who has something passes it on: next to no requests, for all of them.
		before := scripts.Load()
		for range waiters - 1065 {
			w.OK(s.Release(bg, 1))
		}
		wg.Wait()
		if n := scripts.Load() - before; n > 10 {
			t.Errorf("passing on took %d requests", n)
		}
		for range 1065 {
			w.OK(s.Release(bg, 1))
		}
		wantSemaphore(w, "in the end", "1065")
		synctest.Wait()
		if n := d.Subs.Load() - idle; n != 0 {
			t.Errorf("%d subscriptions in the end", n)
		}
	})
}

// A crew is goroutines of one process that want permits all the time.
type crew struct {
	got   int
	worst time.Duration // the longest wait
}

// crews let processes of so many goroutines work for d, the last of them so far
// from the server.
func crews(w *locktest.World, permits int, section, d, far time.Duration, sizes ...int) []crew {
	w.Helper()
	all := make([]crew, len(sizes))
	ctx, cancel := context.WithTimeout(bg, d)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, size := range sizes {
		rtt := locktest.Near
		if i == len(sizes)-1 {
			rtt = far
		}
		c := w.ClientOver(rtt, redlatch.Config{})
		s := semaphore.New(c, locktest.SemaphoreName, 0)
		if i == 0 {
			w.Semaphore(c, permits)
		}
		for range size {
			wg.Go(func() {
				for {
					start := time.Now()
					if err := s.Acquire(ctx, 1); err != nil {
						return
					}
					mu.Lock()
					all[i].got++
					all[i].worst = max(all[i].worst, time.Since(start))
					mu.Unlock()
					time.Sleep(section)
					if err := s.Release(bg, 1); err != nil {
						w.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	time.Sleep(100 * time.Millisecond)
	wantSemaphore(w, "in the end", fmt.Sprint(permits))
	return all
}

// Of several processes that want permits all the time each gets its share.
func TestProcessesShareASemaphore(t *testing.T) {
	for _, x := range []struct {
		permits    int
		section, d time.Duration
	}{{1, time.Millisecond, 300 * time.Millisecond}, {8, time.Millisecond, 150 * time.Millisecond}, {8, 20 * time.Millisecond, 2 * time.Second}} {
		t.Run(fmt.Sprintf("%d permits/section=%v", x.permits, x.section), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				all := crews(w, x.permits, x.section, x.d, locktest.Near, 12, 12)
				sum := all[0].got + all[1].got
				t.Logf("%+v, %.0f%% of what is possible", all, 100*float64(sum)*float64(x.section)/float64(x.permits)/float64(x.d))
				for _, a := range all {
					if a.got < sum*3/10 {
						t.Errorf("a process got %d of %d", a.got, sum)
					}
				}
				if most := int(x.d/x.section) * x.permits; sum < most/2 {
					t.Errorf("%d acquisitions of %d that are possible", sum, most)
				}
			})
		})
	}
}

// One waiter is not kept out by a process that has many.
func TestACrowdElsewhereKeepsNobodyOut(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		all := crews(w, 4, time.Millisecond, 150*time.Millisecond, locktest.Near, 64, 1)
		t.Logf("%+v", all)
		if all[1].worst > 50*time.Millisecond {
			t.Errorf("it waited %v", all[1].worst)
		}
	})
}

// Nor because its way to the server is longer: who yields lets others take their
// turn first.
func TestACrowdNearbyKeepsNobodyOut(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		all := crews(w, 1, time.Millisecond, 300*time.Millisecond, 3*time.Millisecond, 16, 1)
		t.Logf("%+v", all)
		if all[1].worst > 40*time.Millisecond || all[1].got < 10 {
			t.Errorf("it got %d, and waited %v", all[1].got, all[1].worst)
		}
	})
}

// A workforce is n goroutines of a process that pass its permits on to one
// another.
func workforce(w *locktest.World, s *semaphore.Semaphore, n int) (busy *atomic.Int64, stop func()) {
	busy = new(atomic.Int64)
	var over atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !over.Load() {
				w.OK(s.Acquire(bg, 1))
				busy.Add(1)
				time.Sleep(10 * time.Millisecond)
				busy.Add(-1)
				w.OK(s.Release(bg, 1))
			}
		})
	}
	time.Sleep(time.Second + time.Millisecond)
	return busy, func() {
		over.Store(true)
		wg.Wait()
	}
}

// Nor does one that keeps for long what a crowd has left it: the crowd goes on
// with what it has, and owes others their turn as before.
func TestAProcessThatKeepsItsPermitsKeepsNobodyElseOut(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{}), 4)
		_, stop := workforce(w, s, 12)
		for i := range 3 { // each keeps what it gets
			ctx, cancel := context.WithTimeout(bg, 2*time.Second)
			other := semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 0)
			if err := other.Acquire(ctx, 1); err != nil {
				t.Errorf("process %d: %v", i+2, err)
			}
			cancel()
			time.Sleep(100 * time.Millisecond)
		}
		stop()
	})
}

// A lower number of permits holds for those, too, that a process has and passes
// on, also while somebody else waits for whom nothing is left.
func TestFewerPermitsAreFewerAlsoWhereTheyArePassedOn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Semaphore(w.Client(redlatch.Config{}), 4)
		here, stop := workforce(w, s, 8)
		there, stopOther := workforce(w, semaphore.New(w.Client(redlatch.Config{}), locktest.SemaphoreName, 0), 1)
		w.OK(s.AddPermits(bg, -3))
		time.Sleep(2 * time.Second)
		for range 100 {
			time.Sleep(5*time.Millisecond + time.Microsecond)
			if n, m := here.Load(), there.Load(); n+m > 1 {
				t.Errorf("%d goroutines have a permit, where there is one", n+m)
				break
			}
		}
		w.OK(s.AddPermits(bg, 3))
		stopOther()
		stop()
	})
}
