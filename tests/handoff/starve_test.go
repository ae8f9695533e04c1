package handoff

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A contested is what loops and waiters want: how to have it, each time from
// somebody who may wait.
type contested struct {
	name string
	by   func(*redlatch.Client) (acquire func(context.Context) (release func() error, err error))
}

func locked(l *redlatch.Lock) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		h, err := l.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return h.Release(bg) }, nil
	}
}

// pairs are what a loop has, and what somebody else waits for.
var pairs = []struct{ loop, waiter contested }{
	{plainContested, plainContested},
	{groupContested, groupContested},
	{writeContested, writeContested},
	{writeContested, readContested},
	{readContested, writeContested},
	{semaphoreContested, semaphoreContested},
	{permitContested, permitContested},
}

var (
	plainContested = contested{"lock", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.Lock("orders"))
	}}
	groupContested = contested{"group", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(redisson.GroupLock(c, "orders", []string{"1", "2"}))
	}}
	writeContested = contested{"write", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.ReadWriteLock("orders").Write())
	}}
	readContested = contested{"read", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.ReadWriteLock("orders").Read())
	}}
	permitContested = contested{"permit", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		s := semaphore.NewExpirable(c, "desks", 0)
		_, _ = s.TrySetPermits(bg, 1)
		return func(ctx context.Context) (func() error, error) {
			p, err := s.Acquire(ctx, 1)
			if err != nil {
				return nil, err
			}
			return func() error { return p.Release(bg) }, nil
		}
	}}
	semaphoreContested = contested{"semaphore", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		s := semaphore.New(c, locktest.SemaphoreName, 0)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return s.Release(bg, 1) }, s.Acquire(ctx, 1)
		}
	}}
)

// farClient returns a client that is so far from the server: half of it on the way
// there, half on the way back, and messages take as long.
func farClient(w *locktest.World, rtt time.Duration, cfg redlatch.Config) *redlatch.Client {
	return w.Tapped(cfg, &locktest.Tap{Late: rtt / 2, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		time.Sleep(rtt / 2)
		defer time.Sleep(rtt / 2)
		return next()
	}})
}

// loop has x over and over, until ctx ends.
func loop(w *locktest.World, ctx context.Context, c *redlatch.Client, x contested, section, pause time.Duration, waited func(time.Duration)) {
	acquire := x.by(c)
	for ctx.Err() == nil {
		start := time.Now()
		release, err := acquire(ctx)
		if waited != nil {
			waited(time.Since(start))
		}
		if err != nil {
			return
		}
		time.Sleep(section)
		if err := release(); err != nil {
			w.Error(err)
		}
		time.Sleep(pause)
	}
}

// A wait is what a waiter had to go through.
type wait struct {
	mu    sync.Mutex
	times int
	worst time.Duration
}

func (x *wait) note(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.times, x.worst = x.times+1, max(x.worst, d)
}

// A process that releases permits all the time, beside a subscriber that takes
// nothing, gets permits itself: a further release makes a pause no longer.
func TestReleasesDoNotKeepTheirProcessFromAcquiring(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := farClient(w, time.Millisecond, redlatch.Config{})
		s := w.Semaphore(c, 0)
		e := semaphore.NewExpirable(c, "desks", 0)
		w.OK(e.SetPermits(bg, 200))
		ps, err := locktest.Each(e.Acquire(bg, 200))
		w.OK(err)
		rdb := redis.NewClient(w.Options(w.Dial))
		idle := rdb.Subscribe(bg, "redisson_sc:{"+locktest.SemaphoreName+"}", "redisson_sc:{desks}")
		w.OK(idle.Ping(bg))
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, p := range ps {
				w.OK(s.Release(bg, 1))
				w.OK(p.Release(bg))
				time.Sleep(20 * time.Millisecond)
				if ctx.Err() != nil {
					return
				}
			}
		})
		time.Sleep(100 * time.Millisecond)
		for name, acquire := range map[string]func() error{
			"semaphore": func() error { return s.Acquire(bg, 1) },
			"permit":    func() error { _, err := e.Acquire(bg, 1); return err },
		} {
			start := time.Now()
			w.OK(acquire())
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("%s: it took %v", name, took)
			}
		}
		cancel()
		wg.Wait()
		_ = idle.Close()
		_ = rdb.Close()
	})
}

// A loop of one goroutine had the lock again before a waiter a little farther away
// could ask for it, for as long as it was watched.
func TestALoopLeavesOthersTheirTurn(t *testing.T) {
	const section = 20 * time.Millisecond
	for _, pair := range pairs {
		for name, noHandOff := range map[string]bool{"local": false, "none": true} {
			t.Run(fmt.Sprintf("%s beside %s, hand-off %s", pair.waiter.name, pair.loop.name, name), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					w.Semaphore(w.Client(redlatch.Config{}), 1)
					ctx, cancel := context.WithTimeout(bg, 5*time.Second)
					defer cancel()
					var wg sync.WaitGroup
					var beside, waiter wait
					wg.Go(func() {
						loop(w, ctx, farClient(w, 200*time.Microsecond, redlatch.Config{NoHandOff: noHandOff}), pair.loop, section, 0, beside.note)
					})
					time.Sleep(section / 2)
					wg.Go(func() {
						loop(w, ctx, farClient(w, 1200*time.Microsecond, redlatch.Config{NoHandOff: noHandOff}), pair.waiter, section, 50*time.Millisecond, waiter.note)
					})
					wg.Wait()
					t.Logf("the loop had it %d times, the waiter %d times, after %v at worst", beside.times, waiter.times, waiter.worst)
					if most := 2*(section+80*time.Millisecond) + time.Second; waiter.worst > most {
						t.Errorf("it waited %v, want %v at most", waiter.worst, most)
					}
					if waiter.times < 10 {
						t.Errorf("it had its turn %d times", waiter.times)
					}
				})
			})
		}
	}
}

// redissonTakes waits for a lock as Redisson does: it tries on a message, or when
// the TTL is over.
func redissonTakes(w *locktest.World, ctx context.Context, name string, rtt time.Duration, section time.Duration, waited func(time.Duration)) {
	rdb := redis.NewClient(w.Options(w.Dial))
	defer func() { _ = rdb.Close() }()
	sub := rdb.Subscribe(bg, "redisson_lock__channel:{"+name+"}")
	defer func() { _ = sub.Close() }()
	messages := sub.Channel()
	start := time.Now()
	for {
		time.Sleep(rtt / 2)
		took, err := redis.NewScript(`if redis.call('exists', KEYS[1]) == 0 then
			redis.call('hincrby', KEYS[1], ARGV[1], 1)
			redis.call('pexpire', KEYS[1], 30000)
			return 1
		end
		return 0`).Eval(bg, rdb, []string{name}, "60c33f2e-5b5f-4cc1-a2c9-c0c4b3d4ba03:1").Int()
		if err != nil {
			w.Error(err)
		}
		if took == 1 {
			waited(time.Since(start))
			time.Sleep(rtt/2 + section)
			rdb.Del(bg, name)
			rdb.Publish(bg, "redisson_lock__channel:{"+name+"}", "0")
			start = time.Now()
		} else {
			select {
			case <-messages:
				time.Sleep(rtt / 2)
			case <-ctx.Done():
				waited(time.Since(start))
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func TestALoopLeavesRedissonItsTurn(t *testing.T) {
	const section = 20 * time.Millisecond
	for _, goroutines := range []int{1, 16} {
		t.Run(fmt.Sprint(goroutines), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				ctx, cancel := context.WithTimeout(bg, 5*time.Second)
				defer cancel()
				var wg sync.WaitGroup
				var beside, waiter wait
				c := farClient(w, 200*time.Microsecond, redlatch.Config{})
				for range goroutines {
					wg.Go(func() { loop(w, ctx, c, plainContested, section, 0, beside.note) })
				}
				time.Sleep(section / 2)
				wg.Go(func() { redissonTakes(w, ctx, "orders", 2*time.Millisecond, section, waiter.note) })
				wg.Wait()
				t.Logf("the loop had it %d times, the waiter %d times, after %v at worst", beside.times, waiter.times, waiter.worst)
				if most := 2*(section+80*time.Millisecond) + time.Second; waiter.worst > most || waiter.times < 10 {
					t.Errorf("it had its turn %d times, after %v at worst", waiter.times, waiter.worst)
				}
			})
		})
	}
}

// The worker of an expirable semaphore asked on the message of its own process's
// release, before the answer had said who else waits: so it took what was left to
// others, and believed that nobody wanted it.
func TestAnExpirableSemaphoreAsksAfterTheAnswerToItsOwnRelease(t *testing.T) {
	for _, x := range []struct {
		late   time.Duration // the answer, not the message
		beside bool          // somebody who is far away waits, too
		most   time.Duration
	}{
		{10 * time.Millisecond, true, 200 * time.Millisecond},
		{time.Second, false, 80 * time.Millisecond}, // as if it were lost
	} {
		t.Run(fmt.Sprintf("%v late, somebody else: %v", x.late, x.beside), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Timeout: 5 * time.Second, Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					reply, err := next()
					if script == "expirable.release" {
						time.Sleep(x.late)
					}
					return reply, err
				}})
				s := semaphore.NewExpirable(c, "desks", 0)
				w.OK(s.SetPermits(bg, 1))
				p, err := s.Acquire(bg, 1)
				w.OK(err)
				var released time.Time
				var here, far time.Duration
				var wg sync.WaitGroup
				waits := func(s *semaphore.Expirable, after *time.Duration) {
					wg.Go(func() {
						p, err := s.Acquire(bg, 1)
						*after = time.Since(released)
						w.OK(err)
						w.OK(p.Release(bg))
					})
				}
				waits(s, &here)
				if x.beside {
					waits(semaphore.NewExpirable(farClient(w, 60*time.Millisecond, redlatch.Config{}), "desks", 0), &far)
				}
				time.Sleep(100 * time.Millisecond)
				released = time.Now()
				w.OK(p.Release(bg))
				wg.Wait()
				t.Logf("who waits here had it after %v, who is far away after %v", here, far)
				if here < far {
					t.Error("it was not left to the other")
				}
				if here > x.most {
					t.Errorf("that is more than %v", x.most)
				}
			})
		})
	}
}

// However many loop, however far away the waiter is: it has the lock within the
// promised time. (Readers of several processes overlap, so that one who wants to
// write may wait for longer; and of a group everybody hears about any value.)
func TestAWaiterHasTheLockInTime(t *testing.T) {
	for _, x := range []struct {
		processes, goroutines int
		section, rtt          time.Duration
	}{
		{1, 1, 20 * time.Millisecond, 60 * time.Millisecond},
		{1, 1, 300 * time.Millisecond, 60 * time.Millisecond},
		{1, 16, 20 * time.Millisecond, 60 * time.Millisecond},
		{2, 1, 20 * time.Millisecond, 60 * time.Millisecond},
		{4, 1, 20 * time.Millisecond, 20 * time.Millisecond},
		{4, 4, 100 * time.Millisecond, 60 * time.Millisecond},
		{4, 1, 300 * time.Millisecond, 60 * time.Millisecond}, // longer than turns are remembered for nobody
	} {
		for _, pair := range pairs {
			if x.processes > 1 && (pair.loop.name == "read" || pair.loop.name == "group") {
				continue
			}
			t.Run(fmt.Sprintf("%d x %d, section %v, RTT %v, %s beside %s", x.processes, x.goroutines, x.section, x.rtt, pair.waiter.name, pair.loop.name), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					w.Semaphore(w.Client(redlatch.Config{}), 1)
					ctx, cancel := context.WithTimeout(bg, 3*time.Second+10*x.section)
					defer cancel()
					var wg sync.WaitGroup
					var beside, waiter wait
					for range x.processes {
						c := farClient(w, locktest.Near, redlatch.Config{})
						for range x.goroutines {
							wg.Go(func() { loop(w, ctx, c, pair.loop, x.section, 0, beside.note) })
						}
					}
					time.Sleep(10 * time.Millisecond)
					wg.Go(func() {
						loop(w, ctx, farClient(w, x.rtt, redlatch.Config{}), pair.waiter, x.section, 200*time.Millisecond, waiter.note)
					})
					wg.Wait()
					most := time.Duration(x.processes+1)*(x.section+80*time.Millisecond) + time.Second
					t.Logf("the loops had it %d times, the waiter %d times, after %v at worst, of %v", beside.times, waiter.times, waiter.worst, most)
					if waiter.worst > most {
						t.Errorf("it waited too long")
					}
				})
			})
		}
	}
}

// A caller leaves, and gets the lock all the same, after a pause that nobody has
// used: the lock passes on in its process for a quantum only, as any other.
func TestALockThatCameTooLateForItsCallerIsNotPassedOnForEver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w.Listen(nil, "redisson_lock__channel:{orders}") // takes nothing
		var slow atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if script == "lock.take" && slow.Load() {
				defer time.Sleep(300 * time.Millisecond)
			}
			return next()
		}})
		w.Release(w.Acquire(bg, c.Lock("orders"))) // which owes the listener a turn
		slow.Store(true)
		leaving, cancel := context.WithTimeout(bg, 200*time.Millisecond)
		defer cancel()
		left := locktest.Later(func() error { _, err := c.Lock("orders").Acquire(leaving); return err })
		time.Sleep(time.Millisecond)

		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { loop(w, ctx, c, plainContested, time.Millisecond, 0, nil) })
		}
		w.WantErr(<-left, context.DeadlineExceeded)
		slow.Store(false)
		start := time.Now()
		w.Release(w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders")))
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("another process waited for %v", d)
		}
		cancel()
		wg.Wait()
	})
}

// Who listens and takes nothing costs a tenth. It had cost a semaphore half of
// what it could do; one of 64 permits two fifths, for turns went on after the
// pause; one of 8 with NoHandOff nearly all, for its process took messages of its
// own for another's.
func TestAListenerThatTakesNothingCostsATenth(t *testing.T) {
	locktest.Long(t)
	const ms = time.Millisecond
	for _, x := range []struct {
		of                  contested
		permits, goroutines []int
		sections            []time.Duration
		without             []bool
	}{
		{plainContested, []int{1}, []int{1, 16}, []time.Duration{5 * ms, 20 * ms}, []bool{false}},
		{groupContested, []int{1}, []int{1, 16}, []time.Duration{5 * ms, 20 * ms}, []bool{false}},
		{writeContested, []int{1}, []int{1, 16}, []time.Duration{5 * ms, 20 * ms}, []bool{false}},
		{readContested, []int{1}, []int{1, 16}, []time.Duration{5 * ms, 20 * ms}, []bool{false}},
		{semaphoreContested, []int{1, 2}, []int{1, 2}, []time.Duration{5 * ms}, []bool{false}},
		{semaphoreContested, []int{8}, []int{1}, []time.Duration{ms}, []bool{true}},
		{semaphoreContested, []int{1, 8, 64}, []int{2}, []time.Duration{20 * ms}, []bool{false}},
		{permitContested, []int{1, 2, 8}, []int{1}, []time.Duration{5 * ms}, []bool{false}},
		{permitContested, []int{1, 8, 64}, []int{2}, []time.Duration{20 * ms}, []bool{false}},
	} {
		for _, permits := range x.permits {
			for _, each := range x.goroutines {
				for _, section := range x.sections {
					for _, noHandOff := range x.without {
						t.Run(fmt.Sprintf("%s of %d/%d/section=%v, no hand-off %v", x.of.name, permits, permits*each, section, noHandOff), func(t *testing.T) {
							listenerCosts(t, x.of, permits, permits*each, section, noHandOff)
						})
					}
				}
			}
		}
	}
}

func listenerCosts(t *testing.T, x contested, permits, goroutines int, section time.Duration, noHandOff bool) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		busy := func() time.Duration {
			ctx, cancel := context.WithTimeout(bg, 3*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			var mu sync.Mutex
			var busy time.Duration
			c := farClient(w, locktest.Near, redlatch.Config{NoHandOff: noHandOff})
			for range goroutines {
				wg.Go(func() {
					for acquire := x.by(c); ; {
						release, err := acquire(ctx)
						if err != nil {
							return
						}
						start := time.Now()
						time.Sleep(section)
						mu.Lock()
						busy += time.Since(start)
						mu.Unlock()
						w.OK(release())
					}
				})
			}
			wg.Wait()
			return busy
		}
		c := w.Client(redlatch.Config{})
		w.Semaphore(c, permits)
		w.OK(semaphore.NewExpirable(c, "desks", 0).SetPermits(bg, permits))
		alone := busy()
		rdb := redis.NewClient(w.Options(w.Dial))
		sub := rdb.Subscribe(bg, "redisson_lock__channel:{orders}", "redisson_rwlock:{orders}", "redisson_sc:{"+locktest.SemaphoreName+"}", "redisson_sc:{desks}")
		w.OK(sub.Ping(bg))
		go func() {
			for range sub.Channel() { // it takes nothing
			}
		}()
		beside := busy()
		w.OK(sub.Close())
		w.OK(rdb.Close())
		t.Logf("busy for %v, beside one who listens for %v", alone, beside)
		if beside < alone*88/100 { // a tenth, and the first pauses
			t.Error("that costs more than a tenth")
		}
	})
}

// Also where there are many permits, of which one process has all.
func TestAWaiterHasAPermitInTime(t *testing.T) {
	locktest.Long(t)
	const section, rtt = 20 * time.Millisecond, 60 * time.Millisecond
	for _, x := range []contested{semaphoreContested, permitContested} {
		for _, permits := range []int{2, 8, 64} {
			for _, noHandOff := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s of %d, no hand-off %v", x.name, permits, noHandOff), func(t *testing.T) {
					locktest.InFakeTime(t, func(w *locktest.World) {
						c := farClient(w, locktest.Near, redlatch.Config{NoHandOff: noHandOff})
						w.Semaphore(c, permits)
						w.OK(semaphore.NewExpirable(c, "desks", 0).SetPermits(bg, permits))
						ctx, cancel := context.WithTimeout(bg, 3*time.Second)
						defer cancel()
						var wg sync.WaitGroup
						var beside, waiter wait
						for range 2 * permits {
							wg.Go(func() { loop(w, ctx, c, x, section, 0, beside.note) })
						}
						time.Sleep(10 * time.Millisecond)
						far := farClient(w, rtt, redlatch.Config{})
						for range 3 {
							wg.Go(func() { loop(w, ctx, far, x, section, 200*time.Millisecond, waiter.note) })
						}
						wg.Wait()
						most := 2*(section+80*time.Millisecond) + time.Second
						t.Logf("the loops had one %d times, the waiters %d times, after %v at worst, of %v", beside.times, waiter.times, waiter.worst, most)
						if waiter.worst > most || waiter.times < 6 {
							t.Error("they waited too long")
						}
					})
				})
			}
		}
	}
}
