package locks

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const allowance = 300_000 // what Redisson allows each waiter, in ms

// scores returns those of who waits, and who they are, the first one first.
func scores(w *locktest.World, name string) (map[string]float64, []string) {
	w.Helper()
	_, timeouts, _ := locktest.FairKeys(name)
	ids := w.Queue(name)
	live, err := w.Server.SortedSet(timeouts)
	if err != nil {
		w.Fatal(err)
	}
	w.Server.Lock()
	defer w.Server.Unlock()
	return maps.Clone(live), ids
}

// A hand-off changes one score, however many wait: that of the last one, which
// Redisson reads. The others keep theirs.
func TestAHandOffMovesOneScore(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const crowd = 20
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		var waits []<-chan locktest.Outcome
		for range crowd {
			waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
		}
		for i := range crowd - 1 {
			before, ids := scores(w, "orders")
			last := ids[len(ids)-1]
			w.Release(h)
			h = w.Got(waits[i])
			after, _ := scores(w, "orders")
			before[last] -= allowance
			delete(before, ids[0])
			if !maps.Equal(before, after) {
				t.Fatalf("%d: the scores are %v, want %v", i, after, before)
			}
		}
		w.Release(h)
		w.Release(w.Got(waits[crowd-1]))
		w.WantNothing()
	})
}

// Redisson's waiter finds the score that it would find if all had Redisson's
// scores, and from then on all have, until it has gone.
func TestAWaiterOfRedissonFindsTheScoresThatItExpects(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.FairLock("orders"))
		start := time.Now()
		var waits []<-chan locktest.Outcome
		for range 8 {
			waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
		}
		next := func() {
			w.Release(h)
			h, waits = w.Got(waits[0]), waits[1:]
		}
		wantChain := func(when string) {
			w.Helper()
			got, ids := scores(w, "orders")
			for i, id := range ids[1:] {
				if d := got[id] - got[ids[i]]; math.Abs(d-allowance) > 0.5 {
					t.Errorf("%s: the scores are %v, of %q", when, got, ids)
				}
			}
		}
		next()
		next()
		java, wait := javaBehind(w, "orders", 1)
		if want := 30*time.Second + 6*allowance*time.Millisecond; wait != want-time.Since(start).Truncate(time.Millisecond) {
			t.Errorf("Redisson would wait for %v, want %v", wait, want)
		}
		time.Sleep(3 * time.Second) // who waits asks again
		wantChain("after a poll")
		waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
		wantChain("when another one came")
		for range 6 {
			next()
			wantChain("after a hand-off")
		}
		w.Release(h)
		if !java.Take() {
			t.Fatal("out of order")
		}
		for range 3 {
			waits = append(waits, w.Waiting(bg, b.FairLock("orders")))
		}
		wantChain("behind Redisson")
		java.Unlock()
		h, waits = w.Got(waits[0]), waits[1:]
		got, ids := scores(w, "orders")
		if last := got[ids[2]]; last == math.Floor(last) || got[ids[1]] > float64(time.Now().UnixMilli()+allowance) {
			t.Errorf("Redisson has gone, and the scores are %v, of %q", got, ids)
		}
		for len(waits) > 0 {
			next()
		}
		w.Release(h)
		w.WantNothing()
	})
}

// The queue of one client with another library's in it: all orders of leaving
// keep the scores as Redisson would.
func TestScoresAreRedissonsWhoeverLeaves(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		_, timeouts, _ := locktest.FairKeys("orders")
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			h := w.Acquire(bg, a.FairLock("orders", redlatch.Lease(time.Hour)))
			base := float64(time.Now().Add(w.Server.TTL("orders")).UnixMilli())
			var waits []<-chan locktest.Outcome
			var cancels []context.CancelFunc
			for range 8 {
				ctx, cancel := context.WithCancel(bg)
				waits = append(waits, w.Waiting(ctx, a.FairLock("orders")))
				cancels = append(cancels, cancel)
			}
			for len(waits) > 0 {
				i := r.IntN(len(waits))
				cancels[i]()
				<-waits[i]
				synctest.Wait()
				waits, cancels = slices.Delete(waits, i, i+1), slices.Delete(cancels, i, i+1)
				for n, id := range w.Queue("orders") {
					if score, _ := w.Server.ZScore(timeouts, id); score != base+float64(n+1)*allowance {
						t.Fatalf("seed %d: number %d of %d has the score %.0f, want %.0f", seed, n, len(waits), score, base+float64(n+1)*allowance)
					}
				}
			}
			w.Release(h)
			w.WantNothing()
		}
	})
}

func TestThousandsOfWaitersMoveUp(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, c.FairLock("orders"))
		queue, timeouts, _ := locktest.FairKeys("orders")
		scores, err := w.Server.SortedSet(timeouts)
		if err != nil {
			t.Fatal(err)
		}
		last := slices.Max(slices.Collect(maps.Values(scores)))
		const n = 5000
		want := map[string]float64{}
		for i := range n {
			id := fmt.Sprintf("2d1b7d0a-52c8-4c1f-9b5e-000000000000:%d", i)
			want[id] = last + float64(i)*allowance
			if _, err := w.Server.Push(queue, id); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Server.ZAdd(timeouts, want[id]+allowance, id); err != nil {
				t.Fatal(err)
			}
		}
		w.Release(h)
		w.Release(w.Got(next))
		if scores, err = w.Server.SortedSet(timeouts); err != nil || !maps.Equal(scores, want) {
			t.Errorf("%d scores, %v; not those of before less the allowance of one", len(scores), err)
		}
	})
}

// Owner fields of ours are told from Redisson's by their shape.
func TestOnlyFieldsOfOursAreJudgedBySilence(t *testing.T) {
	for owner, ours := range map[string]bool{
		wire.Owner(wire.NewClientID(), 3):        true,
		"0f8fad5b-d9cb-469f-a165-70867728950e:3": false, // version 4
		"0f8fad5b-d9cb-869f-a165-7086772895:3":   false, // too short
		"8-8-8-8-8:3":                            false,
		"worker-8a:3":                            false,
	} {
		t.Run(owner, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				queue, timeouts, _ := locktest.FairKeys("orders")
				_, _ = w.Server.Push(queue, owner)
				_, _ = w.Server.ZAdd(timeouts, float64(time.Now().Add(time.Minute).UnixMilli()), owner)
				h, err := c.FairLock("orders").TryAcquire(bg, 0)
				if taken := err == nil; taken != ours {
					t.Errorf("swept: %v, want %v (%v)", taken, ours, err)
				}
				if h != nil {
					w.Release(h)
				}
			})
		})
	}
}
