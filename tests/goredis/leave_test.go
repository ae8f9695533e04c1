package goredis_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

// dialling is an adaptertest.Bubble.
func dialling(t *testing.T, f func(t *testing.T, open adaptertest.Dial)) {
	t.Helper()
	forgetTimers()
	defer forgetTimers()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // as in onClient
		f(t, func(t *testing.T, dial func(context.Context) (net.Conn, error)) driver.Redis {
			rdb := redis.NewClient(&redis.Options{
				Addr:   "127.0.0.1:1",
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			})
			t.Cleanup(func() { _ = rdb.Close() })
			return redlatchgoredis.Use(rdb)
		})
	})
}

func TestLeaversAreInTime(t *testing.T) { adaptertest.LeaversAreInTime(t, dialling) }

func TestLeaversCostNothing(t *testing.T) { adaptertest.LeaversCostNothing(t, dialling) }

func TestAFarMemberCostsNothing(t *testing.T) { adaptertest.AFarMemberCostsNothing(t, dialling) }

// late delays all requests.
func late(by time.Duration) func(faultnet.Request) faultnet.Action {
	return func(faultnet.Request) faultnet.Action { return faultnet.Delay(by) }
}

// A hook of the program may keep what it sees: commands, which it prints later,
// and contexts, for whose end it waits.
func TestHooksMayKeepCommandsAndContexts(t *testing.T) {
	k := keeps{seen: make(chan redis.Cmder, 100), open: new(atomic.Int64)}
	onClient(t, redis.Options{}, func(c *redis.Client) { c.AddHook(k) }, func(t *testing.T, _ *faultnet.Proxy, r driver.Redis) {
		var prints sync.WaitGroup
		prints.Go(func() {
			for range 10 {
				_ = fmt.Sprint((<-k.seen).Args()...)
			}
		})
		for range 10 {
			if _, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil {
				t.Error(err)
			}
		}
		prints.Wait()
		time.Sleep(r.Traits().Timeout)
		synctest.Wait()
		if n := k.open.Load(); n > 0 {
			t.Errorf("%d contexts have not ended", n)
		}
	})
}

type keeps struct {
	passes

	seen chan redis.Cmder
	open *atomic.Int64
}

func (k keeps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		k.open.Add(1)
		context.AfterFunc(ctx, func() { k.open.Add(-1) })
		err := next(ctx, cmd)
		k.seen <- cmd
		return err
	}
}
