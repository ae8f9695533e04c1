package redlatchtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/leaktest"
)

func newScript(t *testing.T, source string) *driver.Script {
	return driver.NewScript("test", source)
}

func TestServerInBubble(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		r := NewServer(t).Redis()
		ctx := context.Background()
		take := newScript(t, `redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) redis.call('publish', KEYS[2], 'taken') return 1`)
		left := newScript(t, `return redis.call('pttl', KEYS[1])`)

		var notices []driver.Notice
		stop := r.Subscribe("news", false, func(n driver.Notice) { notices = append(notices, n) })
		synctest.Wait()
		if got, err := r.Run(ctx, take, []string{"k", "news"}, []string{"me", "3600000"}); err != nil || got.Int != 1 {
			t.Fatal(got, err)
		}
		synctest.Wait()
		if len(notices) != 2 || !notices[0].Subscribed || notices[1].Payload != "taken" {
			t.Fatalf("heard %+v", notices)
		}
		stop()

		time.Sleep(59 * time.Minute)
		got, err := r.Run(ctx, left, []string{"k"}, nil)
		if left := time.Duration(got.Int) * time.Millisecond; err != nil || left < 59*time.Second || left > time.Minute {
			t.Errorf("after 59 minutes: %v, %v; want about a minute left", left, err)
		}
		time.Sleep(time.Minute)
		if got, err := r.Run(ctx, left, []string{"k"}, nil); err != nil || got.Int != -2 {
			t.Errorf("after the lease: %v, %v; want -2", got, err)
		}
	})
}
