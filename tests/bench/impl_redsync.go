package main

import (
	"context"
	"fmt"

	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var redsyncDefault = implementation{
	name:     "redsync",
	settings: "redsync " + version("github.com/go-redsync/redsync/v4") + " on " + goredisVersion() + ", both with their defaults (8 s expiry, retries after 50 to 250 ms), but without the limit of 32 tries, so that no call gives up",
	kind:     peer,
	open: func(j job) (locker, error) {
		l := &redsyncLocker{rdb: redis.NewClient(&redis.Options{Addr: j.Addr})}
		rs := redsync.New(redsyncgoredis.NewPool(l.rdb))
		for _, key := range j.keys() {
			l.locks = append(l.locks, rs.NewMutex(key, redsync.WithTries(1<<30)))
		}
		return l, nil
	},
}

type redsyncLocker struct {
	rdb   *redis.Client
	locks []*redsync.Mutex
}

func (l *redsyncLocker) acquire(ctx context.Context, g int) error {
	return l.locks[g].LockContext(ctx)
}

func (l *redsyncLocker) release(ctx context.Context, g int) error {
	ok, err := l.locks[g].UnlockContext(ctx)
	if err == nil && !ok {
		err = fmt.Errorf("redsync: not unlocked")
	}
	return err
}

func (l *redsyncLocker) close() { _ = l.rdb.Close() }
