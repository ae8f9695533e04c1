package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// One name may have to live through a long outage, and another be free soon after
// a crash: a lease that is right for both there is not.
func TestTheWatchdogOfANameGoesBeforeTheClients(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{WatchdogTimeout: time.Minute})
		long, short := redlatch.Watchdog(5*time.Minute), redlatch.Watchdog(30*time.Second)
		for name, x := range map[string]struct {
			acquire func() (*redlatch.Hold, error)
			lease   time.Duration
		}{
			"the client's":  {func() (*redlatch.Hold, error) { return c.Lock("a").Acquire(bg) }, time.Minute},
			"0":             {func() (*redlatch.Hold, error) { return c.Lock("b", redlatch.Watchdog(0)).Acquire(bg) }, time.Minute},
			"long":          {func() (*redlatch.Hold, error) { return c.Lock("c", long).Acquire(bg) }, 5 * time.Minute},
			"short":         {func() (*redlatch.Hold, error) { return c.Lock("d", short).Acquire(bg) }, 30 * time.Second},
			"the last says": {func() (*redlatch.Hold, error) { return c.Lock("e", long, short).Acquire(bg) }, 30 * time.Second},
			"fair":          {func() (*redlatch.Hold, error) { return c.FairLock("f", long).Acquire(bg) }, 5 * time.Minute},
			"read":          {func() (*redlatch.Hold, error) { return c.ReadWriteLock("g", long).Read().Acquire(bg) }, 5 * time.Minute},
			"write":         {func() (*redlatch.Hold, error) { return c.ReadWriteLock("h", short).Write().Acquire(bg) }, 30 * time.Second},
			"fenced":        {func() (*redlatch.Hold, error) { return c.Lock("i", long, redlatch.Fenced()).Acquire(bg) }, 5 * time.Minute},
			"several, all long": {func() (*redlatch.Hold, error) {
				return redlatch.MultiLock(c.Lock("j", long), c.Lock("k", long)).Acquire(bg)
			}, 5 * time.Minute},
			"several": {func() (*redlatch.Hold, error) {
				return redlatch.MultiLock(c.Lock("l", long), c.Lock("m"), c.Lock("n", short)).Acquire(bg)
			}, 30 * time.Second},
			"most": {func() (*redlatch.Hold, error) { return redlatch.RedLock(c.Lock("o", short)).Acquire(bg) }, 30 * time.Second},
			"permits": {func() (*redlatch.Hold, error) {
				return semaphore.NewExpirable(c, "p", 2, long).Acquire(bg, 2)
			}, 5 * time.Minute},
		} {
			h, err := x.acquire()
			w.OK(err)
			for range 3 { // as it is taken, and as it is renewed
				if left := time.Until(h.Expires()); left > x.lease || left < x.lease*6/10 {
					t.Errorf("%s: trusted for %v, with a lease of %v", name, left, x.lease)
				}
				time.Sleep(x.lease * 3 / 4)
				synctest.Wait()
			}
			w.Release(h)
		}
	})
}

func TestAWatchdogThatCouldNotRenewInTimeIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, opts := range [][]redlatch.HoldOption{
			{redlatch.Watchdog(-1)},
			{redlatch.Watchdog(299 * time.Millisecond)},
			{redlatch.Watchdog(3*w.Driver().Traits().Timeout - 1)},
			{redlatch.Watchdog(1<<63 - 1)},
			{redlatch.Watchdog(time.Minute), redlatch.Lease(time.Minute)},
			{redlatch.Lease(time.Minute), redlatch.Watchdog(time.Minute)},
		} {
			_, err := semaphore.NewExpirable(c, "i", 1, opts...).TryAcquire(bg, 1, 0)
			w.WantErr(err, redlatch.ErrInvalid)
			_, err = c.FairLock("i", opts[0], opts[len(opts)-1]).TryAcquire(bg, 0)
			w.WantErr(err, redlatch.ErrInvalid)
		}
		w.WantNothing()
	})
}

// What nests has the longest lease of all of them, whoever came first: the outage
// that one of them is to live through would end it with the others.
func TestTheLongestWatchdogOfANestIsRenewed(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, l := range []*redlatch.Lock{
			c.Lock("a"), c.FairLock("b"), c.ReadWriteLock("c").Write(), c.ReadWriteLock("d").Read(), c.Lock("e", redlatch.Lease(time.Minute)),
		} {
			outer := w.Acquire(bg, l)
			inner := w.Acquire(outer.Context(), locktest.With(l, redlatch.Watchdog(5*time.Minute)))
			time.Sleep(4 * time.Minute)
			synctest.Wait()
			if left := time.Until(inner.Expires()); left < 3*time.Minute {
				t.Errorf("%s: trusted for %v, and renewed for a lease of 5 minutes", l.Name(), left)
			}
			w.Release(inner)
			w.Release(outer)
		}
	})
}

// One short hold with a long lease had the others of its nest, and those that read
// beside it, renewed for that for ever: a crash days later kept the lock for an
// hour.
func TestALongWatchdogEndsWithTheHoldThatAskedForIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		long := redlatch.Watchdog(time.Hour)
		for _, l := range []*redlatch.Lock{
			c.Lock("a"), c.FairLock("b"), c.ReadWriteLock("c").Write(), c.ReadWriteLock("d").Read(), c.Lock("e", redlatch.Watchdog(time.Minute)),
		} {
			outer := w.Acquire(bg, l)
			inner := w.Acquire(outer.Context(), locktest.With(l, long))
			again := w.Acquire(inner.Context(), locktest.With(l, long))
			w.Release(again)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if left := w.Server.TTL(l.Name()); left < 35*time.Minute {
				t.Errorf("%s: kept for %v, while a hold with a lease of an hour is left", l.Name(), left)
			}
			w.Release(inner)
			time.Sleep(59 * time.Minute)
			w.OK(outer.Err())
			time.Sleep(4 * time.Minute)
			synctest.Wait()
			if left := w.Server.TTL(l.Name()); left > time.Minute {
				t.Errorf("%s: kept for %v, though the hold with a lease of an hour is over", l.Name(), left)
			}
			w.OK(outer.Err())
			w.Release(outer)
		}
		first := w.Acquire(bg, c.ReadWriteLock("f").Read())
		w.Release(w.Acquire(bg, c.ReadWriteLock("f", long).Read()))
		time.Sleep(2 * time.Hour)
		if left := w.Server.TTL("f"); left > 30*time.Second {
			t.Errorf("kept for %v, though the reader with a lease of an hour is over", left)
		}
		w.Release(first)
	})
}

// A lock that passes between goroutines has the lease of whoever has it, not of
// the first.
func TestALockThatPassesOnHasTheNextOnesWatchdog(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		long, short := c.Lock("a", redlatch.Watchdog(5*time.Minute)), c.Lock("a")
		for _, x := range []struct {
			first, next *redlatch.Lock
			lease       time.Duration
		}{{long, short, 30 * time.Second}, {short, long, 5 * time.Minute}} {
			h := w.Acquire(bg, x.first)
			waits := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, x.next) })
			synctest.Wait()
			w.Release(h)
			h = <-waits
			for range 2 {
				if left := w.Server.TTL("a"); left > x.lease || left < x.lease*6/10 {
					t.Errorf("the server keeps it for %v, with a lease of %v", left, x.lease)
				}
				time.Sleep(x.lease * 3 / 4)
				synctest.Wait()
			}
			w.Release(h)
		}
	})
}

// Readers share what Redis knows of them: one that came later and is to live
// through more gets that, too.
func TestAReaderThatJoinsHasItsOwnWatchdog(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		first := w.Acquire(bg, c.ReadWriteLock("a").Read())
		second := w.Acquire(bg, c.ReadWriteLock("a", redlatch.Watchdog(5*time.Minute)).Read())
		for range 2 {
			if left := time.Until(second.Expires()); left < 2*time.Minute {
				t.Errorf("trusted for %v, with a lease of 5 minutes", left)
			}
			time.Sleep(4 * time.Minute)
			synctest.Wait()
		}
		w.Release(first)
		w.Release(second)
	})
}
