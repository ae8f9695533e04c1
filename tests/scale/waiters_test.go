package scale

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
)

// waitersEach is how many callers wait for one name.
const waitersEach = 10

// waiters has ten callers wait for each of n locks, which somebody else has.
func waiters(p *place, adapter string, clients, n int) {
	goroutines := runtime.NumGoroutine()
	cfg := redlatch.Config{SlowWait: -1} // it is no deadlock
	holder, closeHolder := p.client(adapter, cfg)
	defer closeHolder()
	holds := make([]*redlatch.Hold, n)
	name := func(i int) string { return fmt.Sprint("wanted:", i) }
	each(n, func(i int) {
		var err error
		if holds[i], err = holder.Lock(name(i)).Acquire(p.Context()); err != nil {
			p.Errorf("Acquire: %v", err)
		}
	})
	all := make([]*redlatch.Client, clients)
	for i := range all {
		var closeAll func()
		all[i], closeAll = p.client(adapter, cfg)
		defer closeAll()
	}
	if p.Failed() {
		return
	}

	idle := usage()
	inside := make([]atomic.Int32, n)
	turns := make([]atomic.Int32, n)
	var wg sync.WaitGroup
	for i := range n * waitersEach {
		key, c := i/waitersEach, all[i%clients]
		wg.Go(func() {
			hold, err := c.Lock(name(key)).Acquire(p.Context())
			if err != nil {
				if !p.Failed() {
					p.Errorf("Acquire: %v", err)
				}
				return
			}
			if others := inside[key].Add(1) - 1; others > 0 {
				p.Errorf("%s is held by %d more", name(key), others)
			}
			turns[key].Add(1)
			inside[key].Add(-1)
			if err := hold.Release(p.Context()); err != nil {
				p.Errorf("Release: %v", err)
			}
		})
	}
	// One subscription for each name and client, whoever waits.
	p.eventually("all listen", func() bool { return p.listeners(n, name) == n*clients })
	waiting := usage()
	began, spent := time.Now(), cpu()
	time.Sleep(time.Second)
	spent, idleFor := cpu()-spent, time.Since(began)
	if got := p.listeners(n, name); got != n*clients {
		p.Errorf("%d subscriptions, want one for each of %d names and %d clients", got, n, clients)
	}

	start := time.Now()
	each(n, func(i int) {
		if err := holds[i].Release(p.Context()); err != nil {
			p.Errorf("Release: %v", err)
		}
	})
	wg.Wait()
	took := time.Since(start)
	for i := range turns {
		if got := turns[i].Load(); got != waitersEach {
			p.Errorf("%s had %d turns", name(i), got)
		}
	}
	p.eventually("nobody listens any more", func() bool { return p.listeners(n, name) == 0 })
	for _, c := range all {
		if err := c.Close(); err != nil {
			p.Error(err)
		}
	}
	p.Logf("%d waiters of %d clients for %d names: %d B of heap and %d B of stack each, %d goroutines beside their own; "+
		"%.1f %% of a processor while they wait; all had their turn after %v",
		n*waitersEach, clients, n, (waiting.heap-idle.heap)/(n*waitersEach), (waiting.stacks-idle.stacks)/(n*waitersEach),
		waiting.goroutines-goroutines-n*waitersEach, 100*spent.Seconds()/idleFor.Seconds(), took.Round(time.Millisecond))
	p.Cleanup(func() { p.wantNothingLeft(goroutines) })
}

// listeners adds up who listens to the channels of the locks.
func (p *place) listeners(n int, name func(int) string) (sum int) {
	p.Helper()
	args := []string{"PUBSUB", "SHARDNUMSUB"}
	for i := range n {
		args = append(args, "redisson_lock__channel:{"+name(i)+"}")
	}
	count := func(v any) (sum int) {
		list, _ := v.([]any) // channel, listeners, ...
		for i := 1; i < len(list); i += 2 {
			sum += number(list[i])
		}
		return sum
	}
	return p.sum(count, args...)
}
