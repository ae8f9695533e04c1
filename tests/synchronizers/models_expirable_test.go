package synchronizers

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestPermitProperties lets several clients acquire, try, cancel, release,
// extend, change the numbers and die at random, over a driver that delays, loses
// and repeats, beside Redisson clients whose clocks are wrong, and looks at the
// server before and after each step: no permit is made or destroyed, no time is
// cut short, whoever's place is given away knows it, and nobody waits while
// there is enough for him.
func TestPermitProperties(t *testing.T) {
	locktest.WithSeeds(t, 3, func(w *locktest.World, seed uint64) { newPermitModel(w, seed).run() })
}

// enough is the most that anybody in the model asks for.
const enough = 3

type permitModel struct {
	*locktest.World
	rand    *rand.Rand
	lossy   bool
	slot    chan struct{} // one step at a time; a mutex would stop the clock
	clients []*permitClient
	steps   int       // guarded by slot, as what follows
	low     time.Time // when there was last less than enough

	mu     sync.Mutex // guards rand and what follows
	total  int        // of permits, if the one who changes it has his way
	live   map[string]*redlatch.Hold
	waits  map[int]permitWait // by number
	number int
	got    int
}

type permitWait struct {
	c     *permitClient
	since time.Time
}

type permitClient struct {
	*redlatch.Client
	m    *permitModel
	mu   sync.Mutex
	dead bool
}

func newPermitModel(w *locktest.World, seed uint64) *permitModel {
	m := &permitModel{
		World: w, rand: rand.New(rand.NewPCG(seed, 11)), lossy: seed > 0, slot: make(chan struct{}, 1),
		total: 6, live: map[string]*redlatch.Hold{}, waits: map[int]permitWait{},
	}
	for range 4 {
		c := &permitClient{m: m}
		c.Client = w.Tapped(redlatch.Config{OutageTimeout: time.Minute, WatchdogTimeout: 3 * time.Second}, &locktest.Tap{Hook: c.hook, Timeout: 500 * time.Millisecond, Cluster: len(m.clients) == 1})
		m.clients = append(m.clients, c)
	}
	return m
}

func (m *permitModel) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

func (m *permitModel) ms(n int) time.Duration { return time.Duration(m.draw(n)) * time.Millisecond }

func (c *permitClient) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

func (c *permitClient) set(dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = dead
}

// hook is what lies between a client and the server.
func (c *permitClient) hook(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	m := c.m
	time.Sleep(m.ms(4))
	if c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	lost := m.lossy && m.draw(12) == 0
	if m.lossy && m.draw(12) == 0 && strings.HasPrefix(s, "expirable.") {
		// It arrives, but much later than anybody waits for it.
		after := m.ms(4000)
		go func() {
			time.Sleep(after)
			_, _ = m.step(s, next)
		}()
		time.Sleep(50 * time.Millisecond)
		return driver.Reply{}, locktest.ErrReplyLost
	}
	r, err := m.step(s, next)
	time.Sleep(m.ms(4))
	if lost || c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return r, err
}

type permitState struct {
	free   int
	scores map[string]float64
}

func (m *permitModel) state() (x permitState) {
	text, _ := m.Server.Get(locktest.Pool)
	_, _ = fmt.Sscan(text, &x.free)
	if m.Server.Exists(locktest.PoolTimes) {
		scores, _ := m.Server.SortedSet(locktest.PoolTimes)
		m.Server.Lock()
		x.scores = maps.Clone(scores)
		m.Server.Unlock()
	}
	if x.available() < enough {
		m.low = time.Now()
	}
	return x
}

// available is what a request of ours could have.
func (x permitState) available() int {
	n := x.free
	for _, score := range x.scores {
		if score <= float64(time.Now().UnixMilli()) {
			n++
		}
	}
	return n
}

// step does something by itself and compares before and after.
func (m *permitModel) step(what string, do func() (driver.Reply, error)) (driver.Reply, error) {
	m.slot <- struct{}{}
	defer func() { <-m.slot }()
	before := m.state()
	r, err := do()
	after := m.state()
	m.steps++
	change := after.free + len(after.scores) - before.free - len(before.scores)
	sets := what == "expirable.set" || what == "expirable.add" || what == "expirable.try_set"
	if change != 0 && !sets {
		m.Errorf("%s changed the number of permits by %d: %+v, %+v", what, change, before, after)
	}
	for id, score := range before.scores {
		now, there := after.scores[id]
		if there && now < score {
			m.Errorf("%s cut %x short by %.0f ms", what, id, score-now)
		}
		m.mu.Lock()
		p := m.live[id]
		m.mu.Unlock()
		if !there && p != nil && p.Err() == nil {
			m.Errorf("%s took %x, whose holder trusts it for another %v", what, id, time.Until(p.Expires()))
		}
	}
	return r, err
}

// watch looks whether anybody waits for what is there.
func (m *permitModel) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		m.slot <- struct{}{}
		m.state()
		low := m.low
		<-m.slot
		m.mu.Lock()
		for n, wait := range m.waits {
			if wait.c.isDead() {
				m.waits[n] = permitWait{wait.c, time.Now()}
				continue
			}
			since := wait.since
			if since.Before(low) {
				since = low
			}
			limit := 2500 * time.Millisecond
			if m.lossy {
				limit *= 2 // the poll itself can be lost
			}
			if waited := time.Since(since); waited > limit {
				m.Errorf("number %d waits for %v while there is enough", n, waited)
				delete(m.waits, n)
			}
		}
		m.mu.Unlock()
	}
}

// redisson acquires, sweeps and is gone, by a clock that is wrong.
func (m *permitModel) redisson(skew time.Duration) {
	for n := range 30 {
		time.Sleep(m.ms(400))
		_, _ = m.step("Redisson", func() (driver.Reply, error) {
			now := float64(time.Now().Add(skew).UnixMilli())
			x := m.state()
			for id, score := range x.scores {
				if score <= now {
					_, _ = m.Server.ZRem(locktest.PoolTimes, id)
					_, _ = m.Server.Incr(locktest.Pool, 1)
					x.free++
				}
			}
			if x.free > 0 && m.draw(3) == 0 {
				_, _ = m.Server.Incr(locktest.Pool, -1)
				_, _ = m.Server.ZAdd(locktest.PoolTimes, now+float64(100+m.draw(900)), fmt.Sprintf("redisson %7d", int(skew)+n))
			}
			return driver.Reply{}, nil
		})
	}
}

// section acquires, stays and releases.
func (c *permitClient) section() {
	m := c.m
	ctx, cancel := context.WithCancel(bg)
	if m.draw(3) == 0 {
		ctx, cancel = context.WithTimeout(bg, m.ms(400))
	}
	defer cancel()
	wait := time.Hour
	if m.draw(6) == 0 {
		wait = 0
	}
	var opts []redlatch.HoldOption
	if m.draw(3) == 0 {
		opts = append(opts, redlatch.Lease(200*time.Millisecond+m.ms(1000)))
	}
	s := semaphore.NewExpirable(c.Client, locktest.Pool, 0, opts...)
	m.mu.Lock()
	m.number++
	number := m.number
	m.waits[number] = permitWait{c, time.Now()}
	m.mu.Unlock()
	ps, err := locktest.Each(s.TryAcquire(ctx, 1+m.draw(enough), wait))
	m.mu.Lock()
	delete(m.waits, number)
	for _, p := range ps {
		raw, _ := hex.DecodeString(p.ID())
		m.live[string(raw)] = p
	}
	m.got += len(ps)
	live := 0
	for id, p := range m.live {
		if p.Err() == nil {
			live++
		} else {
			delete(m.live, id)
		}
	}
	if live > 8 {
		m.Errorf("%d permits are held at once", live)
	}
	m.mu.Unlock()
	if err != nil {
		return
	}
	stay := time.NewTimer(m.ms(1500))
	defer stay.Stop()
	select {
	case <-stay.C:
	case <-ps[0].Context().Done():
	}
	if m.draw(4) == 0 {
		_ = ps[0].Extend(bg, time.Second)
	}
	if m.draw(3) == 0 {
		ids := make([]string, len(ps))
		for i, p := range ps {
			ids[i] = p.ID()
		}
		by := m.clients[m.draw(2)] // these do not die
		if by != c {
			for _, p := range ps {
				_ = p.Release(ctx) // another client's release cannot end it
			}
		}
		_ = semaphore.NewExpirable(by.Client, locktest.Pool, 0).Release(ctx, ids...)
	}
	for _, p := range ps {
		if m.draw(8) > 0 || p.Err() != nil {
			_ = p.Release(ctx)
		} else {
			_ = p.Release(bg)
		}
	}
}

func (m *permitModel) run() {
	first := semaphore.NewExpirable(m.clients[0].Client, locktest.Pool, 0)
	if set, err := first.TrySetPermits(bg, m.total); !set || err != nil {
		m.Fatal(set, err)
	}
	var wg sync.WaitGroup
	for _, c := range m.clients {
		for range 3 {
			wg.Go(func() {
				for range 6 {
					time.Sleep(m.ms(300))
					c.section()
				}
			})
		}
	}
	wg.Go(func() { m.redisson(900 * time.Millisecond) })
	wg.Go(func() { m.redisson(-900 * time.Millisecond) })
	wg.Go(func() {
		for range 6 {
			time.Sleep(m.ms(2000))
			n := 4 + m.draw(5)
			var err error
			if m.draw(2) == 0 {
				err = first.SetPermits(bg, n)
			} else {
				err = first.AddPermits(bg, n-m.total)
			}
			if err != nil {
				m.Error(err)
			}
			m.total = n
		}
	})
	wg.Go(func() {
		time.Sleep(m.ms(4000))
		m.clients[3].set(true)
		time.Sleep(m.ms(8000))
		m.clients[3].set(false)
	})
	stop := make(chan struct{})
	watched := locktest.Later(func() bool { m.watch(stop); return true })
	wg.Wait()
	for _, c := range m.clients {
		c.set(false)
	}
	close(stop)
	<-watched
	time.Sleep(200 * time.Second) // debts
	if n, err := first.Available(bg); n != m.total || err != nil {
		m.Errorf("%d are available, %v, want %d", n, err, m.total)
	}
	time.Sleep(5 * time.Second) // that was late
	for _, c := range m.clients {
		_ = c.Close()
	}
	m.WantPermits(m.total, 0)
	if m.got == 0 {
		m.Error("nobody got a permit: this test shows nothing")
	}
	m.Logf("%d steps, %d permits", m.steps, m.got)
	if channels := m.Server.PubSubChannels("redisson_sc*"); len(channels) > 0 {
		m.Errorf("still subscribed: %q", channels)
	}
	for _, key := range m.Keys() {
		if key != locktest.Pool && m.Server.TTL(key) == 0 {
			m.Errorf("%s is left for ever", key)
		}
	}
}
