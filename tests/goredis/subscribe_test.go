package goredis_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// listen subscribes, and returns what tells of each confirmation.
func listen(t *testing.T, r driver.Redis, channel string, sharded bool) (confirmed <-chan time.Time) {
	t.Helper()
	all := make(chan time.Time, 100)
	t.Cleanup(r.Subscribe(channel, sharded, func(n driver.Notice) {
		if n.Subscribed {
			all <- time.Now()
		}
	}))
	return all
}

// A server that refuses a PING is alive. It was taken for a broken one, every
// three seconds.
func TestARefusedPingEndsNoSubscription(t *testing.T) {
	var pings atomic.Int64
	pingless := func(b []byte) []byte {
		if bytes.Equal(b, []byte("*1\r\n$4\r\nping\r\n")) {
			pings.Add(1)
			return refused
		}
		return b
	}
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, _ driver.Redis) {
		rdb := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1",
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				c, err := p.Dial(ctx)
				return rewriting{c, pingless}, err
			},
		})
		defer rdb.Close()
		r := redlatchgoredis.Use(rdb)
		confirmed := listen(t, r, "channel", false)
		<-confirmed
		time.Sleep(time.Hour)
		if len(confirmed) != 0 {
			t.Errorf("subscribed %d times more", len(confirmed))
		}
		if n := pings.Load(); n < 100 {
			t.Errorf("only %d pings were refused", n)
		}
	})
}

// refused is what a server answers with an error, in its place among the answers.
var refused = []byte("*1\r\n$9\r\nsubscribe\r\n")

// A rewriting connection changes what is sent.
type rewriting struct {
	net.Conn
	change func([]byte) []byte
}

func (c rewriting) Write(b []byte) (int, error) {
	if _, err := c.Conn.Write(c.change(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// go-redis connects anew before it says that a connection was lost. As long as
// that lasted, nobody renewed what may have been lost with the server.
func TestABreakIsToldBeforeAnythingConnectsAnew(t *testing.T) {
	var hang atomic.Bool
	var dial func(ctx context.Context) (net.Conn, error)
	opt := redis.Options{
		DialerRetries: 1, DialTimeout: 5 * time.Second,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if hang.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx)
		},
	}
	inBubble(t, opt, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		dial = p.Dial
		confirmed := listen(t, r, "channel", false)
		<-confirmed
		broke := make(chan time.Time, 100)
		defer r.OnBreak(func(string) { broke <- time.Now() })()
		start := time.Now()
		hang.Store(true)
		p.BreakAll()
		if took := (<-broke).Sub(start); took != 0 {
			t.Errorf("the break was told after %v", took)
		}
		time.Sleep(time.Minute)
		hang.Store(false)
		<-confirmed
	})
}

// twoNodes are a cluster of which one node has gone: its dialer hangs.
func twoNodes(t *testing.T, f func(t *testing.T, r driver.Redis, gone func(bool), dials *atomic.Int64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // go-redis goes on connecting for a while
		mini := miniredis.NewMiniRedis()
		defer mini.Close()
		p := faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })
		defer p.Close()
		var isGone atomic.Bool
		isGone.Store(true)
		var dials atomic.Int64
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{
					{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:2"}}},
				}, nil
			},
			DialTimeout: 5 * time.Second,
			Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
				if strings.HasSuffix(addr, ":1") && isGone.Load() {
					dials.Add(1)
					<-ctx.Done()
					return nil, ctx.Err()
				}
				c, err := p.Dial(ctx)
				return rewriting{c, func(b []byte) []byte { // miniredis has no sharded Pub/Sub
					return bytes.ReplaceAll(b, []byte("$10\r\nssubscribe"), []byte("$9\r\nsubscribe"))
				}}, err
			},
		})
		defer rdb.Close()
		f(t, redlatchgoredis.Use(rdb), isGone.Store, &dials)
	})
}

// A node that was gone was chosen again and again.
func TestAChannelDoesNotGoBackToANodeThatIsGone(t *testing.T) {
	for range 10 { // whichever node comes first
		twoNodes(t, func(t *testing.T, r driver.Redis, _ func(bool), dials *atomic.Int64) {
			start := time.Now()
			confirmed := listen(t, r, "channel", false)
			if took := (<-confirmed).Sub(start); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
			if n := dials.Load(); n > 1 {
				t.Errorf("%d attempts to connect to the node that is gone", n)
			}
		})
	}
}

// A channel whose node had gone kept all others waiting.
func TestANodeThatIsGoneDelaysNoChannelOfAnother(t *testing.T) {
	twoNodes(t, func(t *testing.T, r driver.Redis, gone func(bool), _ *atomic.Int64) {
		start := time.Now()
		first := listen(t, r, "{b}", true) // slot 3300, whose node is gone
		for _, channel := range []string{"{a}1", "{a}2"} {
			if took := (<-listen(t, r, channel, true)).Sub(start); took != 0 {
				t.Errorf("%s took %v", channel, took)
			}
		}
		time.Sleep(time.Minute)
		gone(false)
		start = time.Now()
		if took := (<-first).Sub(start); took > 4*time.Second { // the attempt that hangs, and a pause
			t.Errorf("back after %v", took)
		}
	})
}
