package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redlatch/redlatch/internal/script"
)

var floorRueidis = implementation{
	name:     "floor on rueidis",
	settings: "redlatch's own take and release scripts (lock.take.lua, lock.release.lua) by EVALSHA, keys and arguments prebuilt, nothing else; same client and options as redlatch on rueidis",
	kind:     floor,
	skips:    uncontendedOnly,
	open: func(j job) (locker, error) {
		client, err := rueidis.NewClient(rueidisOptions(j))
		if err != nil {
			return nil, err
		}
		l := &floorLocker{stop: client.Close}
		err = l.prepare(j, func(ctx context.Context, source string) error {
			return client.Do(ctx, client.B().ScriptLoad().Script(source).Build()).Error()
		}, func(sha, key string, args ...string) func(context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) {
				return client.Do(ctx, client.B().Evalsha().Sha1(sha).Numkeys(1).Key(key).Arg(args...).Build()).AsInt64()
			}
		})
		return l, err
	},
}

var floorEndless = endless(floorRueidis)

var floorGoredis = implementation{
	name:     "floor on go-redis",
	settings: "the same on go-redis, with the options of redlatch on go-redis",
	kind:     floor,
	skips:    uncontendedOnly,
	open: func(j job) (locker, error) {
		client := redis.NewClient(goredisOptions(j))
		l := &floorLocker{stop: func() { _ = client.Close() }}
		err := l.prepare(j, func(ctx context.Context, source string) error {
			return client.ScriptLoad(ctx, source).Err()
		}, func(sha, key string, args ...string) func(context.Context) (int64, error) {
			keys, boxed := []string{key}, make([]any, len(args))
			for i, a := range args {
				boxed[i] = a
			}
			return func(ctx context.Context) (int64, error) {
				return client.EvalSha(ctx, sha, keys, boxed...).Int64()
			}
		})
		return l, err
	},
}

// A floorLocker runs the two scripts and does nothing else: no context of a
// hold, no trust window, no gate, no watchdog.
type floorLocker struct {
	take, drop []func(context.Context) (int64, error)
	stop       func()
}

func (l *floorLocker) prepare(
	j job,
	load func(ctx context.Context, source string) error,
	command func(sha, key string, args ...string) func(context.Context) (int64, error),
) error {
	files := os.DirFS(j.ScriptsDir)
	take, drop := script.Load(files, "lock.take"), script.Load(files, "lock.release")
	for _, s := range []*script.Script{take, drop} {
		if err := load(context.Background(), s.Source()); err != nil {
			return err
		}
	}
	for g, key := range j.keys() {
		owner := fmt.Sprintf("2d1b7d0a-52c8-8c1f-9b5e-000000000000:%d", g)
		l.take = append(l.take, command(take.SHA(), key, "30000", owner))
		l.drop = append(l.drop, command(drop.SHA(), key, owner, "redisson_lock__channel:{"+key+"}"))
	}
	return nil
}

func (l *floorLocker) acquire(ctx context.Context, g int) error { return expectOne(l.take[g](ctx)) }
func (l *floorLocker) release(ctx context.Context, g int) error { return expectOne(l.drop[g](ctx)) }
func (l *floorLocker) close()                                   { l.stop() }

func expectOne(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("script answered %d", n)
	}
	return err
}
