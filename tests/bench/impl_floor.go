package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

var floorRueidis = implementation{
	name:     "floor on rueidis",
	settings: "redlatch's own take and release scripts (lock.take.lua, lock.release.lua, of a fair lock fairlock.take.lua, fairlock.release.lua) by EVALSHA, keys and arguments prebuilt, nothing else; same client and options as redlatch on rueidis",
	kind:     floor,
	locks:    []lockType{plainLock, fairLock},
	widths:   allWidths,
	skips:    uncontendedOrAlone,
	open: func(j job) (locker, error) {
		client, err := rueidis.NewClient(rueidisOptions(j))
		if err != nil {
			return nil, err
		}
		l := &floorLocker{stop: client.Close}
		err = l.prepare(j, func(ctx context.Context, source string) error {
			return client.Do(ctx, client.B().ScriptLoad().Script(source).Build()).Error()
		}, func(sha string, keys []string, args ...string) func(context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) {
				return client.Do(ctx, client.B().Evalsha().Sha1(sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).AsInt64()
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
	widths:   allWidths,
	skips:    contendedIsSkipped,
	open: func(j job) (locker, error) {
		client := redis.NewClient(goredisOptions(j))
		l := &floorLocker{stop: func() { _ = client.Close() }}
		err := l.prepare(j, func(ctx context.Context, source string) error {
			return client.ScriptLoad(ctx, source).Err()
		}, func(sha string, keys []string, args ...string) func(context.Context) (int64, error) {
			boxed := make([]any, len(args))
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

var floorGoredisEndless = endless(floorGoredis)

// A floorLocker runs the two scripts and does nothing else: no context of a
// hold, no trust window, no gate, no watchdog.
type floorLocker struct {
	take, drop []func(context.Context) (int64, error)
	stop       func()
}

func (l *floorLocker) prepare(
	j job,
	load func(ctx context.Context, source string) error,
	command func(sha string, keys []string, args ...string) func(context.Context) (int64, error),
) error {
	files := os.DirFS(j.ScriptsDir)
	name := "lock"
	if j.Scenario.Lock == fairLock {
		name = "fairlock"
	}
	take, drop := script.Load(files, name+".take"), script.Load(files, name+".release")
	for _, s := range []*script.Script{take, drop} {
		if err := load(context.Background(), s.Source()); err != nil {
			return err
		}
	}
	const allowance = "300000"
	for g, key := range j.keys() {
		client := "2d1b7d0a-52c8-8c1f-9b5e-000000000000"
		owner, channel := fmt.Sprintf("%s:%d", client, g), wire.Prefix(wire.LockChannel, key)
		keys, args, released := []string{key}, []string{"30000", owner}, []string{owner, channel, "0"} // it subscribes to nothing
		if j.Scenario.Lock == fairLock {
			keys = append(keys, wire.Prefix(wire.LockQueue, key), wire.Prefix(wire.LockTimeout, key), wire.Prefix(wire.LockAlive, key))
			args, released = append(args, channel, client, "1", allowance), []string{channel, allowance, owner}
		}
		l.take = append(l.take, command(take.SHA(), keys, args...))
		l.drop = append(l.drop, command(drop.SHA(), keys, released...))
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
