package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/semaphore"
)

// A load is a row of the comparison.
type load struct {
	name       string
	adapter    func(addr string) (client, error)
	goroutines int
	prepare    func(c *redlatch.Client, g int) (operation, error) // for goroutine g
}

var loads = makeLoads()

func makeLoads() []load {
	var all []load
	for _, n := range []int{1, 4, 16, 64, 128} {
		all = append(all,
			load{fmt.Sprintf("alone-rueidis-%d", n), onRueidis, n, ownLock},
			load{fmt.Sprintf("alone-goredis-%d", n), onGoredis, n, ownLock},
			load{fmt.Sprintf("alone-goredis-no-cancel-%d", n), onGoredis, n, endless(ownLock)})
	}
	return append(all,
		load{"contended-16", onRueidis, 16, pairs(func(c *redlatch.Client) *redlatch.Lock { return c.Lock("load") })},
		load{"fair-16", onRueidis, 16, pairs(func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("load") })},
		load{"read-16", onRueidis, 16, pairs(func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("load").Read() })},
		load{"write-16", onRueidis, 16, pairs(func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("load").Write() })},
		load{"semaphore-4x16", onRueidis, 16, counted},
		load{"permits-4x16", onRueidis, 16, permits},
		load{"rate-limiter-16", onRueidis, 16, rateLimiter},
		load{"latch-1000", onRueidis, 1, countDown})
}

// A client disconnects what it does not close by itself.
type client struct {
	*redlatch.Client
	disconnect func()
}

func (c client) close() {
	_ = c.Close()
	c.disconnect()
}

func onRueidis(addr string) (client, error) {
	driver, err := redlatchrueidis.New(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return client{}, err
	}
	c, err := redlatch.New(driver, redlatch.Config{})
	return client{c, func() {}}, err
}

func onGoredis(addr string) (client, error) {
	rdb := goredislib.NewClient(&goredislib.Options{Addr: addr})
	c, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{})
	return client{c, func() { _ = rdb.Close() }}, err
}

// pair acquires and releases.
func pair(l *redlatch.Lock) operation {
	return func(ctx context.Context) error {
		hold, err := l.Acquire(ctx)
		if err != nil {
			return err
		}
		return hold.Release(ctx)
	}
}

// pairs is for goroutines that share a lock.
func pairs(lock func(*redlatch.Client) *redlatch.Lock) func(*redlatch.Client, int) (operation, error) {
	return func(c *redlatch.Client, _ int) (operation, error) { return pair(lock(c)), nil }
}

// ownLock is a lock for each goroutine.
func ownLock(c *redlatch.Client, g int) (operation, error) {
	return pair(c.Lock(fmt.Sprint("load:", g))), nil
}

// endless has callers pass a context that cannot be cancelled.
func endless(prepare func(*redlatch.Client, int) (operation, error)) func(*redlatch.Client, int) (operation, error) {
	return func(c *redlatch.Client, g int) (operation, error) {
		once, err := prepare(c, g)
		return func(context.Context) error { return once(context.Background()) }, err
	}
}

func counted(c *redlatch.Client, _ int) (operation, error) {
	s := semaphore.New(c, "load", 0)
	_, err := s.TrySetPermits(context.Background(), 4)
	return func(ctx context.Context) error {
		if err := s.Acquire(ctx, 1); err != nil {
			return err
		}
		return s.Release(ctx, 1)
	}, err
}

func permits(c *redlatch.Client, _ int) (operation, error) {
	s := semaphore.NewExpirable(c, "load", 0)
	_, err := s.TrySetPermits(context.Background(), 4)
	return func(ctx context.Context) error {
		permit, err := s.Acquire(ctx, 1)
		if err != nil {
			return err
		}
		return permit.Release(ctx)
	}, err
}

// rateLimiter has more permits than can be taken, and forgets them soon.
func rateLimiter(c *redlatch.Client, _ int) (operation, error) {
	l := ratelimit.New(c, "load", ratelimit.Rate{})
	_, err := l.TrySetRate(context.Background(), ratelimit.Rate{Permits: 1e6, Interval: 10 * time.Millisecond})
	return func(ctx context.Context) error { return l.Acquire(ctx, 1) }, err
}

// latch lets 1,000 goroutines go. That they have come to rest before the
// count-down cannot be seen from outside: it gets a pause, which uses no CPU time.
func countDown(c *redlatch.Client, _ int) (operation, error) {
	l := latch.New(c, "load")
	const crowd = 1000
	return func(ctx context.Context) error {
		if _, err := l.TrySetCount(ctx, 1); err != nil {
			return err
		}
		errs := make(chan error, crowd+1)
		var called atomic.Int64
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				called.Add(1)
				errs <- l.Wait(ctx)
			})
		}
		for called.Load() < crowd {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		errs <- l.CountDown(ctx)
		all.Wait()
		close(errs)
		var failed error
		for err := range errs {
			failed = errors.Join(failed, err)
		}
		return failed
	}, nil
}
