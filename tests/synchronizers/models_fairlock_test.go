package synchronizers

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestFairQueueProperties lets several clients acquire, try, cancel, release and
// die at random, over a driver that delays, loses and repeats, and looks at the
// server before and after each script: the list and the sorted set name the same
// waiters, there is one holder, and the lock goes to the first one in the queue
// whose client can be heard.
func TestFairQueueProperties(t *testing.T) {
	locktest.WithSeeds(t, 9, func(w *locktest.World, seed uint64) { newFairModel(w, seed).run() })
}

type fairModel struct {
	*locktest.World
	rand    *rand.Rand
	lossy   bool
	slot    chan struct{} // one script at a time; a mutex would stop the clock
	clients []*fairClient
	steps   int
	grants  int

	mu    sync.Mutex // guards heard
	heard map[string]time.Time
}

type fairClient struct {
	*redlatch.Client
	m    *fairModel
	mu   sync.Mutex
	dead bool
}

func newFairModel(w *locktest.World, seed uint64) *fairModel {
	m := &fairModel{World: w, rand: rand.New(rand.NewPCG(seed, 7)), lossy: seed%3 == 2, slot: make(chan struct{}, 1), heard: map[string]time.Time{}}
	for range 4 {
		c := &fairClient{m: m}
		c.Client = w.Tapped(redlatch.Config{OutageTimeout: time.Minute}, &locktest.Tap{Hook: c.hook})
		m.clients = append(m.clients, c)
	}
	return m
}

func (c *fairClient) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// draw draws a number; goroutines share the source.
func (m *fairModel) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

// hook is what lies between a client and the server.
func (c *fairClient) hook(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	m := c.m
	time.Sleep(time.Duration(m.draw(3000)) * time.Microsecond)
	if c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	lost := m.lossy && m.draw(12) == 0
	late := m.lossy && m.draw(12) == 0
	if late && strings.HasPrefix(s, "fairlock.") && s != "fairlock.force" {
		// It arrives, but much later than anybody waits for it.
		after := time.Duration(m.draw(4000)) * time.Millisecond
		go func() {
			time.Sleep(after)
			_, _ = m.watched(s, args, next)
		}()
		time.Sleep(50 * time.Millisecond)
		return driver.Reply{}, locktest.ErrReplyLost
	}
	r, err := m.watched(s, args, next)
	time.Sleep(time.Duration(m.draw(3000)) * time.Microsecond)
	if lost || c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return r, err
}

type fairState struct {
	queue  []string
	scores map[string]float64
	ready  []string // those that can be given the lock
	holder string
}

func (m *fairModel) state() (x fairState) {
	queue, timeouts, alive := locktest.FairKeys("orders")
	if m.Server.Exists(queue) {
		ids, _ := m.Server.List(queue)
		m.Server.Lock()
		x.queue = slices.Clone(ids)
		m.Server.Unlock()
	}
	if m.Server.Exists(timeouts) {
		scores, _ := m.Server.SortedSet(timeouts)
		m.Server.Lock()
		x.scores = maps.Clone(scores)
		m.Server.Unlock()
	}
	if m.Server.Exists(alive) {
		heard, _ := m.Server.SortedSet(alive)
		m.Server.Lock()
		for id := range heard {
			id, _ = strings.CutPrefix(id, "nonce ")
			if id, found := strings.CutSuffix(id, " orders"); found {
				x.ready = append(x.ready, id)
			}
		}
		m.Server.Unlock()
	}
	if m.Server.Exists("orders") {
		if fields, _ := m.Server.HKeys("orders"); len(fields) == 1 {
			x.holder = fields[0]
		} else {
			m.Errorf("the lock has the fields %q", fields)
		}
	}
	return x
}

// watched runs a script by itself and compares before and after.
func (m *fairModel) watched(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	m.slot <- struct{}{}
	defer func() { <-m.slot }()
	before := m.state()
	now := time.Now()
	r, err := next()
	after := m.state()
	m.steps++
	if !slices.Equal(slices.Sorted(slices.Values(after.queue)), slices.Sorted(maps.Keys(after.scores))) {
		m.Errorf("after %s %q the list has %q, the sorted set %v", s, args, after.queue, after.scores)
	}
	given := slices.Contains(args, before.holder) && (s == "fairlock.release" || s == "fairlock.force")
	if before.holder != "" && after.holder != "" && before.holder != after.holder && !given {
		m.Errorf("%s %q gave the lock from %s to %s", s, args, before.holder, after.holder)
	}
	for _, id := range after.ready {
		if !slices.Contains(after.queue, id) {
			m.Errorf("after %s %q %s, who does not wait, could be given the lock", s, args, id)
		}
	}
	if slices.Contains(after.queue, after.holder) {
		m.Errorf("after %s %q %s has the lock and waits for it: %q", s, args, after.holder, after.queue)
	}
	if s == "fairlock.take" && args[4] != "0" && len(r.List) == 4 { // who asks and has it now says nothing of others
		client, _, _ := strings.Cut(args[1], ":")
		m.heard[client] = now
	}
	if after.holder == "" || before.holder == after.holder {
		return r, err
	}
	m.grants++
	for _, id := range before.queue {
		if id == after.holder {
			return r, err
		}
		if s == "fairlock.release" && slices.Contains(args[2:], id) { // it leaves the queue
			continue
		}
		client, _, _ := strings.Cut(id, ":")
		if heard, ok := m.heard[client]; ok && now.Sub(heard) < 6*time.Second-2*time.Millisecond {
			m.Errorf("%s took the lock before %s, who was heard %v ago; queue %q", after.holder, id, now.Sub(heard), before.queue)
		}
	}
	return r, err
}

func (m *fairModel) run() {
	var inside, most, got int
	var mu sync.Mutex
	enter := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		inside += d
		most = max(most, inside)
		if d > 0 {
			got++
		}
	}
	var wg sync.WaitGroup
	for _, c := range m.clients {
		for range 4 {
			wg.Go(func() {
				for range 12 {
					time.Sleep(time.Duration(m.draw(200)) * time.Millisecond)
					ctx, cancel := bg, context.CancelFunc(func() {})
					if m.draw(3) == 0 {
						ctx, cancel = context.WithTimeout(bg, time.Duration(1+m.draw(300))*time.Millisecond)
					}
					wait := time.Hour
					if m.draw(6) == 0 {
						wait = 0
					}
					h, err := c.FairLock("orders").TryAcquire(ctx, wait)
					if err != nil {
						cancel()
						continue
					}
					enter(1)
					stay := time.NewTimer(time.Duration(m.draw(20)) * time.Millisecond)
					select {
					case <-stay.C:
					case <-h.Context().Done():
						stay.Stop()
					}
					enter(-1)
					_ = h.Release(ctx)
					cancel()
				}
			})
		}
	}
	for range 3 {
		time.Sleep(time.Duration(m.draw(1500)) * time.Millisecond)
		switch m.draw(3) {
		case 0: // a process dies
			c := m.clients[len(m.clients)-1]
			c.mu.Lock()
			c.dead = true
			c.mu.Unlock()
		case 1: // somebody forces
			_, _ = admin.ForceRelease(bg, m.clients[0].FairLock("orders"))
		}
	}
	wg.Wait()
	for _, c := range m.clients {
		c.mu.Lock()
		c.dead = false
		c.mu.Unlock()
	}
	time.Sleep(200 * time.Second) // debts
	if most != 1 {
		m.Errorf("%d inside at once", most)
	}
	for _, c := range m.clients {
		_ = c.Close()
	}
	m.slot <- struct{}{}
	if got == 0 || m.grants == 0 {
		m.Error("nobody got the lock: this test shows nothing")
	}
	m.Logf("%d scripts, %d acquisitions, %d grants", m.steps, got, m.grants)
	<-m.slot
	m.WantNothing()
}

// The queue of one client with another library's in it: all orders of leaving
// keep the scores as Redisson would.
func TestScoresAreRedissonsWhoeverLeaves(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a := w.Client(redlatch.Config{})
		_, timeouts, _ := locktest.FairKeys("orders")
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			h := w.Acquire(bg, a.FairLock("orders", redlatch.Lease(time.Hour)))
			base := float64(time.Now().Add(w.Server.TTL("orders")).UnixMilli())
			var waits []<-chan locktest.Outcome
			var cancels []context.CancelFunc
			for range 8 {
				ctx, cancel := context.WithCancel(bg)
				waits = append(waits, w.Waiting(ctx, a.FairLock("orders")))
				cancels = append(cancels, cancel)
			}
			for len(waits) > 0 {
				i := r.IntN(len(waits))
				cancels[i]()
				<-waits[i]
				synctest.Wait()
				waits, cancels = slices.Delete(waits, i, i+1), slices.Delete(cancels, i, i+1)
				for n, id := range w.Queue("orders") {
					if score, _ := w.Server.ZScore(timeouts, id); score != base+float64(n+1)*300000 {
						t.Fatalf("seed %d: number %d of %d has the score %.0f, want %.0f", seed, n, len(waits), score, base+float64(n+1)*300000)
					}
				}
			}
			w.Release(h)
			w.WantNothing()
		}
	})
}

func TestThousandsOfWaitersMoveUp(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.FairLock("orders"))
		next := w.Waiting(bg, c.FairLock("orders"))
		queue, timeouts, _ := locktest.FairKeys("orders")
		scores, err := w.Server.SortedSet(timeouts)
		if err != nil {
			t.Fatal(err)
		}
		last := slices.Max(slices.Collect(maps.Values(scores)))
		const n, allowance = 5000, 300_000
		want := map[string]float64{}
		for i := range n {
			id := fmt.Sprintf("2d1b7d0a-52c8-4c1f-9b5e-000000000000:%d", i)
			want[id] = last + float64(i)*allowance
			if _, err := w.Server.Push(queue, id); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Server.ZAdd(timeouts, want[id]+allowance, id); err != nil {
				t.Fatal(err)
			}
		}
		w.Release(h)
		w.Release(w.Got(next))
		if scores, err = w.Server.SortedSet(timeouts); err != nil || !maps.Equal(scores, want) {
			t.Errorf("%d scores, %v; not those of before less the allowance of one", len(scores), err)
		}
	})
}

// Owner fields of ours are told from Redisson's by their shape.
func TestOnlyFieldsOfOursAreJudgedBySilence(t *testing.T) {
	for owner, ours := range map[string]bool{
		wire.Owner(wire.NewClientID(), 3):        true,
		"0f8fad5b-d9cb-469f-a165-70867728950e:3": false, // version 4
		"0f8fad5b-d9cb-869f-a165-7086772895:3":   false, // too short
		"8-8-8-8-8:3":                            false,
		"worker-8a:3":                            false,
	} {
		t.Run(owner, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				queue, timeouts, _ := locktest.FairKeys("orders")
				_, _ = w.Server.Push(queue, owner)
				_, _ = w.Server.ZAdd(timeouts, float64(time.Now().Add(time.Minute).UnixMilli()), owner)
				h, err := c.FairLock("orders").TryAcquire(bg, 0)
				if taken := err == nil; taken != ours {
					t.Errorf("swept: %v, want %v (%v)", taken, ours, err)
				}
				if h != nil {
					w.Release(h)
				}
			})
		})
	}
}
