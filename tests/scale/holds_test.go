package scale

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// holds holds n locks of three primaries while each is renewed three times.
func holds(p *place, adapter string, n int, watchdog time.Duration) {
	goroutines := runtime.NumGoroutine()
	var lost, failed atomic.Int64
	c, closeAll := p.client(adapter, redlatch.Config{WatchdogTimeout: watchdog})
	defer closeAll()
	observe.Add(c, observe.Hooks{
		Lost: func(e observe.LostEvent) {
			if lost.Add(1) < 10 {
				p.Errorf("lost: %v", e.Err)
			}
		},
		RenewFailed: func(observe.RenewFailedEvent) { failed.Add(1) },
	})
	before := usage()
	all := make([]*redlatch.Hold, n)
	name := func(i int) string { return "scale:" + strconv.Itoa(i) }
	start := time.Now()
	each(n, func(i int) {
		hold, err := c.Lock(name(i)).Acquire(p.Context())
		if err != nil {
			p.Errorf("Acquire: %v", err)
		}
		all[i] = hold
	})
	acquired := time.Since(start)
	if p.Failed() {
		return
	}

	held := usage()
	began, cpuBegan := time.Now(), cpu()
	renewed, batches := p.calls("pexpire"), p.calls("evalsha")
	// A busy machine may be late with the last ones.
	for time.Since(began) < watchdog+2*time.Second || (p.calls("pexpire")-renewed < 3*n && time.Since(began) < watchdog+generous) {
		p.sample(all, name)
		time.Sleep(100 * time.Millisecond)
	}
	took, wall := cpu()-cpuBegan, time.Since(began)
	renewed, batches = p.calls("pexpire")-renewed, p.calls("evalsha")-batches
	least := watchdog
	for i, hold := range all {
		if hold.Err() != nil {
			p.Fatalf("%s: %v", name(i), hold.Err())
		}
		least = min(least, time.Until(hold.Expires()))
	}
	if lost.Load() > 0 || renewed < 3*n {
		p.Errorf("%d of %d were lost, and there were %d renewals, want three of each", lost.Load(), n, renewed)
	}
	if keys := p.keys(); keys != n {
		p.Errorf("%d holds have %d keys", n, keys)
	}

	start = time.Now()
	each(n, func(i int) {
		if err := all[i].Release(p.Context()); err != nil {
			p.Errorf("Release: %v", err)
		}
	})
	released := time.Since(start)
	clear(all)
	closeAll()
	p.wantNothingLeft(goroutines)
	p.Logf("%d holds: %d B each and %d goroutines in all, acquired in %v, released in %v; "+
		"in %v %d renewals in %d requests took %v of CPU time: %v each, %v for a hold and second, %.1f %% of a processor; %d requests failed, and in the end the least is trusted for %v of %v",
		n, (held.heap-before.heap)/n, held.goroutines-goroutines, acquired.Round(time.Millisecond), released.Round(time.Millisecond),
		wall.Round(time.Millisecond), renewed, batches, took.Round(time.Millisecond), took/time.Duration(renewed),
		time.Duration(float64(took)/float64(n)/wall.Seconds()), 100*took.Seconds()/wall.Seconds(),
		failed.Load(), least.Round(time.Millisecond), watchdog)
}

// sample checks of some holds that Redis keeps them for longer than they are
// trusted.
func (p *place) sample(all []*redlatch.Hold, name func(int) string) {
	for range 10 {
		i := rand.IntN(len(all))
		key, trusted := name(i), all[i].Expires()
		for _, n := range p.Nodes[:3] {
			v, err := n.Do("PTTL", key)
			if err != nil {
				continue // it has another slot
			}
			if end := time.Now().Add(time.Duration(number(v)) * time.Millisecond); end.Before(trusted) {
				p.Errorf("%s is trusted until %v, and Redis keeps it until %v", key, trusted, end)
			}
		}
	}
}
