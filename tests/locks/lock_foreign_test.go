package locks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A key of another type blocks Redisson's callers for good, or its scripts fail
// in the middle.
func TestAKeyThatIsNoLockIsRefusedAtOnceAndLeftAlone(t *testing.T) {
	queue, timeouts, alive := locktest.FairKeys("orders")
	for name, of := range locktest.TypesOfLock {
		keys := []string{"orders"}
		if name == "fair" {
			keys = append(keys, queue, timeouts, alive)
		}
		for _, key := range keys {
			t.Run(name+" "+key, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Client(redlatch.Config{})
					if err := w.Server.Set(key, "text"); err != nil {
						t.Fatal(err)
					}
					if key != "orders" && key != queue { // or nobody looks at it
						w.Server.HSet("orders", locktest.JavaOwner, "1")
						w.JavaWaiter("orders", 1, time.Hour)
					}
					start := time.Now()
					_, err := of(c, "orders").Acquire(bg)
					var re *driver.RunError
					if !errors.As(err, &re) || re.Code != "WRONGTYPE" || time.Since(start) > 0 {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
					if text := err.Error(); !strings.Contains(text, "WRONGTYPE: ") || !strings.Contains(text, fmt.Sprintf("%q is a string", key)) || strings.Contains(text, "f_") || strings.Contains(text, "user_script") {
						t.Errorf("it says: %s", text)
					}
					time.Sleep(time.Minute)
					if text, _ := w.Server.Get(key); text != "text" {
						t.Errorf("the key has %q", text)
					}
				})
			})
		}
	}
}

// A hash of numbers looked like a lock with many owners, and a force release
// deleted it.
func TestAHashOfNumbersIsNotReleasedByForce(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				cart := map[string]string{"apples": "3", "pears": "4"}
				for fruit, n := range cart {
					w.Server.HSet("cart", fruit, n)
				}
				l := of(w.Client(redlatch.Config{}), "cart")
				_, err := admin.ForceRelease(bg, l)
				_, asked := admin.LockInfo(bg, l)
				for _, err := range []error{err, asked} {
					if driver.Failure(err).Code != "WRONGTYPE" {
						t.Error(err)
					}
				}
				w.WantFields("after that", "cart", cart)
			})
		})
	}
}

// Another program writes into the hash of a lock that is held: it is not deleted
// with the lock, and the release has released.
func TestAFieldOfAnotherProgramOutlivesTheLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		w.Server.HSet("orders", "visits", "7")
		w.Release(h)
		if fields, _ := w.Server.HKeys("orders"); len(fields) != 1 || fields[0] != "visits" {
			t.Errorf("the hash has %q", fields)
		}
		w.Server.Del("orders")
		w.WantNothing()
	})
}

// For Redisson's scripts no answer means that the lock is the caller's.
func TestAnAnswerThatSaysNothingIsNoLock(t *testing.T) {
	for name, of := range locktest.TypesOfLock {
		for _, answer := range []driver.Reply{{}, {Kind: driver.ReplyString, Str: "OK"}, {Kind: driver.ReplyList}} {
			t.Run(fmt.Sprint(name, " ", answer.Kind), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if strings.HasSuffix(s, ".take") {
							return answer, nil
						}
						return next()
					}})
					if h, err := of(c, "orders").Acquire(bg); err == nil || h != nil || errors.Is(err, redlatch.ErrBusy) {
						t.Errorf("%v, %v", h, err)
					}
					if h, err := of(c, "orders").TryAcquire(bg, 0); err == nil || h != nil {
						t.Errorf("Try: %v, %v", h, err)
					}
				})
			})
		}
	}
}
