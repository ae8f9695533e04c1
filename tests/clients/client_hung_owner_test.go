package clients

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A weak is a server that can be made to fail.
type weak struct{ fails atomic.Pointer[func() error] }

func (s *weak) client(w *locktest.World) *redlatch.Client {
	return w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if fails := s.fails.Load(); fails != nil {
			return driver.Reply{}, (*fails)()
		}
		return next()
	}})
}

func noMemory() error { return driver.ServerError("OOM command not allowed", errors.New("OOM")) }

// Re-entries of one owner are sent one after another. Each failed an outage after
// the one before it.
func TestReentriesOfOneOwnerFailInTheirOwnTimeInAnOutage(t *testing.T) {
	for how, fails := range map[string]func() error{
		"hangs":   func() error { time.Sleep(5 * time.Second); return locktest.ErrReplyLost },
		"refuses": func() error { time.Sleep(time.Millisecond); return noMemory() },
	} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var s weak
			l, owner := s.client(w).Lock("owned"), redlatch.WithOwner(bg)
			h := w.Acquire(owner, l)
			s.fails.Store(&fails)
			var lasted []<-chan time.Duration
			for range 12 {
				lasted = append(lasted, locktest.Later(func() time.Duration {
					began := time.Now()
					_, err := l.Acquire(owner)
					w.WantErr(err, redlatch.ErrUnavailable)
					return time.Since(began)
				}))
			}
			for i, d := range lasted {
				if took := <-d; took > 14*time.Second {
					t.Errorf("the server %s: caller %d has failed after %v", how, i, took)
				}
			}
			s.fails.Store(nil)
			_ = h.Release(bg) // it may have been lost
		})
	}
}

// Somebody who asked for others left in an outage, and his failure was theirs long
// after the server was well again.
func TestATroubleOfOneOwnerEndsWhenTheServerAnswers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var s weak
		l, other := s.client(w).Lock("owned"), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("owned"))
		owner := redlatch.WithOwner(bg)
		first, leave := context.WithCancel(owner)
		gone := locktest.Later(func() error { _, err := l.Acquire(first); return err })
		synctest.Wait()
		var behind []<-chan error
		for range 3 {
			time.Sleep(time.Second / 2)
			behind = append(behind, locktest.Later(func() error {
				h, err := l.Acquire(owner)
				if err == nil {
					err = h.Release(bg)
				}
				return err
			}))
		}
		fails := noMemory
		s.fails.Store(&fails)
		time.Sleep(2500 * time.Millisecond)
		s.fails.Store(nil)
		leave()
		w.WantErr(<-gone, context.Canceled)
		time.Sleep(30 * time.Second)
		w.Release(h)
		for i, b := range behind {
			if err := <-b; err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		}
	})
}

// Of the callers of one owner, the first one left in an outage. The next one waits
// for others of the process, and asks nothing meanwhile: what has become of the
// first one's requests says nothing to it, nor to those behind it, when the server
// is well again.
func TestATroubleOfOneOwnerIsOverForThoseThatWaitForOthersOfTheProcess(t *testing.T) {
	type side = func(c *redlatch.Client) *redlatch.Lock
	plain := func(c *redlatch.Client) *redlatch.Lock { return c.Lock("owned") }
	write := func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("owned").Write() }
	read := func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock("owned").Read() }
	for _, story := range []struct {
		what        string
		first, next side
		nested      bool
	}{{"a lock", plain, plain, false}, {"a writer", write, write, false}, {"readers", write, read, false}, {"a nest", plain, plain, true}} {
		t.Run(story.what, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var full atomic.Bool // for what acquires
				c := w.Tapped(redlatch.Config{NoHandOff: true}, &locktest.Tap{Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if full.Load() && !strings.Contains(script, "release") && script != "client.read" {
						return driver.Reply{}, noMemory()
					}
					return next()
				}})
				first, next := story.first(c), story.next(c)
				base := bg
				if story.nested {
					outer := w.Acquire(bg, first)
					defer func() { _ = outer.Release(bg) }()
					base = outer.Context()
				}
				owner := redlatch.WithOwner(base)
				leaves, leave := context.WithCancel(owner)
				full.Store(true)
				gone := locktest.Later(func() error { _, err := first.Acquire(leaves); return err })
				synctest.Wait()
				var behind []<-chan error
				for range 3 {
					behind = append(behind, locktest.Later(func() error {
						h, err := next.Acquire(owner)
						if err == nil {
							err = h.Release(bg)
						}
						return err
					}))
				}
				other := locktest.Later(func() *redlatch.Hold { return w.Acquire(base, first) })
				time.Sleep(2500 * time.Millisecond)
				full.Store(false)
				leave()
				if err := <-gone; !errors.Is(err, context.Canceled) || !errors.Is(err, redlatch.ErrUnavailable) {
					t.Errorf("the first caller: %v", err)
				}
				h := <-other
				time.Sleep(20 * time.Second) // for two outages
				full.Store(true)
				released := locktest.Later(func() error { return h.Release(bg) })
				time.Sleep(2 * time.Second) // for a fifth of one
				full.Store(false)
				w.OK(<-released)
				for i, b := range behind {
					if err := <-b; err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				}
			})
		})
	}
}

// While the server is unwell, they fail in their own time all the same.
func TestCallersOfOneOwnerBehindOthersOfTheProcessFailInTheirOwnTimeInAnOutage(t *testing.T) {
	for how, fails := range map[string]func() error{
		"hangs":   func() error { time.Sleep(5 * time.Second); return locktest.ErrReplyLost },
		"refuses": func() error { time.Sleep(time.Millisecond); return noMemory() },
	} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var s weak
			l, owner := s.client(w).Lock("owned"), redlatch.WithOwner(bg)
			s.fails.Store(&fails)
			var lasted []<-chan time.Duration
			for i := range 12 {
				ctx := owner
				if i%2 == 1 {
					ctx = bg
				}
				lasted = append(lasted, locktest.Later(func() time.Duration {
					began := time.Now()
					_, err := l.Acquire(ctx)
					w.WantErr(err, redlatch.ErrUnavailable)
					return time.Since(began)
				}))
				time.Sleep(500 * time.Millisecond)
			}
			for i, d := range lasted {
				if took := <-d; took < 10*time.Second || took > 14*time.Second {
					t.Errorf("the server %s: caller %d has failed after %v", how, i, took)
				}
			}
			s.fails.Store(nil)
			time.Sleep(time.Minute) // for what hangs
		})
	}
}

// A lock that is to stay for a while is nobody's to wait for: Shutdown waited for
// ten minutes.
func TestShutdownDoesNotWaitForALockThatIsToStay(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var s weak
		c := s.client(w)
		h := w.Acquire(bg, c.Lock("kept", redlatch.MinHold(10*time.Minute)))
		hangs := func() error { time.Sleep(5 * time.Second); return locktest.ErrReplyLost }
		s.fails.Store(&hangs)
		if err := h.Release(bg); err == nil {
			t.Error("a release that nobody has answered succeeds")
		}
		s.fails.Store(nil)
		began := time.Now()
		w.OK(c.Shutdown(bg))
		if took := time.Since(began); took > time.Minute {
			t.Errorf("Shutdown took %v", took)
		}
	})
}
