// Command peer is a process of a fleet: workers of every type that excludes or
// limits, who share names with all other processes. The gate of upgrades builds it
// with the library as it is, and as it was, so it uses only the public interface
// that both have. If the older tree cannot build it, the gate builds there the
// peer of that tree. Then two peers run side by side, and what is counted in a new
// way needs a new name.
//
//	peer ADDR
//
// It prints "ready" when each of its workers has had its turn, works on until its
// standard input ends, and lets go of all. A worker that has entered counts on the
// server who is inside. If that is more than may be, the process says so and
// fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/semaphore"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer ADDR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// A worker enters again and again. There is room for as much as may be inside: a
// reader weighs 1, and a writer all of it.
type worker struct {
	kind, resource string
	room, weight   int64
	stay           time.Duration // how long it is inside
	do             func(ctx context.Context, f func(context.Context) error) error
}

const (
	moment = 2 * time.Millisecond // so that others wait
	lease  = 3 * time.Second      // after which a lock is free that is not renewed
)

// workers are those of a client, and of one that is quick to notice a dead
// connection, as short leases need it.
func workers(c, quick *redlatch.Client) []worker {
	rw := c.ReadWriteLock("upgrade:rw")
	permits := semaphore.New(c, "upgrade:semaphore", 2)
	leased := semaphore.NewExpirable(c, "upgrade:expirable", 2)
	return []worker{
		{"lock", "lock", 1, 1, moment, c.Lock("upgrade:lock").Do},
		{"fenced", "fenced", 1, 1, moment, c.Lock("upgrade:fenced", redlatch.Fenced()).Do},
		{"fair", "fair", 1, 1, moment, c.FairLock("upgrade:fair").Do},
		{"read", "rw", 100, 1, moment, rw.Read().Do},
		{"write", "rw", 100, 100, moment, rw.Write().Do},
		{"multi", "multi", 1, 1, moment, redlatch.MultiLock(c.Lock("upgrade:multi:1"), c.FairLock("upgrade:multi:2")).Do},
		{"spin", "spin", 1, 1, moment, redisson.SpinLock(c, "upgrade:spin", redisson.Exponential(time.Millisecond, 10*time.Millisecond)).Do},
		{"group of a and b", "group", 1, 1, moment, redisson.GroupLock(c, "upgrade:group", []string{"a", "b"}).Do},
		{"group of b and c", "group", 1, 1, moment, redisson.GroupLock(c, "upgrade:group", []string{"b", "c"}).Do},
		{renewed, "renewed", 1, 1, lease + lease/4, quick.Lock("upgrade:renewed", redlatch.Watchdog(lease)).Do},
		{"semaphore", "semaphore", 2, 1, moment, func(ctx context.Context, f func(context.Context) error) error { return permits.Do(ctx, 1, f) }},
		{"expirable", "expirable", 2, 1, moment, func(ctx context.Context, f func(context.Context) error) error { return leased.Do(ctx, 1, f) }},
		{"election", "election", 1, 1, moment, func(ctx context.Context, f func(context.Context) error) error {
			// A term that ends with an error ends the campaign, and so the next one needs no
			// pause.
			var did error
			err := election.New(c, "upgrade:election").Run(ctx, func(ctx context.Context, _ int64) error {
				did = f(ctx)
				return errTerm
			})
			if errors.Is(err, errTerm) {
				return did
			}
			return err
		}},
	}
}

// renewed is the worker that stays inside for longer than its lock is held without
// a renewal.
const renewed = "renewed"

var errTerm = errors.New("the term is over")

// No more than rate permits are given in any interval. What was given in one is
// used in the next by those workers alone that were on their way: far fewer than
// rate.
const (
	rate     = 20
	interval = 100 * time.Millisecond
)

// used counts a call in the interval that it is in by the server's clock, whatever
// a limiter believes.
const used = `
local now = redis.call('TIME')
local key = 'calls:' .. math.floor((now[1] * 1000 + now[2] / 1000) / ARGV[1])
local calls = redis.call('INCR', key)
redis.call('PEXPIRE', key, 60000)
return calls`

// A process is what the workers of one have in common.
type process struct {
	ctx  context.Context
	fail context.CancelCauseFunc
	stop chan struct{} // closed when they are to come to an end

	rdb *redis.Client

	mu    sync.Mutex
	idle  map[string]bool // who has not had a turn yet
	ready chan struct{}   // closed when there are none
}

// loop has a worker work until it is to stop, or any has failed.
func (p *process) loop(kind string, turn func() error) {
	for {
		select {
		case <-p.stop:
			return
		case <-p.ctx.Done():
			return
		default:
		}
		if err := turn(); err != nil {
			p.fail(fmt.Errorf("%s: %w", kind, err))
			return
		}
		p.mu.Lock()
		if p.idle[kind] {
			if delete(p.idle, kind); len(p.idle) == 0 {
				close(p.ready)
			}
		}
		p.mu.Unlock()
	}
}

// call is what a worker does that the limiter lets through.
func (p *process) call() error {
	n, err := p.rdb.Eval(p.ctx, used, nil, interval.Milliseconds()).Int64()
	if err == nil && n > 2*rate {
		return fmt.Errorf("%d calls within %v, and there are permits for %d", n, interval, rate)
	}
	return err
}

// inside is what a worker does while it holds what it has taken. It goes on when
// its context has ended: others may not be inside before the worker has left.
func (p *process) inside(ctx context.Context, w worker) error {
	ctx = context.WithoutCancel(ctx)
	n, err := p.rdb.IncrBy(ctx, "inside:"+w.resource, w.weight).Result()
	if err != nil {
		return err
	}
	time.Sleep(w.stay)
	if n > w.room {
		return fmt.Errorf("%d are inside, and there is room for %d", n, w.room)
	}
	return p.rdb.DecrBy(ctx, "inside:"+w.resource, w.weight).Err()
}

func run(addr string) (err error) {
	p := &process{rdb: redis.NewClient(&redis.Options{Addr: addr}), stop: make(chan struct{}), ready: make(chan struct{}), idle: map[string]bool{}}
	defer p.rdb.Close()
	c, err := redlatch.New(redlatchgoredis.Use(p.rdb), redlatch.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	hasty := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: lease / 6, ReadTimeout: lease / 6, WriteTimeout: lease / 6})
	defer hasty.Close()
	quick, err := redlatch.New(redlatchgoredis.Use(hasty), redlatch.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, quick.Close()) }()
	p.ctx, p.fail = context.WithCancelCause(context.Background())
	defer p.fail(nil)

	turns := map[string]func() error{}
	for _, w := range workers(c, quick) {
		turns[w.kind] = func() error { return w.do(p.ctx, func(ctx context.Context) error { return p.inside(ctx, w) }) }
	}
	once := turns[renewed]
	turns[renewed] = func() error {
		err := once()
		time.Sleep(lease / 10) // so that another process is the next
		return err
	}
	limiter := ratelimit.New(c, "upgrade:calls", ratelimit.Rate{Permits: rate, Interval: interval})
	turns["rate"] = func() error {
		if err := limiter.Acquire(p.ctx, 1); err != nil {
			return err
		}
		return p.call()
	}
	gate := latch.New(c, "upgrade:latch")
	turns["latch waiter"] = func() error { return gate.Wait(p.ctx) }
	meet := barrier.New(c, "upgrade:barrier", 2)
	meeting, leave := context.WithCancel(p.ctx)
	defer leave()
	turns["barrier"] = func() error {
		_, err := meet.Await(meeting)
		for errors.Is(err, barrier.ErrBroken) { // somebody has left
			_, err = meet.Await(meeting)
		}
		if meeting.Err() != nil {
			return nil //nolint:nilerr // it has left, and misses nobody
		}
		return err
	}
	for kind := range turns {
		p.idle[kind] = true
	}
	var all, openers sync.WaitGroup
	for kind, turn := range turns {
		crew := 2
		if kind == renewed {
			crew = 1 // the lock would go from one to the other, and other processes would wait for long
		}
		for range crew {
			all.Go(func() { p.loop(kind, turn) })
		}
	}
	// Who opens the latch goes on until nobody of this process waits for it.
	opening, done := context.WithCancel(p.ctx)
	openers.Go(func() {
		for opening.Err() == nil {
			_, err := gate.TrySetCount(p.ctx, 1)
			if err == nil {
				time.Sleep(moment)
				err = gate.CountDown(p.ctx)
			}
			if err != nil {
				p.fail(fmt.Errorf("latch: %w", err))
				return
			}
		}
	})

	input := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(input)
	}()
	select {
	case <-p.ready:
		fmt.Println("ready")
	case <-p.ctx.Done():
	}
	select {
	case <-input:
	case <-p.ctx.Done():
	}
	close(p.stop)
	leave()
	all.Wait()
	done()
	openers.Wait()
	return context.Cause(p.ctx)
}
