package synchronizers

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestPermitsAreNeitherMadeNorLost lets several clients acquire, try, release,
// add, cancel and die at random, over a driver that delays, loses and repeats. It
// looks at the server before and after each script and keeps an account for each
// client.
//
//   - Nobody holds what Redis has not given to his client: so available + held is
//     never more than there is.
//   - When nobody wants anything any more, available + what the dead had is all.
//   - Nobody waits while there is more than anybody wants, but for a poll.
func TestPermitsAreNeitherMadeNorLost(t *testing.T) {
	locktest.WithSeeds(t, 3, func(w *locktest.World, seed uint64) {
		m := &semaphoreModel{World: w, rand: rand.New(rand.NewPCG(seed, 4)), lossy: seed%3 > 0, slot: make(chan struct{}, 1)}
		m.run()
	})
}

type semaphoreModel struct {
	*locktest.World
	lossy   bool
	slot    chan struct{} // one script at a time; a mutex would stop the clock
	clients []*semaphoreClient

	mu      sync.Mutex // guards what follows
	rand    *rand.Rand
	total   int
	plenty  time.Time // since when there has been more than anybody wants; zero: there is not
	scripts int
	got     int
	lost    int
	late    int
}

type semaphoreClient struct {
	*redlatch.Client
	m *semaphoreModel

	dead  bool // these are guarded by m.mu
	given int  // what Redis has given to it, less what it has given back
	held  int  // what its callers hold
}

const mostWanted = 4 // by one caller

func (m *semaphoreModel) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

func (c *semaphoreClient) isDead() bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.dead
}

func (m *semaphoreModel) available() int {
	text, _ := m.Server.Get(locktest.SemaphoreName)
	n, _ := strconv.Atoi(text)
	return n
}

// hook is what lies between a client and the server.
func (c *semaphoreClient) hook(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	m := c.m
	time.Sleep(time.Duration(m.draw(2000)) * time.Microsecond)
	if c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	if m.lossy && m.draw(10) == 0 {
		// It arrives, but later than anybody waits for it; or it does not.
		if m.draw(3) > 0 {
			after := time.Duration(m.draw(3000)) * time.Millisecond
			go func() {
				time.Sleep(after)
				_, _ = c.watched(s, next)
			}()
		}
		m.count(&m.late)
		time.Sleep(20 * time.Millisecond)
		return driver.Reply{}, locktest.ErrReplyLost
	}
	r, err := c.watched(s, next)
	time.Sleep(time.Duration(m.draw(2000)) * time.Microsecond)
	if c.isDead() {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	if m.lossy && m.draw(10) == 0 {
		m.count(&m.lost)
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return r, err
}

func (m *semaphoreModel) count(n *int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*n++
}

// watched runs a script by itself and notes what it changes.
func (c *semaphoreClient) watched(s string, next func() (driver.Reply, error)) (driver.Reply, error) {
	m := c.m
	m.slot <- struct{}{}
	defer func() { <-m.slot }()
	before := m.available()
	r, err := next()
	after := m.available()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts++
	switch s {
	case "semaphore.exchange":
		c.given += before - after
		if c.given < c.held && !c.dead {
			m.Errorf("a client has %d of Redis, and its callers hold %d", c.given, c.held)
		}
	case "semaphore.add":
		m.total += after - before
	default:
		if before != after {
			m.Errorf("%s has changed %d to %d", s, before, after)
		}
	}
	switch {
	case after < mostWanted:
		m.plenty = time.Time{}
	case m.plenty.IsZero():
		m.plenty = time.Now()
	}
	return r, err
}

// holds notes that a caller holds n more; he was waiting since start.
func (c *semaphoreClient) holds(n int) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.held += n
	if n > 0 {
		m.got++
	}
	if c.held > c.given {
		m.Errorf("the callers of a client hold %d, Redis has given it %d", c.held, c.given)
	}
}

// waited checks that a caller who has waited since start did not do so in vain.
func (c *semaphoreClient) waited(start time.Time) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plenty.IsZero() || c.dead {
		return
	}
	if start.Before(m.plenty) {
		start = m.plenty
	}
	if d := time.Since(start); d > 3*time.Second {
		m.Errorf("a caller waited %v beside %d permits", d, m.available())
	}
}

func (m *semaphoreModel) run() {
	const permits = 7
	for range 4 {
		c := &semaphoreClient{m: m}
		c.Client = m.Tapped(redlatch.Config{}, &locktest.Tap{Hook: c.hook})
		m.clients = append(m.clients, c)
	}
	m.total = permits
	_ = m.Server.Set(locktest.SemaphoreName, strconv.Itoa(permits))
	m.plenty = time.Now()

	var wg sync.WaitGroup
	for _, c := range m.clients {
		for range 4 {
			wg.Go(func() { c.caller(12) })
		}
	}
	wg.Go(func() { // somebody changes how many there are, back and forth
		s := semaphore.New(m.clients[0].Client, locktest.SemaphoreName, 0)
		for range 2 {
			for _, n := range []int{2, -6, 4} {
				time.Sleep(time.Duration(m.draw(400)) * time.Millisecond)
				if err := s.AddPermits(bg, n); err != nil {
					m.Error(err)
				}
			}
		}
	})
	if m.draw(2) == 0 {
		wg.Go(func() { // a process dies
			time.Sleep(time.Duration(m.draw(700)) * time.Millisecond)
			c := m.clients[len(m.clients)-1]
			m.mu.Lock()
			c.dead = true
			m.mu.Unlock()
			time.Sleep(4 * time.Second) // what is on the way
			m.mu.Lock()
			gone := c.given
			m.mu.Unlock()
			if err := semaphore.New(m.clients[0].Client, locktest.SemaphoreName, 0).AddPermits(bg, gone); err != nil {
				m.Error(err) // or those who want many might wait for ever
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Minute) // what nobody waits for
	for _, c := range m.clients {
		_ = c.Close()
	}
	time.Sleep(10 * time.Second) // what the dead one had in flight
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := 0
	for _, c := range m.clients {
		if c.dead {
			gone += c.given
		} else if c.held != 0 || c.given != 0 {
			m.Errorf("in the end a client has %d of Redis, and its callers hold %d", c.given, c.held)
		}
	}
	if n := m.available(); n+gone != m.total || n != permits {
		m.Errorf("in the end there are %d of %d, and %d are gone; want %d", n, m.total, gone, permits)
	}
	if m.got < 40 || m.lossy && (m.lost < 10 || m.late < 10) {
		m.Error("too little has happened: this test shows nothing")
	}
	m.Logf("%d scripts, %d acquisitions, %d replies lost, %d requests late, %d permits gone", m.scripts, m.got, m.lost, m.late, gone)
}

func (c *semaphoreClient) caller(times int) {
	m := c.m
	s := semaphore.New(c.Client, locktest.SemaphoreName, 0)
	whole, end := context.WithTimeout(bg, 5*time.Minute)
	defer end()
	for range times {
		if c.isDead() {
			return
		}
		time.Sleep(time.Duration(m.draw(60)) * time.Millisecond)
		n := 1 + m.draw(mostWanted)
		ctx, cancel := context.WithCancel(whole)
		if m.draw(3) == 0 {
			ctx, cancel = context.WithTimeout(bg, time.Duration(m.draw(100))*time.Millisecond)
		}
		start := time.Now()
		var err error
		if m.draw(5) == 0 {
			err = s.TryAcquire(ctx, n, 0)
		} else {
			err = s.Acquire(ctx, n)
		}
		if err != nil {
			c.waited(start)
			cancel()
			if !c.isDead() && !errors.Is(err, redlatch.ErrBusy) && !errors.Is(err, redlatch.ErrUnavailable) || whole.Err() != nil {
				m.Error(err)
			}
			continue
		}
		c.holds(n)
		c.waited(start)
		time.Sleep(time.Duration(m.draw(20)) * time.Millisecond)
		if c.isDead() {
			cancel()
			return
		}
		part := m.draw(n + 1) // in two parts, by whoever
		for _, part := range []int{part, n - part} {
			c.holds(-part)
			if m.draw(4) == 0 {
				go func() { _ = s.Release(ctx, part) }()
			} else {
				_ = s.Release(ctx, part)
			}
		}
		cancel()
	}
}
