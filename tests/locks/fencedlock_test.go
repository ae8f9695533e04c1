package locks

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const tokenKey = "redisson_lock_token:{orders}"

// tokenNow returns the counter in Redis.
func tokenNow(w *locktest.World) int64 {
	w.Helper()
	text, err := w.Server.Get(tokenKey)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// redisson testTokenIncrease: the first token is 1, then one more each time.
func TestTokensRiseWithEveryAcquisition(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		last := int64(0)
		for i := range 20 {
			l := a.Lock("orders", redlatch.Fenced())
			if i%2 == 1 {
				l = b.Lock("orders", redlatch.Fenced())
			}
			var opts []redlatch.PlainOption
			if i%3 == 1 {
				opts = append(opts, redlatch.Lease(time.Second)) // whose token Redisson forgets to honour
			}
			h := w.Acquire(bg, locktest.With(l, opts...))
			if h.Token() != last+1 || tokenNow(w) != last+1 {
				t.Fatalf("token %d after %d; Redis says %d", h.Token(), last, tokenNow(w))
			}
			last = h.Token()
			w.Release(h)
			if h.Token() != last {
				t.Error("the token of a released hold has changed")
			}
		}
		if ttl := w.Server.TTL(tokenKey); ttl != 0 {
			t.Errorf("the counter expires in %v", ttl)
		}
	})
}

// Whoever writes once more after his release shows the token that he had, and is
// refused for that if somebody else has shown a higher one; not for having none.
func TestATokenOutlastsTheHoldWhoeverHasTheLockNext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).Lock("orders")
		h := w.Acquire(bg, locktest.With(l, redlatch.Fenced()))
		inner := w.Acquire(h.Context(), locktest.With(l, redlatch.Fenced()))
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Release(inner)
		w.Release(h)
		if n := <-next; n.ID() != h.ID() || n.Token() != 0 {
			t.Errorf("it was not passed on: %s to %s, whose token is %d", h.ID(), n.ID(), n.Token())
		} else {
			w.Release(n)
		}
		if h.Token() != 1 || inner.Token() != 1 {
			t.Errorf("tokens %d and %d, want 1", h.Token(), inner.Token())
		}
	})
}

// Handing over needs a request for a token of its own: one round trip, no more.
func TestTokensRiseWithEveryHandOver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var requests atomic.Int64
		d := &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			requests.Add(1)
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		l := c.Lock("orders", redlatch.Fenced())
		h := w.Acquire(bg, l)
		var tokens []int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				h := w.Acquire(bg, l)
				tokens = append(tokens, h.Token())
				w.Release(h)
			})
			synctest.Wait()
		}
		requests.Store(0)
		w.Release(h)
		wg.Wait()
		for i, token := range tokens {
			if token != int64(i)+2 {
				t.Fatalf("tokens %v", tokens)
			}
		}
		if n := requests.Load(); n < 100 || n > 101 { // one each, and the last release
			t.Errorf("%d requests for 100 hand-overs", n)
		}
	})
}

// A plain holder in between must not give the next one a token twice, nor wear
// one itself.
func TestPlainAndFencedAcquirersOfOneLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		plain, fenced := c.Lock("orders"), c.Lock("orders", redlatch.Fenced())
		h := w.Acquire(bg, fenced)
		type got struct {
			fenced bool
			token  int64
		}
		var all []got
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				l, asks := plain, i%3 == 0
				if asks {
					l = fenced
				}
				h := w.Acquire(bg, l)
				all = append(all, got{asks, h.Token()})
				if !asks {
					_, err := fenced.Acquire(h.Context())
					w.WantErr(err, redlatch.ErrReentry)
				}
				w.Release(h)
			})
			synctest.Wait()
		}
		w.Release(h)
		wg.Wait()
		last := h.Token()
		for i, g := range all {
			switch {
			case g.fenced && g.token != last+1:
				t.Errorf("acquisition %d has token %d after %d", i, g.token, last)
			case !g.fenced && g.token != 0:
				t.Errorf("acquisition %d did not ask, and has token %d", i, g.token)
			case g.fenced:
				last = g.token
			}
		}
		if len(all) != 40 || w.Server.Exists("orders") {
			t.Error("not all, or still held")
		}
	})
}

func TestReenteringKeepsTheToken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		outer := w.Acquire(bg, c.Lock("orders", redlatch.Fenced()))
		inner := w.Acquire(outer.Context(), c.Lock("orders", redlatch.Fenced()))
		silent := w.Acquire(inner.Context(), c.Lock("orders"))
		innermost := w.Acquire(silent.Context(), c.Lock("orders", redlatch.Fenced()))
		if outer.Token() != 1 || inner.Token() != 1 || silent.Token() != 0 || innermost.Token() != 1 || tokenNow(w) != 1 {
			t.Errorf("tokens %d, %d, %d, %d; Redis says %d", outer.Token(), inner.Token(), silent.Token(), innermost.Token(), tokenNow(w))
		}
		for _, h := range []*redlatch.Hold{innermost, silent, inner, outer} {
			w.Release(h)
		}
		plain := w.Acquire(bg, c.Lock("orders"))
		_, err := c.Lock("orders", redlatch.Fenced()).Acquire(plain.Context())
		w.WantErr(err, redlatch.ErrReentry)
		if plain.Token() != 0 || tokenNow(w) != 1 || w.Count(plain) != "1" {
			t.Errorf("token %d, Redis says %d, count %s", plain.Token(), tokenNow(w), w.Count(plain))
		}
		w.Release(plain)
		ctx := redlatch.WithOwner(bg)
		plain = w.Acquire(ctx, c.Lock("orders"))
		_, err = c.Lock("orders", redlatch.Fenced()).Acquire(ctx)
		w.WantErr(err, redlatch.ErrReentry)
		w.Release(plain)
		if w.Server.Exists("orders") {
			t.Error("still held")
		}
	})
}

// Whatever is lost, the holder has the token that Redis gave this acquisition.
func TestALostReplyDoesNotCostAToken(t *testing.T) {
	for _, script := range []string{"lock.take", "lock.transfer", "lock.yield"} {
		for _, executed := range []bool{true, false} {
			t.Run(fmt.Sprint(script, executed), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var lose, lost atomic.Int64
					d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if s != script || lose.Add(-1) < 0 {
							return next()
						}
						lost.Add(1)
						if executed {
							_, _ = next()
						}
						return driver.Reply{}, locktest.ErrReplyLost
					}}
					c := w.Tapped(redlatch.Config{}, d)
					l := c.Lock("orders", redlatch.Fenced())
					if script == "lock.take" {
						lose.Store(2)
					}
					h := w.Acquire(bg, l)
					if h.Token() != 1 {
						t.Errorf("token %d", h.Token())
					}
					next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
					synctest.Wait()
					if script == "lock.yield" {
						time.Sleep(10 * time.Millisecond) // the quantum is over
					}
					if script != "lock.take" {
						lose.Store(2)
					}
					w.Release(h)
					h = <-next
					if h.Token() != 2 || tokenNow(w) != 2 {
						t.Errorf("token %d after 1; Redis says %d", h.Token(), tokenNow(w))
					}
					if lost.Load() == 0 {
						t.Error("nothing was lost")
					}
					w.Release(h)
					time.Sleep(5 * time.Minute)
					if w.Server.Exists("orders") {
						t.Error("still held")
					}
					h = w.Acquire(bg, l)
					if h.Token() != 3 {
						t.Errorf("token %d after 2", h.Token())
					}
					w.Release(h)
				})
			})
		}
	}
}

// A take that is executed after its caller has left costs a number, which nobody
// has: tokens still rise.
func TestALateTakeCountsHarmlessly(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var args []string
		d := &locktest.Tap{}
		d.Hook = func(s string, a []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.take" && args == nil {
				args = append([]string{}, a...)
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}
		c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Fenced()))
		if h.Token() != 1 {
			t.Fatalf("token %d", h.Token())
		}
		d.Again("lock.take", args)() // while the lock is ours
		if tokenNow(w) != 1 {
			t.Errorf("a replay counts: %d", tokenNow(w))
		}
		w.Release(h)
		h = w.Acquire(bg, other.Lock("orders", redlatch.Fenced()))
		d.Again("lock.take", args)() // while it is another's
		if h.Token() != 2 || tokenNow(w) != 2 || w.Count(h) != "1" {
			t.Errorf("token %d, Redis says %d, count %s", h.Token(), tokenNow(w), w.Count(h))
		}
		w.Release(h)
		d.Again("lock.take", args)() // while it is nobody's
		h = w.Acquire(bg, other.Lock("orders", redlatch.Fenced()))
		if h.Token() <= 2 {
			t.Errorf("token %d after 2", h.Token())
		}
		w.Release(h)
	})
}

// redisson #6510: counters that are kept for ever.
func TestTokensRiseAfterTheirCounterHasExpired(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{TokenTTL: time.Minute})
		l := c.Lock("orders", redlatch.Fenced())
		last := int64(0)
		take := func() {
			t.Helper()
			h := w.Acquire(bg, l)
			if h.Token() <= last || h.Token() != tokenNow(w) {
				t.Errorf("token %d after %d; Redis says %d", h.Token(), last, tokenNow(w))
			}
			if ttl := w.Server.TTL(tokenKey); ttl <= 59*time.Second || ttl > time.Minute {
				t.Errorf("the counter expires in %v", ttl)
			}
			last = h.Token()
			w.Release(h)
		}
		take()
		if seed := time.Now().UnixMicro(); last < seed-1_000_000 || last > seed+1 {
			t.Errorf("the first token is %d, want the server's clock, %d", last, seed)
		}
		for range 1000 {
			take()
		}
		time.Sleep(2 * time.Minute)
		if w.Server.Exists(tokenKey) {
			t.Fatal("the counter is still there")
		}
		take()
		// A counter that expires under a holder is seeded again.
		h := w.Acquire(bg, l)
		last = h.Token()
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		time.Sleep(10 * time.Minute)
		if w.Server.Exists(tokenKey) {
			t.Fatal("the counter is still there")
		}
		w.Release(h)
		h = <-next
		if h.Token() <= last {
			t.Errorf("token %d after %d", h.Token(), last)
		}
		w.Release(h)
	})
}

// Redisson's fenced lock does INCR on the same key, without a TTL.
func TestOneSequenceOfTokensWithRedisson(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{TokenTTL: ttl})
				last := int64(0)
				rises := func(who string, token int64) {
					t.Helper()
					if token <= last {
						t.Errorf("%s has token %d after %d", who, token, last)
					}
					last = token
				}
				java := func() {
					n, err := w.Server.Incr(tokenKey, 1)
					if err != nil {
						t.Fatal(err)
					}
					w.Server.HSet("orders", "285475da-9152-4c83-822a-67ee2f116a79:52", "1")
					w.Server.SetTTL("orders", 30*time.Second)
					rises("Java", int64(n))
					w.Server.Del("orders")
				}
				java()
				for range 5 {
					h := w.Acquire(bg, c.Lock("orders", redlatch.Fenced()))
					rises("Go", h.Token())
					w.Release(h)
					java()
				}
			})
		})
	}
}

// Every type counts in the same sequence.
func TestEveryLockCanBeFenced(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for i, l := range []*redlatch.Lock{c.Lock("orders"), c.Lock("orders", redlatch.NonReentrant()), redisson.SpinLock(c, "orders", nil), c.Lock("orders", redlatch.Fenced())} {
			h := w.Acquire(bg, locktest.With(l, redlatch.Fenced()))
			if h.Token() != int64(i)+1 {
				t.Errorf("lock %d: token %d", i, h.Token())
			}
			w.Release(h)
			h, err := l.TryAcquire(bg, 0)
			if err != nil {
				t.Fatal(err)
			}
			if l := i == 3; l != (h.Token() > 0) {
				t.Errorf("lock %d without Fenced: token %d", i, h.Token())
			}
			w.Release(h)
		}
	})
}
