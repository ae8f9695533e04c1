package clients

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func only[T any](_ T, err error) error { return err }

// A program that gives what a user has typed to the library has to tell his
// mistakes from a server's.
func TestWhatCannotBeUsedIsErrInvalidAndNothingElseIs(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, another := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l, fair, read := c.Lock("l"), c.FairLock("f"), c.ReadWriteLock("rw").Read()
		sem, permits, rate := semaphore.New(c, "s", 0), semaphore.NewExpirable(c, "p", 0), ratelimit.New(c, "r", ratelimit.Rate{})
		counted, b := latch.New(c, "d"), barrier.New(c, "b", 2)
		w.OK(only(rate.TrySetRate(bg, ratelimit.Rate{Permits: 5, Interval: time.Second})))
		w.OK(rate.Acquire(bg, 1)) // which counts what is left
		w.OK(only(permits.TrySetPermits(bg, 2)))
		kept, leased := w.Acquire(bg, l), w.Acquire(bg, locktest.With(fair, redlatch.Lease(time.Minute)))
		several, err := redlatch.MultiLock(c.Lock("s1"), c.Lock("s2")).Acquire(bg)
		w.OK(err)
		w.OK(b.Reset(bg))
		permit, err := permits.Acquire(bg, 1)
		w.OK(err)
		before := strings.Join(w.Keys(), " ")
		var nobody context.Context
		deaf := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: -1})
		w.Cleanup(func() { _ = deaf.Close() })
		many := make([]string, 65)
		for i := range many {
			many[i] = strings.Repeat("a", 5)
		}

		for what, err := range map[string]error{
			"nil context":               only(l.Acquire(nobody)),
			"nothing to do":             l.Do(bg, nil),
			"nothing for several":       redlatch.MultiLock(c.Lock("m"), c.Lock("n")).Do(bg, nil),
			"nothing with permits":      sem.Do(bg, 1, nil),
			"nothing with a permit":     permits.Do(bg, 1, nil),
			"nothing to lead":           election.New(c, "e").Run(bg, nil),
			"name":                      only(c.Lock("a{b").TryAcquire(bg, 0)),
			"name of a barrier":         only(barrier.New(c, "", 2).Await(bg)),
			"name of a latch":           only(latch.New(c, "{}").Count(bg)),
			"no stripes":                only(c.StripedLock("x", 0).For("k").TryAcquire(bg, 0)),
			"no values":                 only(redisson.GroupLock(c, "g", nil).TryAcquire(bg, 0)),
			"no locks":                  only(redlatch.MultiLock().Acquire(bg)),
			"nil lock":                  only(redlatch.MultiLock(l, nil).Acquire(bg)),
			"a lock twice":              only(redlatch.MultiLock(c.Lock("m"), c.Lock("m")).Acquire(bg)),
			"one client of a RedLock":   only(redlatch.RedLock(c.Lock("m"), c.Lock("n")).Acquire(bg)),
			"short lease":               only(locktest.With(l, redlatch.Lease(time.Millisecond)).TryAcquire(bg, 0)),
			"long lease":                only(locktest.With(l, redlatch.Lease(1<<62)).TryAcquire(bg, 0)),
			"negative wait":             only(l.TryAcquire(bg, -1)),
			"negative wait for several": only(redlatch.MultiLock(l).TryAcquire(bg, -1)),
			"negative wait for permits": sem.TryAcquire(bg, 1, -1),
			"negative wait for a lease": only(permits.TryAcquire(bg, 1, -1)),
			"negative wait for a rate":  rate.TryAcquire(bg, 1, -1),
			"negative MinHold":          only(locktest.With(l, redlatch.MinHold(-time.Microsecond)).TryAcquire(bg, 0)),
			"MinHold over Lease":        only(locktest.With(l, redlatch.Lease(time.Second), redlatch.MinHold(time.Minute)).TryAcquire(bg, 0)),
			"Extend of what is kept":    kept.Extend(bg, time.Minute),
			"short Extend":              leased.Extend(bg, time.Microsecond),
			"owner":                     l.ReleaseID(bg, "me"),
			"own owner":                 l.ExtendID(bg, kept.ID(), time.Minute),
			"owner of a reader":         read.ReleaseID(bg, kept.ID()),
			"both sides of a lock":      only(redlatch.MultiLock(c.ReadWriteLock("m").Read(), c.ReadWriteLock("m").Write()).Acquire(bg)),
			"a value twice":             only(redlatch.MultiLock(redisson.GroupLock(c, "m", []string{"a", "b"}), redisson.GroupLock(c, "m", []string{"b", "c"})).Acquire(bg)),
			"two leases of several":     only(redlatch.MultiLock(l, c.Lock("m", redlatch.Lease(time.Minute))).TryAcquire(bg, 0)),
			"two leases of a RedLock":   only(redlatch.RedLock(c.Lock("m", redlatch.Lease(time.Minute)), another.Lock("m", redlatch.Lease(time.Hour))).TryAcquire(bg, 0)),
			"MinHold of a member":       only(redlatch.MultiLock(l, c.Lock("m", redlatch.MinHold(time.Minute))).TryAcquire(bg, 0)),
			"Extend of several kept":    several.Extend(bg, time.Minute),
			"twin":                      only(barrier.New(c, "{b}", 2).Await(bg)),
			"negative permits":          sem.Release(bg, -1),
			"too few permits":           sem.AddPermits(bg, math.MinInt),
			"too many permits":          sem.AddPermits(bg, 1<<40),
			"TTL of a semaphore":        only(sem.Expire(bg, -1)),
			"no permits":                only(locktest.Each(permits.Acquire(bg, 0))),
			"set-up of less than none":  semaphore.New(c, "s2", -1).Acquire(bg, 1),
			"set-up of too many":        only(semaphore.NewExpirable(c, "p2", 1<<40).TryAcquire(bg, 1, 0)),
			"negative set of permits":   permits.SetPermits(bg, -1),
			"short lease of a permit":   only(semaphore.NewExpirable(c, "p", 0, redlatch.Lease(1)).TryAcquire(bg, 1, 0)),
			"no option":                 only(c.Lock("l", nil).TryAcquire(bg, 0)),
			"no option of a permit":     only(semaphore.NewExpirable(c, "p", 0, nil).Available(bg)),
			"id of a permit":            permits.Release(bg, "me"),
			"Extend of a kept permit":   permit.Extend(bg, time.Minute),
			"rate":                      rate.SetRate(bg, ratelimit.Rate{Permits: 0, Interval: time.Second}),
			"interval":                  rate.SetRate(bg, ratelimit.Rate{Permits: 1}),
			"more than the rate":        rate.Acquire(bg, 6),
			"more than the set-up":      ratelimit.New(c, "r2", ratelimit.Rate{Permits: 5, Interval: time.Second}).Acquire(bg, 6),
			"set-up of no rate":         ratelimit.New(c, "r2", ratelimit.Rate{Interval: time.Second}).Acquire(bg, 1),
			"count of a latch":          only(counted.TrySetCount(bg, 0)),
			"parties":                   only(barrier.New(c, "b0", 0).Await(bg)),
			"other parties":             only(barrier.New(c, "b", 3).Await(bg)),
			"election":                  election.New(c, "a{b").Run(bg, nil),
			"question about too much":   only(admin.New(c).Participants(bg, admin.Question{Names: many})),
			"no driver":                 only(redlatch.New(nil, redlatch.Config{})),
			"Config":                    only(redlatch.New(w.Driver(), redlatch.Config{MaxHold: -1})),
			"Config's prefix":           only(redlatch.New(w.Driver(), redlatch.Config{Prefix: "}"})),
			"Config's identity":         only(redlatch.New(w.Driver(), redlatch.Config{Identity: redlatch.Identity{Name: "\n"}})),
			"driver without time-outs":  only(redlatch.New(redlatchgoredis.Use(deaf), redlatch.Config{})),
		} {
			switch {
			case err == nil:
				t.Errorf("%s: it is accepted", what)
			case !errors.Is(err, redlatch.ErrInvalid), redlatch.IsRetryable(err), errors.Is(err, redlatch.ErrBusy):
				t.Errorf("%s: %v is not ErrInvalid alone", what, err)
			case !strings.HasPrefix(err.Error(), "redlatch: "), strings.Contains(err.Error(), redlatch.ErrInvalid.Error()):
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := strings.Join(w.Keys(), " "); after != before {
			t.Errorf("there was %s, and is %s", before, after)
		}

		w.OK(w.Server.Set("text", "not a lock"))
		over, cancel := context.WithCancel(bg)
		cancel()
		for what, err := range map[string]error{
			"busy":          only(another.Lock("l").TryAcquire(bg, 0)),
			"cancelled":     only(c.Lock("x").Acquire(over)),
			"type":          only(c.Lock("text").TryAcquire(bg, 0)),
			"re-entry":      only(another.Lock("l").Acquire(kept.Context())),
			"uninitialised": only(semaphore.NewExpirable(c, "unset", 0).Acquire(bg, 1)),
			"no such owner": another.Lock("x").ReleaseID(bg, kept.ID()),
		} {
			if err == nil || errors.Is(err, redlatch.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.OK(permit.Release(bg))
		w.OK(several.Release(bg))
		w.Release(kept)
		w.Release(leased)
	})
}
