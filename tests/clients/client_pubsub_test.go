package clients

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What a server has that knows sharded Pub/Sub or not; the embedded one does not.
func probed(knows bool) *locktest.Tap {
	return &locktest.Tap{Cluster: true, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if s == "pubsub.probe" && knows {
			return driver.Reply{Kind: driver.ReplyInt, Int: 1}, nil
		}
		return next()
	}}
}

func TestAClientTellsOthersAsRedissonWould(t *testing.T) {
	for name, tt := range map[string]struct {
		tap   *locktest.Tap
		mode  redlatch.PubSub
		asks  bool
		wants []bool // sharded
	}{
		"one server":                  {tap: &locktest.Tap{}, wants: []bool{false}},
		"a cluster that knows it":     {tap: probed(true), asks: true, wants: []bool{true}},
		"a cluster that does not":     {tap: probed(false), asks: true, wants: []bool{false}},
		"a cluster, classic":          {tap: probed(true), mode: redlatch.PubSubClassic, wants: []bool{false}},
		"a cluster, sharded":          {tap: probed(false), mode: redlatch.PubSubSharded, wants: []bool{true}},
		"a cluster of a mixed fleet":  {tap: probed(true), mode: redlatch.PubSubBoth, wants: []bool{true, false}},
		"one server of a mixed fleet": {tap: &locktest.Tap{}, mode: redlatch.PubSubBoth, wants: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var mu sync.Mutex
				var asked int
				var by []bool
				d, inner := tt.tap, tt.tap.Hook
				d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					mu.Lock()
					defer mu.Unlock()
					if s == "pubsub.probe" {
						asked++
					}
					if inner != nil {
						return inner(s, args, next)
					}
					return next()
				}
				d.Subscribed = func(channel string, sharded bool) {
					if strings.HasPrefix(channel, "redisson") {
						mu.Lock()
						defer mu.Unlock()
						by = append(by, sharded)
					}
				}
				c, other := w.Tapped(redlatch.Config{Redisson: redlatch.Redisson{PubSub: tt.mode}}, d), w.Client(redlatch.Config{})
				h := w.Acquire(bg, other.Lock("orders"))
				waiting := locktest.Later(func() error {
					_, err := c.Lock("orders").TryAcquire(bg, 10*time.Second)
					return err
				})
				w.WantErr(<-waiting, redlatch.ErrBusy)
				mu.Lock()
				defer mu.Unlock()
				if want := map[bool]int{true: 1}[tt.asks]; asked != want {
					t.Errorf("asked %d times, want %d", asked, want)
				}
				if len(by) != len(tt.wants) || by[0] != tt.wants[0] {
					t.Errorf("subscribed to sharded channels: %v, want %v", by, tt.wants)
				}
				w.Release(h)
			})
		})
	}
}

// What the server knows decides once; until it can be asked nothing is taken.
func TestAnOutageBeforeTheKindOfPubSubIsKnown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		down.Store(true)
		d := &locktest.Tap{Cluster: true, Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				time.Sleep(10 * time.Millisecond)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{OutageTimeout: 3 * time.Second}, d)
		_, err := c.Lock("orders").Acquire(bg)
		w.WantErr(err, redlatch.ErrUnavailable)
		_, err = c.Lock("orders").TryAcquire(bg, time.Second)
		w.WantErr(err, redlatch.ErrUnavailable)
		_, err = c.Lock("orders").TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrUnavailable)
		down.Store(false)
		w.Release(w.Acquire(bg, c.Lock("orders")))
	})
}

func TestPubSubThatDoesNotExistIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		if _, err := redlatch.New(w.Driver(), redlatch.Config{Redisson: redlatch.Redisson{PubSub: 9}}); err == nil || !strings.Contains(err.Error(), "PubSubAuto") {
			t.Error(err)
		}
	})
}
