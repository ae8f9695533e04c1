package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var redislockDefault = implementation{
	name:     "redislock",
	settings: "redislock " + version("github.com/bsm/redislock") + " on " + goredisVersion() + " with its defaults. It waits only if it is told how, so it has LinearBackoff(100 ms). TTL 30 s",
	kind:     peer,
	widths:   allWidths,
	open:     openRedislock(100 * time.Millisecond),
}

var redislockFast = implementation{
	name:     "redislock, 2 ms",
	settings: "the same with LinearBackoff(2 ms): quicker hand-offs, more polling",
	kind:     peer,
	open:     openRedislock(2 * time.Millisecond),
	skips:    contendedOnly,
}

func openRedislock(backoff time.Duration) func(job) (locker, error) {
	return func(j job) (locker, error) {
		rdb := redis.NewClient(&redis.Options{Addr: j.Addr})
		return &redislockLocker{
			rdb: rdb, client: redislock.New(rdb), backoff: backoff, keys: j.keys(),
			held: make([]padded[*redislock.Lock], j.Scenario.Goroutines),
		}, nil
	}
}

type redislockLocker struct {
	rdb     *redis.Client
	client  *redislock.Client
	backoff time.Duration
	keys    []string
	held    []padded[*redislock.Lock]
}

func (l *redislockLocker) acquire(ctx context.Context, g int) (err error) {
	// A strategy may have state, so each call gets its own, as its docs do it.
	l.held[g].value, err = l.client.Obtain(ctx, l.keys[g], 30*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(l.backoff),
	})
	return err
}

func (l *redislockLocker) release(ctx context.Context, g int) error {
	return l.held[g].value.Release(ctx)
}

func (l *redislockLocker) close() { _ = l.rdb.Close() }
