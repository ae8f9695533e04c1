package locks

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redisson #4818, #3484, #5623: the lease of one acquisition was the next one's.
func TestALeaseDoesNotLeakIntoTheNextAcquisition(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.Lock("orders")
		for i, tt := range []struct {
			opts []redlatch.PlainOption
			ttl  time.Duration
		}{
			{[]redlatch.PlainOption{redlatch.Lease(5 * time.Second)}, 5 * time.Second},
			{nil, 30 * time.Second},
			{[]redlatch.PlainOption{redlatch.Lease(time.Hour)}, time.Hour},
			{nil, 30 * time.Second},
		} {
			h := w.Acquire(bg, locktest.With(l, tt.opts...))
			if ttl := w.Server.TTL("orders"); ttl != tt.ttl {
				t.Errorf("acquisition %d: TTL %v, want %v", i, ttl, tt.ttl)
			}
			w.Release(h)
		}
	})
}

func TestALeaseThatOverflowsIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			n.Add(1)
			time.Sleep(time.Millisecond)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		ctx, cancel := context.WithCancel(bg)
		done := locktest.Later(func() error {
			h, err := c.Lock("orders", redlatch.Lease(math.MaxInt64)).Acquire(ctx)
			if err == nil {
				w.Release(h)
			}
			return err
		})
		time.Sleep(100 * time.Millisecond)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "too long") || n.Load() > 0 {
				t.Errorf("%v, after %d requests", err, n.Load())
			}
		default:
			t.Errorf("Acquire spins: %d requests so far", n.Load())
		}
		cancel()
		synctest.Wait()
	})
}

func TestALeaseShorterThanARoundTripDoesNotSpin(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var n atomic.Int64
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.take" {
				n.Add(1)
			}
			r, err := next()
			time.Sleep(12 * time.Millisecond)
			return r, err
		}}
		c := w.Tapped(redlatch.Config{}, d)
		done := locktest.Later(func() error { _, err := c.Lock("orders", redlatch.Lease(20*time.Millisecond)).Acquire(bg); return err })
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			if !errors.Is(err, redlatch.ErrUnavailable) || n.Load() > 50 {
				t.Errorf("%v, after %d takes", err, n.Load())
			}
		default:
			t.Errorf("Acquire has sent %d takes in a minute", n.Load())
		}
	})
}

func TestALeaseIsNotRenewed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(10*time.Second)))
		if left, want := time.Until(h.Expires()), 10*time.Second-210*time.Millisecond; left > want || left < want-10*time.Millisecond {
			t.Fatalf("trusted for %v, want %v", left, want)
		}
		<-h.Context().Done()
		if left := w.Server.TTL("orders"); left <= 0 || left > 215*time.Millisecond {
			t.Fatalf("the holder was told with %v left in Redis, want the margin of 210ms", left)
		}
		w.WantErr(context.Cause(h.Context()), redlatch.ErrLost)
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
	})
}

// Redisson takes a lease of Integer.MAX_VALUE hours, which is more than Go's
// durations can be.
func TestALeaseOfAQuarterOfAMillionYearsIsWaitedForAsAnyOther(t *testing.T) {
	const hours = math.MaxInt32
	for name, of := range locktest.TypesOfLock {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				takes := 0
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if strings.HasSuffix(s, ".take") && len(r.List) > 1 {
						takes++
						r.List[0].Int = hours * time.Hour.Milliseconds()
					}
					return r, err
				}})
				w.Foreigner("orders", locktest.JavaOwner).Read(time.Hour)
				l := of(c, "orders")
				if name == "read" {
					w.Server.HSet("orders", "mode", "write")
				}
				_, err := l.TryAcquire(bg, 0)
				var busy *redlatch.BusyError
				if !errors.As(err, &busy) || busy.TTL < 100*365*24*time.Hour {
					t.Errorf("%v", err)
				}
				_, err = l.TryAcquire(bg, time.Minute)
				if w.WantErr(err, redlatch.ErrBusy); name != "spin" && takes > 120 {
					t.Errorf("%d tries in a minute", takes)
				}
			})
		})
	}
}
