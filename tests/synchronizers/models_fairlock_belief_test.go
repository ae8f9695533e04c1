package synchronizers

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestNeverTwoBelieveInAFairLock has requests, answers and messages delayed for longer
// than a lock is given for, lost and repeated, and processes cut off for as long,
// while holders stay for longer than that: at no time may two trust in the lock, and
// whoever asks for it gets it in the end.
func TestNeverTwoBelieveInAFairLock(t *testing.T) {
	locktest.WithSeeds(t, 2, func(w *locktest.World, seed uint64) { newBelief(w, seed).run() })
}

type belief struct {
	*locktest.World
	calm time.Time // no trouble from then on

	mu     sync.Mutex
	rand   *rand.Rand
	inside map[*redlatch.Hold]bool
	got    int
	given  int
}

func newBelief(w *locktest.World, seed uint64) *belief {
	return &belief{World: w, rand: rand.New(rand.NewPCG(seed, 11)), calm: time.Now().Add(80 * time.Second), inside: map[*redlatch.Hold]bool{}}
}

func (m *belief) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

func (m *belief) upTo(d time.Duration) time.Duration {
	return time.Duration(m.draw(int(d/time.Microsecond))) * time.Microsecond
}

// A shaky connection of one process.
type shaky struct {
	*locktest.Tap
	m     *belief
	mu    sync.Mutex
	until time.Time // cut off, or paused, until then
}

func (m *belief) trouble(oneIn int) bool { return time.Now().Before(m.calm) && m.draw(oneIn) == 0 }

// held waits until the process is no longer cut off.
func (s *shaky) held() {
	if s.m.trouble(100) {
		s.mu.Lock()
		s.until = time.Now().Add(s.m.upTo(10 * time.Second))
		s.mu.Unlock()
	}
	for range 10 {
		s.mu.Lock()
		d := time.Until(s.until)
		s.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
	}
}

func (s *shaky) hook(name string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	time.Sleep(s.m.upTo(2 * time.Millisecond))
	s.held()
	if strings.HasPrefix(name, "fairlock.") && s.m.trouble(8) {
		after := s.m.upTo(9 * time.Second)
		go func() {
			time.Sleep(after)
			_, _ = next()
		}()
		time.Sleep(s.m.upTo(200 * time.Millisecond))
		return driver.Reply{}, locktest.ErrReplyLost
	}
	r, err := next()
	if s.m.trouble(8) {
		time.Sleep(s.m.upTo(4 * time.Second))
	}
	s.held()
	if s.m.trouble(15) {
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return r, err
}

func (s *shaky) Subscribe(ch string, sharded bool, h func(driver.Notice)) func() {
	if !strings.Contains(ch, "orders") {
		return s.Tap.Subscribe(ch, sharded, h)
	}
	return s.Tap.Subscribe(ch, sharded, func(n driver.Notice) {
		if len(n.Payload) > 1 {
			s.m.mu.Lock()
			s.m.given++
			s.m.mu.Unlock()
		}
		for range 1 + s.m.draw(2) { // once or twice
			var d time.Duration
			s.mu.Lock()
			d = max(0, time.Until(s.until))
			s.mu.Unlock()
			if s.m.trouble(2) {
				d += s.m.upTo(10 * time.Second)
			}
			if !s.m.trouble(10) {
				time.AfterFunc(d, func() { h(n) })
			}
		}
	})
}

func (m *belief) client(cfg redlatch.Config) *redlatch.Client {
	s := &shaky{m: m}
	s.Tap = &locktest.Tap{Timeout: time.Second, Hook: s.hook}
	s.Tap.Redis = m.Driver()
	cfg.OutageTimeout = time.Minute
	c, err := redlatch.New(s, cfg)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Close() })
	return c
}

func (m *belief) enter(h *redlatch.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got++
	for other := range m.inside {
		if other.Err() == nil {
			m.Errorf("%s and %s believe that they have the lock", other.ID(), h.ID())
		}
	}
	m.inside[h] = true
}

func (m *belief) leave(h *redlatch.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.inside, h)
}

func (m *belief) run() {
	var wg sync.WaitGroup
	for i := range 3 {
		cfg := redlatch.Config{}
		if i == 0 {
			cfg.WatchdogTimeout = 10 * time.Second
		}
		c := m.client(cfg)
		for range 2 {
			wg.Go(func() {
				for time.Now().Before(m.calm) {
					time.Sleep(m.upTo(200 * time.Millisecond))
					m.once(c.FairLock("orders"))
				}
			})
		}
	}
	wg.Wait()
	time.Sleep(200 * time.Second) // debts
	synctest.Wait()
	m.Logf("got %d, given %d", m.got, m.given)
	if m.got < 10 || m.given < 5 {
		m.Errorf("%d got the lock, %d were given it: this shows little", m.got, m.given)
	}
	m.Server.Del("redisson_lock_token:{orders}")
	m.WantNothing()
}

func (m *belief) once(l *redlatch.Lock) {
	ctx, cancel := bg, context.CancelFunc(func() {})
	if m.draw(4) == 0 {
		ctx, cancel = context.WithTimeout(bg, m.upTo(3*time.Second))
	}
	defer cancel()
	var opts []redlatch.PlainOption
	switch m.draw(10) {
	case 0:
		opts = append(opts, redlatch.Lease(200*time.Millisecond+m.upTo(8*time.Second)))
	case 1:
		opts = append(opts, redlatch.Fenced())
	}
	h, err := locktest.With(l, opts...).Acquire(ctx)
	if err != nil {
		return
	}
	m.enter(h)
	stay := m.upTo(50 * time.Millisecond)
	if m.draw(12) == 0 {
		stay = m.upTo(9 * time.Second)
	}
	end := time.Now().Add(stay)
	for h.Err() == nil && time.Until(end) > 0 {
		step := time.NewTimer(min(time.Until(end), m.upTo(3*time.Second)))
		select {
		case <-step.C:
		case <-h.Context().Done():
		}
		step.Stop()
		if h.Err() == nil && m.draw(3) == 0 {
			if in, err := locktest.With(l, opts...).Acquire(h.Context()); err == nil {
				_ = in.Release(bg)
			}
		}
	}
	m.leave(h)
	_ = h.Release(bg)
}
