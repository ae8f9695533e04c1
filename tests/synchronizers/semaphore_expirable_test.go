package synchronizers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func giveBack(w *locktest.World, ps ...*redlatch.Hold) {
	w.Helper()
	for _, p := range ps {
		if err := p.Release(bg); err != nil {
			w.Fatalf("Release: %v", err)
		}
	}
}

// javaPermit puts a permit there as Redisson does.
func javaPermit(w *locktest.World, id string, until float64) {
	w.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.Server.ZAdd(locktest.PoolTimes, until, string(raw)); err != nil {
		w.Fatal(err)
	}
}

const javaID = "00ff0a0d27225c00fe80e28281c0c1ff" // every byte that text could stumble over

func TestPermitsAreStoredAsRedissonStoresThem(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{Redisson: redlatch.Redisson{MaxClockSkew: 2 * time.Second}})
		s := w.Permits(c, 5)
		now := time.Now().UnixMilli()
		p := w.Permit(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(10*time.Second)))
		many, err := locktest.Each(s.Acquire(bg, 3))
		if err != nil {
			t.Fatal(err)
		}
		w.WantPermits(1, 4)
		raw, err := hex.DecodeString(p.ID())
		if err != nil || len(raw) != 16 || strings.ToLower(p.ID()) != p.ID() {
			t.Fatalf("id %q", p.ID())
		}
		if score, err := w.Server.ZScore(locktest.PoolTimes, string(raw)); err != nil || score != float64(now+12000) {
			t.Errorf("score %.0f (%v), want %d: lease and skew", score, err, now+12000)
		}
		// Trusted for the lease less the margin, and not for the skew.
		if want := time.UnixMilli(now).Add(10*time.Second - 210*time.Millisecond); p.Expires().After(want.Add(time.Millisecond)) || p.Expires().Before(want) {
			t.Errorf("trusted until %v, want %v", p.Expires(), want)
		}
		ids := map[string]bool{p.ID(): true}
		for _, m := range many {
			raw, _ := hex.DecodeString(m.ID())
			if score, _ := w.Server.ZScore(locktest.PoolTimes, string(raw)); score != float64(now+32000) {
				t.Errorf("score %.0f, want %d", score, now+32000)
			}
			ids[m.ID()] = true
		}
		if len(ids) != 4 {
			t.Errorf("ids %v", ids)
		}
		giveBack(w, append(many, p)...)
		w.WantPermits(5, 0)
		if s.Name() != locktest.Pool || p.Name() != locktest.Pool {
			t.Error(s.Name(), p.Name())
		}
		for _, key := range w.Keys() {
			if key != locktest.Pool && w.Server.TTL(key) <= 0 {
				t.Errorf("%s is left for ever", key)
			}
		}
	})
}

func TestASemaphoreWithoutPermitsIsAnErrorAndNoWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := semaphore.NewExpirable(c, locktest.Pool, 0)
		start := time.Now()
		_, err := s.Acquire(bg, 1)
		w.WantErr(err, redlatch.ErrUninitialized)
		_, err = s.TryAcquire(bg, 1, 0)
		w.WantErr(err, redlatch.ErrUninitialized)
		if !strings.Contains(err.Error(), "TrySetPermits") || time.Since(start) > time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n, err := s.Permits(bg); n != 0 || err != nil {
			t.Errorf("%d permits, %v", n, err)
		}
		if keys := w.Keys(); len(keys) > 0 {
			t.Errorf("created %q", keys)
		}
		// Deleted while somebody waits.
		w.Permits(c, 1)
		p := w.Permit(s)
		done := locktest.Later(func() error { _, err := s.Acquire(bg, 1); return err })
		synctest.Wait()
		if deleted, err := s.Delete(bg); !deleted || err != nil {
			t.Fatal(deleted, err)
		}
		w.WantErr(<-done, redlatch.ErrUninitialized)
		synctest.Wait()
		w.WantErr(p.Err(), redlatch.ErrLost) // at once, in this process
		if deleted, err := s.Delete(bg); deleted || err != nil {
			t.Error(deleted, err)
		}
		// A lock of that name stays.
		h := w.Acquire(bg, c.Lock(locktest.Pool))
		if deleted, err := s.Delete(bg); deleted || err == nil || !strings.Contains(err.Error(), "hash") {
			t.Error(deleted, err)
		}
		w.Release(h)
	})
}

// What Redisson's own tests say of the counts.
func TestTheNumberOfPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := semaphore.NewExpirable(c, locktest.Pool, 0)
		numbers := func(available, acquired, permits int) {
			t.Helper()
			a, err1 := s.Available(bg)
			b, err2 := s.Acquired(bg)
			n, err3 := s.Permits(bg)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			if a != available || b != acquired || n != permits {
				t.Errorf("%d available, %d acquired, %d permits; want %d, %d, %d", a, b, n, available, acquired, permits)
			}
		}
		news := make(chan string, 100)
		defer w.Driver().Subscribe(locktest.PoolNews, false, func(n driver.Notice) {
			if !n.Subscribed {
				news <- n.Payload
			}
		})()
		heard := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(news) > 0 {
				got = append(got, <-news)
			}
			if !slices.Equal(got, want) {
				t.Errorf("published %q, want %q", got, want)
			}
		}
		synctest.Wait()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		numbers(0, 0, 0)
		set, err := s.TrySetPermits(bg, 0)
		check(err)
		again, err := s.TrySetPermits(bg, 7)
		check(err)
		if !set || again {
			t.Error("TrySetPermits:", set, again)
		}
		numbers(0, 0, 0)
		check(s.AddPermits(bg, 5))
		numbers(5, 0, 5)
		ps, err := locktest.Each(s.Acquire(bg, 3))
		check(err)
		numbers(2, 3, 5)
		check(s.SetPermits(bg, 4))
		numbers(1, 3, 4)
		check(s.SetPermits(bg, 4))
		check(s.SetPermits(bg, 1))
		numbers(-2, 3, 1)
		_, err = s.TryAcquire(bg, 1, 0)
		w.WantErr(err, redlatch.ErrBusy)
		giveBack(w, ps[0])
		numbers(-1, 2, 1)
		giveBack(w, ps[1])
		numbers(0, 1, 1)
		check(s.AddPermits(bg, -1))
		numbers(-1, 1, 0)
		giveBack(w, ps[2])
		numbers(0, 0, 0)
		check(s.SetPermits(bg, 2))
		numbers(2, 0, 2)
		heard("0", "5", "4", "1", "2")
	})
}

func TestPermitsByTheirIds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s, other := w.Permits(a, 4, redlatch.Lease(time.Minute)), semaphore.NewExpirable(b, locktest.Pool, 0, redlatch.Lease(time.Minute))
		mine, err := locktest.Each(s.Acquire(bg, 2))
		if err != nil {
			t.Fatal(err)
		}
		theirs := w.Permit(other)
		javaPermit(w, javaID, locktest.Forever)
		_, _ = w.Server.Incr(locktest.Pool, -1)

		left, err := s.LeaseLeft(bg, theirs.ID())
		if err != nil || left <= time.Minute || left > 61*time.Second {
			t.Errorf("LeaseLeft: %v, %v", left, err)
		}
		if left, err := s.LeaseLeft(bg, javaID); err != nil || left != -1 {
			t.Errorf("LeaseLeft of one that never ends: %v, %v", left, err)
		}
		if err := s.Extend(bg, javaID, time.Minute); err != nil {
			t.Error(err)
		}
		if left, err := s.LeaseLeft(bg, javaID); err != nil || left != -1 {
			t.Errorf("one that never ended was shortened: %v, %v", left, err)
		}
		if err := s.Extend(bg, theirs.ID(), time.Hour); err != nil {
			t.Error(err)
		}
		if err := s.Extend(bg, mine[0].ID(), time.Hour); err != nil || time.Until(mine[0].Expires()) < 58*time.Minute {
			t.Errorf("%v; trusted for %v", err, time.Until(mine[0].Expires()))
		}
		if err := s.Extend(bg, mine[0].ID(), time.Minute); err != nil || time.Until(mine[0].Expires()) < 58*time.Minute {
			t.Errorf("shortened: %v; trusted for %v", err, time.Until(mine[0].Expires()))
		}
		none := strings.Repeat("a", 32)
		w.WantErr(s.Extend(bg, none, time.Minute), redlatch.ErrNotHeld)
		_, err = s.LeaseLeft(bg, none)
		w.WantErr(err, redlatch.ErrNotHeld)

		// All or none.
		w.WantErr(s.Release(bg, mine[0].ID(), theirs.ID(), none), redlatch.ErrNotHeld)
		w.WantPermits(0, 4)
		if err := mine[0].Err(); err != nil {
			t.Errorf("a release that was refused ended a permit: %v", err)
		}
		w.WantErr(other.Release(bg, mine[1].ID(), none), redlatch.ErrNotHeld)
		w.WantPermits(0, 4)
		if err := s.Release(bg, mine[0].ID(), theirs.ID(), javaID); err != nil {
			t.Fatal(err)
		}
		w.WantPermits(3, 1)
		w.WantErr(context.Cause(mine[0].Context()), redlatch.ErrNotHeld)
		w.WantErr(mine[0].Release(bg), redlatch.ErrNotHeld)
		w.WantErr(s.Release(bg, javaID), redlatch.ErrNotHeld)
		w.WantErr(theirs.Release(bg), redlatch.ErrLost)
		giveBack(w, mine[1])
		w.WantPermits(4, 0)

		// One that has expired is free, although nobody has noticed yet.
		javaPermit(w, javaID, float64(time.Now().UnixMilli()))
		_, _ = w.Server.Incr(locktest.Pool, -1)
		w.WantErr(s.Extend(bg, javaID, time.Minute), redlatch.ErrNotHeld)
		_, err = s.LeaseLeft(bg, javaID)
		w.WantErr(err, redlatch.ErrNotHeld)
		w.WantErr(s.Release(bg, javaID), redlatch.ErrNotHeld)
		w.WantPermits(4, 0)

		for _, bad := range []string{"", "zz", strings.Repeat("a", 31), strings.Repeat("a", 34), strings.Repeat("g", 32)} {
			if err := s.Release(bg, bad); err == nil || !strings.Contains(err.Error(), "32 hexadecimal digits") {
				t.Errorf("id %q: %v", bad, err)
			}
		}
	})
}

// Redisson's tryRelease of a permit that has expired, and that nobody has noticed,
// frees it and says that it did not. Here the server's clock has been set forward.
func TestAnExpiredPermitIsFreedOnceAndWasLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := w.Permits(w.Client(redlatch.Config{}), 2, redlatch.Lease(time.Minute))
		p, q := w.Permit(s), w.Permit(s)
		raw, _ := hex.DecodeString(p.ID())
		_, _ = w.Server.ZAdd(locktest.PoolTimes, float64(time.Now().UnixMilli()), string(raw))
		w.WantErr(p.Release(bg), redlatch.ErrLost)
		if got, _ := w.Server.Get(locktest.Pool); got != "1" {
			t.Errorf("%s are free", got)
		}
		w.WantErr(p.Release(bg), redlatch.ErrNotHeld)
		giveBack(w, q)
		w.WantPermits(2, 0)
	})
}

// With a context that is over, a release by id is done all the same, and wholly.
func TestPermitsAreReleasedByIdAfterTheContext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.ClientOver(10*time.Millisecond, redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Permits(a, 2)
		mine, theirs := w.Permit(s), w.Permit(semaphore.NewExpirable(b, locktest.Pool, 0))
		ctx, cancel := context.WithCancel(bg)
		cancel()
		_ = s.Release(ctx, mine.ID(), theirs.ID())
		time.Sleep(time.Second)
		w.WantPermits(2, 0)
		_, err := s.Acquire(ctx, 1)
		w.WantErr(err, redlatch.ErrBusy, context.Canceled)
		p := w.Permit(s)
		w.WantErr(p.Release(ctx), context.Canceled)
		time.Sleep(time.Second)
		w.WantPermits(2, 0)
	})
}

// redisson: more than 8,000 expired permits made every call fail.
func TestThousandsOfExpiredPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 0)
		expire := func() {
			for i := range 9000 {
				_, _ = w.Server.ZAdd(locktest.PoolTimes, float64(time.Now().UnixMilli()-int64(i)), fmt.Sprintf("permit %09d", i))
			}
		}
		expire()
		p := w.Permit(s)
		w.WantPermits(8999, 1)
		giveBack(w, p)
		expire()
		if n, err := s.Permits(bg); n != 18000 || err != nil {
			t.Errorf("%d permits, %v", n, err)
		}
		ps, err := locktest.Each(s.Acquire(bg, 1000))
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(ps))
		for i, p := range ps {
			ids[i] = p.ID()
		}
		if err := s.Release(bg, ids...); err != nil {
			t.Fatal(err)
		}
		w.WantPermits(18000, 0)
	})
}

func TestTheWatchdogKeepsPermitsAndACrashGivesThemBack(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var count locktest.Counter
		var dead sync.Once
		crash := make(chan struct{})
		d := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			select {
			case <-crash:
				return driver.Reply{}, locktest.ErrReplyLost
			default:
				return count.Hook(s, args, next)
			}
		}}
		lost := make(chan observe.LostEvent, 300)
		c, other := w.Tapped(redlatch.Config{}, d, observe.Hooks{Lost: func(e observe.LostEvent) { lost <- e }}), w.Client(redlatch.Config{})
		s := w.Permits(c, 120)
		ps, err := locktest.Each(s.Acquire(bg, 120))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		for _, p := range ps {
			if err := p.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if n := count.Of("expirable.renew"); n < 2*16 || n > 2*20 {
			t.Errorf("%d requests kept 120 permits for 3 minutes", n)
		}
		dead.Do(func() { close(crash) })
		start := time.Now()
		p := w.Permit(semaphore.NewExpirable(other, locktest.Pool, 0))
		if waited := time.Since(start); waited < 20*time.Second || waited > 31100*time.Millisecond {
			t.Errorf("came back after %v", waited)
		}
		for _, p := range ps {
			<-p.Context().Done()
			w.WantErr(context.Cause(p.Context()), redlatch.ErrLost)
		}
		e := <-lost
		if e.Err.Reason != redlatch.LostExpired || e.Err.Name != locktest.Pool || len(e.Err.Owner) != 32 || !strings.Contains(e.Err.Error(), `permit of semaphore "pool" lost`) {
			t.Errorf("%+v: %v", e, e.Err)
		}
		giveBack(w, p)
	})
}

func TestAPermitOfALeaseEndsBeforeItsPlaceIsGivenAway(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		s := w.Permits(a, 1, redlatch.Lease(2*time.Second))
		start := time.Now()
		p := w.Permit(s)
		ended := locktest.Later(func() time.Duration { <-p.Context().Done(); return time.Since(start) })
		if _, ok := p.Context().Deadline(); ok {
			t.Error("the permit of a lease has a deadline, which callees would copy")
		}
		q := w.Permit(semaphore.NewExpirable(b, locktest.Pool, 0))
		got := time.Since(start)
		if end := <-ended; end > 1960*time.Millisecond || end < 1940*time.Millisecond || got < 3*time.Second || got > 3010*time.Millisecond { // the lease, and MaxClockSkew
			t.Errorf("ended after %v, next after %v", end, got)
		}
		if _, ok := q.Context().Deadline(); ok {
			t.Error("a watchdog's permit has a deadline")
		}
		w.WantErr(p.Release(bg), redlatch.ErrLost)
		w.WantErr(p.Release(bg), redlatch.ErrNotHeld)
		if err := q.Err(); err != nil {
			t.Error(err)
		}
		giveBack(w, q)
		w.WantPermits(1, 0)
		// Extend raises, and never shortens.
		p = w.Permit(s)
		if err := p.Extend(bg, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := p.Extend(bg, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if p.Err() != nil || p.With(bg).Err() != nil {
			t.Error(p.Err())
		}
		with, cancel := context.WithCancel(bg)
		joined := p.With(with)
		cancel()
		<-joined.Done()
		if err := q.Extend(bg, time.Minute); err == nil {
			t.Error("extended a released permit of the watchdog")
		}
		giveBack(w, p)
	})
}

func TestABadCallOfASemaphoreSaysWhatToDo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 1)
		bad := semaphore.NewExpirable(c, "a{b", 0)
		var none context.Context
		second := func(_ any, err error) error { return err }
		for want, err := range map[string]error{
			"nil context":           second(s.Acquire(none, 1)),
			"must not be negative":  second(s.TryAcquire(bg, 1, -1)),
			"0 permits cannot":      second(locktest.Each(s.Acquire(bg, 0))),
			"ask for 1 to 10000":    second(locktest.Each(s.Acquire(bg, 10001))),
			"lease of 1ms":          second(semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(time.Millisecond)).Acquire(bg, 1)),
			"without a '}'":         second(bad.Acquire(bg, 1)),
			"AddPermits takes":      s.SetPermits(bg, -1),
			"less than no":          second(s.TrySetPermits(bg, -1)),
			"Redisson can count":    s.AddPermits(bg, math.MaxInt32+1),
			"lease of 0s":           s.Extend(bg, javaID, 0),
			"is not the id":         second(s.LeaseLeft(bg, "1")),
			"a '{' without":         bad.Release(bg, javaID),
			"in a cluster its keys": bad.AddPermits(bg, 1),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
		w.OK(s.Release(bg)) // what a caller has may be nothing
		_ = w.Server.Set("{pool}:timeout", "text")
		_, err := s.Acquire(bg, 1)
		var re *driver.RunError
		if !errors.As(err, &re) || re.Code != "WRONGTYPE" || redlatch.IsRetryable(err) {
			t.Errorf("a key of another type: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = s.Acquire(bg, 1)
		w.WantErr(err, redlatch.ErrClosed)
		w.WantErr(s.Release(bg, javaID), redlatch.ErrClosed)
	})
}

func TestCloseEndsPermitsAndWaiters(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 1)
		p := w.Permit(s)
		done := locktest.Later(func() error { _, err := s.Acquire(bg, 1); return err })
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.WantErr(<-done, redlatch.ErrClosed)
		w.WantErr(context.Cause(p.Context()), redlatch.ErrClosed)
		w.WantErr(p.Release(bg), redlatch.ErrClosed)
		w.WantPermits(0, 1) // left to its lease: a section may still run
	})
}

func TestPermitsAndMaxHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: time.Minute})
		s := w.Permits(c, 1)
		start := time.Now()
		p := w.Permit(s)
		time.Sleep(50 * time.Second)
		if left := time.Until(p.Expires()); left > 10*time.Second {
			t.Errorf("trusted for %v", left)
		}
		<-p.Context().Done()
		var lost *redlatch.LostError
		if err := p.Err(); time.Since(start) != time.Minute || !errors.As(err, &lost) || lost.Reason != redlatch.LostMaxHold {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		w.WantPermits(0, 1) // its holder may need time to stop
		w.WantErr(p.Release(bg), redlatch.ErrLost)
		synctest.Wait()
		w.WantPermits(1, 0)
	})
}

// The semaphore's own TTL, which Redisson's expire sets, holds for its permits.
func TestPermitsGoWithASemaphoreThatExpires(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := w.Permits(c, 2)
		w.Server.SetTTL(locktest.Pool, time.Hour)
		p := w.Permit(s)
		if ttl := w.Server.TTL(locktest.PoolTimes); ttl != time.Hour {
			t.Errorf("TTL %v", ttl)
		}
		if err := s.AddPermits(bg, 1); err != nil || w.Server.TTL(locktest.Pool) != time.Hour {
			t.Errorf("%v; AddPermits made the TTL %v", err, w.Server.TTL(locktest.Pool))
		}
		giveBack(w, p)
	})
}

func TestPermitKeysShareASlot(t *testing.T) {
	for _, name := range []string{"pool", "a{b}c"} {
		if wire.Slot(name) != wire.Slot(wire.Suffix(name, wire.PermitTimeout)) || wire.Slot(name) != wire.Slot(wire.Session(name, "c", "permits")) {
			t.Error(name)
		}
	}
}

// Redisson's listeners throw at a negative number of permits.
func TestNoMessageSaysLessThanNoPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := semaphore.NewExpirable(w.Client(redlatch.Config{}), "desks", 0)
		_, err := s.TrySetPermits(bg, 3)
		w.OK(err)
		ps, err := locktest.Each(s.Acquire(bg, 3))
		w.OK(err)
		w.OK(s.SetPermits(bg, 1))
		published := w.Eavesdrop()
		for _, p := range ps {
			w.OK(p.Release(bg))
		}
		if got, want := strings.Join(published(), ", "), "redisson_sc:{desks} 1"; got != want {
			t.Errorf("published %s, want %s", got, want)
		}
	})
}
