package goredis_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// A hearer is one subscription.
type hearer struct {
	channel string
	stop    func()

	mu    sync.Mutex
	heard []driver.Notice
}

func (x *hearer) hear(n driver.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heard = append(x.heard, n)
}

// wrong says what is wrong with what was heard, if the last thing that was said is
// word.
func (x *hearer) wrong(word string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch n := len(x.heard); {
	case n == 0:
		return "heard nothing"
	case !x.heard[0].Subscribed:
		return "heard a message before the confirmation"
	case x.heard[n-1].Payload != word || (n > 1 && x.heard[n-2].Payload == word):
		return fmt.Sprintf("did not hear %s once: %v", word, x.heard)
	}
	return ""
}

// Whatever happens to the connections, and whatever is refused: when it is over,
// whoever listens hears, and nobody else is subscribed.
func TestWhoeverListensHearsWhenTroubleIsOver(t *testing.T) {
	channels := []string{"a", "b", "c", "d"}
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(time.Minute) // go-redis goes on connecting for a while
			mini := miniredis.NewMiniRedis()
			defer mini.Close()
			p := faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })
			defer p.Close()
			var mu sync.Mutex
			denied, down := map[string]bool{}, false
			deny := func(b []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				if parts := strings.Split(string(b), "\r\n"); bytes.Contains(b, []byte("\nsubscribe")) && denied[parts[len(parts)-2]] {
					return refused
				}
				return b
			}
			rdb := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:1", Protocol: r.Between(2, 3), DialTimeout: 2 * time.Second, DialerRetries: 1,
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
					mu.Lock()
					hang := down
					mu.Unlock()
					if hang {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					if ctx.Err() != nil { // else go-redis waits for a silent server, with a mutex locked, which stops a bubble
						return nil, ctx.Err()
					}
					c, err := p.Dial(ctx)
					return rewriting{c, deny}, err
				},
			})
			defer rdb.Close()
			d := redlatchgoredis.Use(rdb)
			var live, left []*hearer
			set := func(f func()) func() {
				return func() {
					mu.Lock()
					defer mu.Unlock()
					f()
				}
			}
			over := func() {
				p.Blackhole(false)
				p.OneWay(false)
				set(func() { clear(denied); down = false })()
			}
			rounds := 0
			r.Steps(map[string]func(){
				"subscribe": func() {
					x := &hearer{channel: channels[r.IntN(len(channels))]}
					x.stop = d.Subscribe(x.channel, false, x.hear)
					live = append(live, x)
				},
				"unsubscribe": func() {
					if len(live) > 0 {
						i := r.IntN(len(live))
						live[i].stop()
						left, live = append(left, live[i]), append(live[:i:i], live[i+1:]...)
					}
				},
				"storm": func() {
					for range 20 {
						d.Subscribe(channels[0], false, func(driver.Notice) {})()
						if r.Bool() {
							synctest.Wait()
						}
					}
				},
				"break":     p.BreakAll,
				"blackhole": func() { p.Blackhole(r.Bool()) },
				"deaf":      func() { p.OneWay(r.Bool()) },
				"hang":      set(func() { down = r.Bool() }),
				"deny":      set(func() { denied[channels[r.IntN(len(channels))]] = r.Bool() }),
				"message":   func() { mini.Publish(channels[r.IntN(len(channels))], "noise") },
				"wait":      func() { time.Sleep(r.Duration(time.Microsecond, 10*time.Second)) },
				"over": func() {
					over()
					time.Sleep(15 * time.Second) // found out to be silent, a pause, connected
					rounds++
					word := fmt.Sprint("round ", rounds)
					want := map[string]int{}
					for _, x := range live {
						want[x.channel] = 1
					}
					for _, channel := range channels {
						if n := mini.Publish(channel, word); n != want[channel] {
							t.Errorf("%d are subscribed to %s, want %d", n, channel, want[channel])
						}
					}
					synctest.Wait()
					for _, x := range live {
						if wrong := x.wrong(word); wrong != "" {
							t.Errorf("who listens to %s %s", x.channel, wrong)
						}
					}
					for _, x := range left {
						x.mu.Lock()
						if n := len(x.heard); n > 0 && x.heard[n-1].Payload == word {
							t.Errorf("who has left heard %s", word)
						}
						x.mu.Unlock()
					}
				},
			}, func() {
				if r.Bool() {
					synctest.Wait()
				}
				if t.Failed() {
					t.FailNow()
				}
			})
			over()
			for _, x := range live {
				x.stop()
			}
		})
	})
}
