package locks

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
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

// A hand-off changes one score, however many wait: that of the last one, which Redisson
// reads. The others keep theirs.
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

// Redisson's waiter finds the score that it would find if all had Redisson's scores, and
// from then on all have, until it has gone.
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
