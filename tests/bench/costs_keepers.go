package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// A keeper keeps locks until they are given back: it renews them.
type keeper struct {
	name, settings string
	period         time.Duration // between two renewals of a hold
	open           func(j costJob) (keeping, error)
}

// A keeping is an open client of a keeper.
type keeping interface {
	take(ctx context.Context, name string) (kept, error)
	close() error
}

// A kept lock is held until end. Of a lock that others may have by now it says
// that it is lost.
type kept interface {
	lost() bool
	end() error
}

// window is for how long a keeper's renewals are looked at: all that it holds is
// renewed as often in it.
func (k keeper) window() time.Duration {
	const least = 6 * time.Second
	return (least + k.period - 1).Truncate(k.period)
}

var keepers = []keeper{
	{redlatchRueidis.name, "as above", 10 * time.Second, openRedlatchKeeping},
	{"rueidislock, 1 key", "as above", 2500 * time.Millisecond, openRueidislockKeeping},
	{"redsync, extending", "redsync as above, with a goroutine for each hold that extends it after each third of the 8 s", redsyncExpiry / 3, openRedsyncKeeping},
}

func keeperNamed(name string) (keeper, bool) {
	for _, k := range keepers {
		if k.name == name {
			return k, true
		}
	}
	return keeper{}, false
}

type redlatchKeeping struct {
	*redlatch.Client
	driver *redlatchrueidis.Driver
}

// hugeWatchdog is that of a million holds, whose renewals would else take what the
// machine needs to acquire them.
const hugeWatchdog = 5 * time.Minute

func openRedlatchKeeping(j costJob) (keeping, error) {
	d, err := redlatchrueidis.New(rueidisOptions(job{Addr: j.Addr}))
	if err != nil {
		return nil, err
	}
	config := redlatch.Config{SlowWait: -1} // it is no deadlock
	if j.N == hugeCosts {
		config.WatchdogTimeout = hugeWatchdog
	}
	c, err := redlatch.New(d, config)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return &redlatchKeeping{c, d}, nil
}

func (k *redlatchKeeping) take(ctx context.Context, name string) (kept, error) {
	return redlatchKept(k.Lock(name).Acquire(ctx))
}

// read takes the side of a read-write lock that many may have.
func (k *redlatchKeeping) read(ctx context.Context, name string) (kept, error) {
	return redlatchKept(k.ReadWriteLock(name).Read().Acquire(ctx))
}

func (k *redlatchKeeping) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(k.Shutdown(ctx), k.driver.Close())
}

func redlatchKept(h *redlatch.Hold, err error) (kept, error) {
	if err != nil {
		return nil, err
	}
	return redlatchHold{h}, nil
}

// A redlatchHold is nothing but a pointer, so it costs an interface nothing.
type redlatchHold struct{ *redlatch.Hold }

func (h redlatchHold) lost() bool { return h.Err() != nil }
func (h redlatchHold) end() error { return h.Release(context.Background()) }

type rueidislockKeeping struct{ rueidislock.Locker }

func openRueidislockKeeping(j costJob) (keeping, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		KeyMajority: 1, ClientOption: rueidis.ClientOption{InitAddress: []string{j.Addr}},
	})
	if err != nil {
		return nil, err
	}
	return rueidislockKeeping{l}, nil
}

func (k rueidislockKeeping) take(ctx context.Context, name string) (kept, error) {
	held, cancel, err := k.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return &rueidislockHold{held, cancel}, nil
}

func (k rueidislockKeeping) close() error {
	k.Close()
	return nil
}

type rueidislockHold struct {
	context.Context //nolint:containedctx // it is what the library gives to a holder

	cancel context.CancelFunc
}

func (h *rueidislockHold) lost() bool { return h.Err() != nil }
func (h *rueidislockHold) end() error { h.cancel(); return nil }

// redsyncExpiry is the library's default.
const redsyncExpiry = 8 * time.Second

type redsyncKeeping struct {
	rdb *redis.Client
	rs  *redsync.Redsync
}

func openRedsyncKeeping(j costJob) (keeping, error) {
	rdb := redis.NewClient(&redis.Options{Addr: j.Addr})
	return &redsyncKeeping{rdb, redsync.New(redsyncgoredis.NewPool(rdb))}, nil
}

func (k *redsyncKeeping) take(ctx context.Context, name string) (kept, error) {
	h := &redsyncHold{m: k.rs.NewMutex(name, redsync.WithTries(1<<30)), over: make(chan struct{})}
	if err := h.m.LockContext(ctx); err != nil {
		return nil, err
	}
	go h.extend()
	return h, nil
}

func (k *redsyncKeeping) close() error { return k.rdb.Close() }

type redsyncHold struct {
	m    *redsync.Mutex
	over chan struct{}
	gone atomic.Bool
}

// extend is what redsync leaves to its users.
func (h *redsyncHold) extend() {
	tick := time.NewTicker(redsyncExpiry / 3)
	defer tick.Stop()
	for {
		select {
		case <-h.over:
			return
		case <-tick.C:
		}
		if ok, err := h.m.Extend(); !ok || err != nil {
			h.gone.Store(true)
			return
		}
	}
}

func (h *redsyncHold) lost() bool { return h.gone.Load() || time.Now().After(h.m.Until()) }

func (h *redsyncHold) end() error {
	close(h.over)
	if ok, err := h.m.Unlock(); err != nil || !ok {
		return fmt.Errorf("not unlocked: %w", errors.Join(err))
	}
	return nil
}
