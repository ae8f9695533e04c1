package redlatch_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// Redisson's read unlock cuts the lock's TTL down to that of the longest read
// hold, also below the lease of a writer who reads.
func TestTheEndOfAReadInsideAWriteLeavesTheWriterItsTTL(t *testing.T) {
	for _, how := range []string{"released", "expired"} {
		inFakeTime(t, func(w *world) {
			rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
			wr := w.acquire(rw.Write(), bg, redlatch.Lease(time.Hour))
			rd := w.acquire(rw.Read(), wr.Context(), redlatch.Lease(time.Second))
			if how == "released" {
				w.release(rd)
			}
			time.Sleep(2 * time.Second)
			w.wantFields(how, "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1"})
			if ttl := w.server.TTL("orders"); time.Now().Add(ttl).Before(wr.Expires()) || wr.Err() != nil {
				t.Errorf("%s: Redis keeps the lock for %v, the writer trusts it for %v (%v)", how, ttl, time.Until(wr.Expires()), wr.Err())
			}
			w.release(wr)
			w.wantNoKeys()
		})
	}
}

// Redisson waits without limit for a lock without a TTL. Nobody says so when it
// goes.
func TestALockWithoutATTLIsPolled(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{})
				w.server.HSet("orders", java, "1")
				if name == "read" || name == "write" {
					w.server.HSet("orders", "mode", "write")
				}
				got := later(func() *redlatch.Hold { return w.acquire(of(c, "orders"), bg) })
				time.Sleep(time.Minute)
				if !none(got) {
					t.Fatal("two holders")
				}
				w.server.Del("orders")
				start := time.Now()
				w.release(<-got)
				if took := time.Since(start); took > 2500*time.Millisecond {
					t.Errorf("found out after %v", took)
				}
				synctest.Wait()
				w.wantNoKeys()
			})
		})
	}
}

// A key of another type blocks Redisson's callers for good, or its scripts fail
// in the middle.
func TestAKeyThatIsNoLockIsRefusedAtOnceAndLeftAlone(t *testing.T) {
	queue, timeouts, alive := fairKeys("orders")
	for name, of := range typesOfLock {
		keys := []string{"orders"}
		if name == "fair" {
			keys = append(keys, queue, timeouts, alive)
		}
		for _, key := range keys {
			t.Run(name+" "+key, func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					c := w.client(redlatch.Config{})
					if err := w.server.Set(key, "text"); err != nil {
						t.Fatal(err)
					}
					if key != "orders" && key != queue { // or nobody looks at it
						w.server.HSet("orders", java, "1")
						w.java("orders", 1, time.Hour)
					}
					start := time.Now()
					_, err := of(c, "orders").Acquire(bg)
					var re *redlatch.RunError
					if !errors.As(err, &re) || re.Code != "WRONGTYPE" || time.Since(start) > 0 {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
					time.Sleep(time.Minute)
					if text, _ := w.server.Get(key); text != "text" {
						t.Errorf("the key has %q", text)
					}
				})
			})
		}
	}
}

// Redisson's delete() of a fair lock drops the queue and wakes nobody.
func TestTheWaitersOfADeletedFairLockLineUpAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b := w.client(redlatch.Config{}), w.mortal()
		h := w.acquire(a.FairLock("orders"), bg)
		var waits []<-chan outcome
		for range 3 {
			waits = append(waits, w.waiting(b.FairLock("orders"), bg))
		}
		queue, timeouts, _ := fairKeys("orders")
		for _, key := range []string{"orders", queue, timeouts} {
			w.server.Del(key)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for _, c := range waits {
			wg.Go(func() { w.release(w.got(c)) })
		}
		wg.Wait()
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.wantErr(h.Release(bg), redlatch.ErrLost)
		w.wantNothing()
	})
}

// The first attempt of a take comes late, when the hold has been extended.
func TestALateTakeDoesNotCutWhatAnExtensionHasGiven(t *testing.T) {
	for name, of := range typesOfLock {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				var take string
				var taken []string
				d := &tap{}
				d.hook = func(s string, args []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
					if strings.HasSuffix(s, ".take") {
						take, taken = s, slices.Clone(args)
					}
					return next()
				}
				h := w.acquire(of(w.tapped(redlatch.Config{}, d), "orders"), bg, redlatch.Lease(5*time.Second))
				if err := h.Extend(bg, time.Hour); err != nil {
					t.Fatal(err)
				}
				d.again(take, taken)()
				for _, key := range w.server.Keys() {
					if ttl := w.server.TTL(key); time.Now().Add(ttl).Before(h.Expires()) {
						t.Errorf("%s lasts for %v, the hold is trusted for %v", key, ttl, time.Until(h.Expires()))
					}
				}
				w.release(h)
				w.wantNoKeys()
			})
		})
	}
}
