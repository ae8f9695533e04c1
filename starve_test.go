package redlatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
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
}

var (
	plainContested = contested{"lock", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.Lock("orders"))
	}}
	groupContested = contested{"group", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.GroupLock("orders", "1", "2"))
	}}
	writeContested = contested{"write", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.ReadWriteLock("orders").Write())
	}}
	readContested = contested{"read", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		return locked(c.ReadWriteLock("orders").Read())
	}}
	semaphoreContested = contested{"semaphore", func(c *redlatch.Client) func(context.Context) (func() error, error) {
		s := c.Semaphore(semaphoreName)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return s.Release(bg, 1) }, s.Acquire(ctx, 1)
		}
	}}
)

// far returns a client that is so far from the server: half of it on the way
// there, half on the way back, and messages take as long.
func (w *world) far(rtt time.Duration, cfg redlatch.Config) *redlatch.Client {
	return w.tapped(cfg, &tap{late: rtt / 2, hook: func(_ string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
		time.Sleep(rtt / 2)
		defer time.Sleep(rtt / 2)
		return next()
	}})
}

// loop has x over and over, until ctx ends.
func (w *world) loop(ctx context.Context, c *redlatch.Client, x contested, section, pause time.Duration, waited func(time.Duration)) {
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

// A loop of one goroutine had the lock again before a waiter a little farther away
// could ask for it, for as long as it was watched.
func TestALoopLeavesOthersTheirTurn(t *testing.T) {
	const section = 20 * time.Millisecond
	for _, pair := range pairs {
		for name, handOff := range map[string]redlatch.HandOff{"local": redlatch.HandOffLocal, "none": redlatch.HandOffNone} {
			t.Run(fmt.Sprintf("%s beside %s, hand-off %s", pair.waiter.name, pair.loop.name, name), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					w.semaphore(w.client(redlatch.Config{}), 1)
					ctx, cancel := context.WithTimeout(bg, 10*time.Second)
					defer cancel()
					var wg sync.WaitGroup
					var beside, waiter wait
					wg.Go(func() {
						w.loop(ctx, w.far(200*time.Microsecond, redlatch.Config{HandOff: handOff}), pair.loop, section, 0, beside.note)
					})
					time.Sleep(section / 2)
					wg.Go(func() {
						w.loop(ctx, w.far(1200*time.Microsecond, redlatch.Config{HandOff: handOff}), pair.waiter, section, 50*time.Millisecond, waiter.note)
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

// redissonTakes waits for a lock as Redisson does: it tries on a message, or when the
// TTL is over.
func (w *world) redissonTakes(ctx context.Context, name string, rtt time.Duration, section time.Duration, waited func(time.Duration)) {
	rdb := redis.NewClient(w.options(w.dial))
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
			inFakeTime(t, func(w *world) {
				ctx, cancel := context.WithTimeout(bg, 10*time.Second)
				defer cancel()
				var wg sync.WaitGroup
				var beside, waiter wait
				c := w.far(200*time.Microsecond, redlatch.Config{})
				for range goroutines {
					wg.Go(func() { w.loop(ctx, c, plainContested, section, 0, beside.note) })
				}
				time.Sleep(section / 2)
				wg.Go(func() { w.redissonTakes(ctx, "orders", 2*time.Millisecond, section, waiter.note) })
				wg.Wait()
				t.Logf("the loop had it %d times, the waiter %d times, after %v at worst", beside.times, waiter.times, waiter.worst)
				if most := 2*(section+80*time.Millisecond) + time.Second; waiter.worst > most || waiter.times < 10 {
					t.Errorf("it had its turn %d times, after %v at worst", waiter.times, waiter.worst)
				}
			})
		})
	}
}
