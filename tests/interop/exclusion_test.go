package interop

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Threads of two Java processes and goroutines of two Go clients add to one
// counter in Redis with a read and a write: no update is lost.
func TestNoUpdateIsLost(t *testing.T) {
	const (
		counter  = "counter"
		together = 2 * time.Second
	)
	each(t, func(t *testing.T, w *world) {
		loop := peer.Loop{Kind: w.kind, Name: w.name, Threads: 3, Duration: together, Counter: counter}
		var byJava [2]peer.LoopResult
		w.javaClient()
		clients := []*peer.Client{w.java, w.openJava(sharedOrFail(t, w.version), w.server.Addr())}
		t.Cleanup(func() { _ = clients[1].Close(w.ctx) })
		var all []*waiting
		for i, c := range clients {
			all = append(all, w.start("Java: loop", func() (err error) {
				byJava[i], err = c.Loop(w.ctx, loop)
				return err
			}))
		}

		var mu sync.Mutex
		var byGo int64
		end := time.Now().Add(together)
		for range 2 {
			c := w.anotherGo()
			for range 3 {
				lock := goLock(c, w.kind, w.name)
				all = append(all, w.start("Go: loop", func() error {
					for first := true; first || time.Now().Before(end); first = false {
						if err := w.addOne(lock, counter); err != nil {
							return err
						}
						mu.Lock()
						byGo++
						mu.Unlock()
					}
					return nil
				}))
			}
		}
		for _, c := range all {
			c.returns()
		}

		java := byJava[0].Ops + byJava[1].Ops
		if java == 0 || byGo == 0 {
			t.Errorf("sections: %d of Java, %d of Go: one side got nothing", java, byGo)
		}
		got := w.server.MustDo("GET", counter)
		if want := strconv.FormatInt(java+byGo, 10); got != want {
			t.Errorf("the counter is %v after %d sections of Java and %d of Go", got, java, byGo)
		}
		t.Logf("sections: %d of Java, %d of Go", java, byGo)
		w.server.MustDo("DEL", counter)
		w.free()
	}, exclusive...)
}

// addOne adds to the counter what two overlapping sections would lose.
func (w *world) addOne(lock *redlatch.Lock, counter string) error {
	hold, err := lock.Acquire(w.ctx)
	if err != nil {
		return err
	}
	n, err := w.server.Do("GET", counter)
	if err != nil {
		return err
	}
	before, _ := n.(string)
	value, _ := strconv.ParseInt(before, 10, 64) // 0 if there is none
	if _, err := w.server.Do("SET", counter, strconv.FormatInt(value+1, 10)); err != nil {
		return err
	}
	return hold.Release(w.ctx)
}
