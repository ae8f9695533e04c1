package redlatch_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/goredis"
)

// A tap sits between a client and its driver and can hold back, repeat or lose
// what a script answers.
type tap struct {
	redlatch.Redis
	timeout time.Duration
	hook    func(s string, args []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error)
	subs    atomic.Int64
	seen    func(context.Context)
	scripts sync.Map
	off     atomic.Bool
	mu      sync.Mutex
	breaks  []func(string)
}

func (d *tap) Run(ctx context.Context, s *redlatch.Script, keys, args []string) (redlatch.Reply, error) {
	d.scripts.Store(s.Name(), [2]any{s, keys})
	if d.seen != nil {
		d.seen(ctx)
	}
	next := func() (redlatch.Reply, error) { return d.Redis.Run(ctx, s, keys, args) }
	if d.hook == nil || d.off.Load() {
		return next()
	}
	return d.hook(s.Name(), args, next)
}

func (d *tap) again(name string, args []string) func() {
	v, _ := d.scripts.Load(name)
	sk := v.([2]any)
	return func() { _, _ = d.Redis.Run(context.Background(), sk[0].(*redlatch.Script), sk[1].([]string), args) }
}

func (d *tap) Traits() redlatch.Traits {
	t := d.Redis.Traits()
	if d.timeout > 0 {
		t.Timeout = d.timeout
	}
	return t
}

func (d *tap) Subscribe(ch string, sharded bool, h func(redlatch.Notice)) func() {
	d.subs.Add(1)
	stop := d.Redis.Subscribe(ch, sharded, h)
	return sync.OnceFunc(func() { d.subs.Add(-1); stop() })
}

func (d *tap) OnBreak(f func(string)) func() {
	d.mu.Lock()
	d.breaks = append(d.breaks, f)
	d.mu.Unlock()
	return d.Redis.OnBreak(f)
}

func (w *world) tapped(cfg redlatch.Config, d *tap) *redlatch.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr:        "127.0.0.1:1",
		Dialer:      func(context.Context, string, string) (net.Conn, error) { return w.server.Dial() },
		DialTimeout: 50 * time.Millisecond, ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
		MaxRetries: -1, DisableIdentity: true,
	})
	w.Cleanup(func() { _ = rdb.Close() })
	d.Redis = goredis.Use(rdb)
	c, err := redlatch.New(d, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

var errTapUnknown = &redlatch.RunError{Outcome: redlatch.Unknown, Err: errors.New("reply lost")}

// lock.reenter.lua answers a replay without raising the TTL, and the client
// trusts it from the send time of the replay.
func TestTheReplayOfAReentryIsNotTrustedLongerThanItsTTL(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" {
				switch n.Add(1) {
				case 1:
					return redlatch.Reply{}, errTapUnknown
				case 2:
					_, _ = next()
					time.Sleep(5 * time.Second) // the reply is lost
					return redlatch.Reply{}, errTapUnknown
				}
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		outer := w.acquire(c.Lock("orders"), bg, redlatch.Lease(10*time.Second))
		inner := w.acquire(c.Lock("orders"), outer.Context(), redlatch.Lease(20*time.Second))
		trust, ttl := time.Until(inner.Expires()), w.server.TTL("orders")
		if trust > ttl {
			t.Errorf("trusted for another %v, but Redis gives the lock away in %v", trust, ttl)
		}
		other := w.client(redlatch.Config{})
		h := w.acquire(other.Lock("orders"), bg)
		if inner.Err() == nil {
			t.Error("two holders")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
		w.release(h)
	})
}

func TestSiblingsDoNotOverlapIfTheOuterIsReleasedWhileOneEnters(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" {
				if n.Add(1) == 2 {
					time.Sleep(50 * time.Millisecond)
				}
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		g := w.acquire(l, bg)
		p := w.acquire(l, g.Context())
		detached := context.WithoutCancel(p.Context())
		type res struct {
			h   *redlatch.Hold
			err error
		}
		xc := later(func() res { h, err := l.Acquire(detached); return res{h, err} })
		time.Sleep(10 * time.Millisecond) // x is being entered
		pr := later(func() error { return p.Release(bg) })
		qc := later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
		x := <-xc
		if x.err != nil {
			t.Fatal(x.err)
		}
		synctest.Wait()
		select {
		case q := <-qc:
			if q.err == nil && q.h.Err() == nil && x.h.Err() == nil {
				t.Error("q, a sibling of p, is in while x, nested in p, is live")
			}
			rc := later(func() res { h, err := l.Acquire(g.Context()); return res{h, err} })
			synctest.Wait()
			w.release(x.h)
			synctest.Wait()
			select {
			case r := <-rc:
				if r.h.Err() == nil && q.h.Err() == nil {
					t.Error("r and q, nested in the same hold, are both live")
				}
				w.release(r.h)
				w.release(q.h)
			default:
				w.release(q.h)
				w.release((<-rc).h)
			}
		default:
			w.release(x.h)
			w.release((<-qc).h)
		}
		_ = <-pr
		w.release(g)
	})
}

func TestAnAcquisitionThatMeetsCloseReturnsNoUnwatchedHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{timeout: 100 * time.Millisecond, hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(50 * time.Millisecond)
			}
			return r, err
		}}
		c := w.tapped(redlatch.Config{}, d)
		var h *redlatch.Hold
		done := later(func() error { var err error; h, err = c.Lock("orders").Acquire(bg); return err })
		time.Sleep(10 * time.Millisecond)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			return // fine
		}
		ctx := h.Context()
		other := w.client(redlatch.Config{})
		h2 := w.acquire(other.Lock("orders"), bg)
		select {
		case <-ctx.Done():
		default:
			t.Error("Acquire returned a hold after Close; somebody else has the lock now and Done is not closed")
		}
		w.release(h2)
	})
}

func TestCloseEndsTheSubscriptionOfAContendedHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{}
		c := w.tapped(redlatch.Config{}, d)
		other := w.client(redlatch.Config{})
		f := w.acquire(other.Lock("orders"), bg)
		hc := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), bg) })
		time.Sleep(time.Second)
		w.release(f)
		h := <-hc
		_ = c.Close()
		_ = h.Release(bg)
		if n := d.subs.Load(); n != 0 {
			t.Errorf("%d subscriptions after Close", n)
		}
	})
}

func TestAHoldThatWasPassedOnIsRenewedAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context(), redlatch.Lease(10*time.Second))
		hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.release(outer)
		w.release(inner)
		h := <-hc
		time.Sleep(2 * time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("a watchdog hold, server healthy: %v", err)
		}
		_ = h.Release(bg)
	})
}

func TestAWatchdogInsideAShortLeaseRenewsEachThirdOfItsOwn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.renew" {
				n.Add(1)
				time.Sleep(4 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(20*time.Millisecond))
		inner := w.acquire(l, outer.Context())
		time.Sleep(time.Minute)
		t.Logf("%d renewals in a minute", n.Load())
		if n.Load() > 20 {
			t.Errorf("%d renewals in a minute", n.Load())
		}
		if err := inner.Err(); err != nil {
			t.Errorf("a watchdog hold, server healthy: %v", err)
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
	})
}

func TestContextsOfOneHoldMayBeAskedForConcurrently(t *testing.T) {
	w := realTime(t)
	c := w.client(redlatch.Config{})
	h := w.acquire(c.Lock("orders"), bg)
	ctx := h.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			_ = h.Context()
		}
	}()
	for range 1000 {
		select {
		case <-ctx.Done():
		default:
		}
	}
	<-done
	w.release(h)
}

func TestTryUnderWithOwnerDoesNotWait(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		f := w.acquire(other.Lock("orders"), bg)
		ctx := redlatch.WithOwner(bg)
		hc := later(func() *redlatch.Hold { return w.acquire(c.Lock("orders"), ctx) })
		synctest.Wait()
		start := time.Now()
		tc := later(func() error {
			h, err := c.Lock("orders").Try(ctx)
			if h != nil {
				w.release(h)
			}
			return err
		})
		time.Sleep(time.Minute)
		select {
		case err := <-tc:
			w.wantErr(err, redlatch.ErrBusy)
		default:
			t.Errorf("Try has waited for %v", time.Since(start))
		}
		w.release(f)
		w.release(<-hc)
	})
}

func TestConcurrentReleasesOfANestCountRight(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		bad, wrong := 0, 0
		for range 500 {
			outer := w.acquire(l, bg)
			inner := w.acquire(l, outer.Context())
			hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
			synctest.Wait()
			e1 := later(func() error { return inner.Release(bg) })
			e2 := later(func() error { return outer.Release(bg) })
			h := <-hc
			err1, err2 := <-e1, <-e2
			if err1 != nil || err2 != nil {
				bad++
			}
			synctest.Wait()
			if n := w.count(h); n != "1" {
				wrong++
			}
			w.release(h)
		}
		if bad > 0 || wrong > 0 {
			t.Errorf("of 500: %d first releases failed, %d times Redis shows a wrong count", bad, wrong)
		}
		bad = 0
		for range 500 {
			outer := w.acquire(l, bg)
			inner := w.acquire(l, outer.Context())
			e1 := later(func() error { return inner.Release(bg) })
			e2 := later(func() error { return outer.Release(bg) })
			for _, err := range []error{<-e1, <-e2} {
				if err != nil {
					bad++
					if bad == 1 {
						t.Log(err)
					}
				}
			}
		}
		if bad > 0 {
			t.Errorf("of 500: %d first releases failed", bad)
		}
	})
}

func TestAnOutageIsRetryableAndNotTheCallersDeadline(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			time.Sleep(5 * time.Second) // a driver that hangs
			return redlatch.Reply{}, errTapUnknown
		}}
		c := w.tapped(redlatch.Config{}, d)
		_, err := c.Lock("orders").Acquire(bg)
		t.Log(err)
		if !errors.Is(err, redlatch.ErrUnavailable) {
			t.Fatal(err)
		}
		if !redlatch.IsRetryable(err) {
			t.Error("not retryable")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("looks like the caller's deadline")
		}
		d.off.Store(true)
		time.Sleep(10 * time.Minute)
	})
}

func TestALeaseThatOverflowsIsRefused(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, args []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if n.Add(1) < 3 {
				t.Log(s, args)
			}
			time.Sleep(time.Millisecond)
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		ctx, cancel := context.WithCancel(bg)
		done := later(func() error {
			h, err := c.Lock("orders").Acquire(ctx, redlatch.Lease(math.MaxInt64))
			if err == nil {
				w.release(h)
			}
			return err
		})
		time.Sleep(100 * time.Millisecond)
		select {
		case err := <-done:
			t.Log(err)
		default:
			t.Errorf("Acquire spins: %d requests so far", n.Load())
		}
		cancel()
		synctest.Wait()
	})
}

// A loss while the tenure is between two holders releases nothing.
func TestALossBetweenTwoHoldersIsReleased(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{MaxHold: time.Second}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context())
		time.Sleep(time.Second - 50*time.Millisecond - 20*time.Millisecond)
		e1 := later(func() error { return inner.Release(bg) }) // recounts for 50 ms
		synctest.Wait()
		e2 := later(func() error { return outer.Release(bg) }) // waits for it; MaxHold passes
		t.Log(<-e1, <-e2)
		time.Sleep(5 * time.Second)
		if w.server.Exists("orders") {
			t.Errorf("five seconds later still held, for %v", w.server.TTL("orders"))
		}
	})
}

// A recount that nobody answered stops the renewals for good.
func TestRenewalGoesOnAfterAnUnansweredRecount(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if down.Load() {
				return redlatch.Reply{}, errTapUnknown
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context())
		down.Store(true)
		err := inner.Release(bg)
		t.Log(err)
		down.Store(false) // after ten seconds
		time.Sleep(time.Minute)
		if err := outer.Err(); err != nil {
			t.Errorf("the server was away for 10 s and then healthy: %v", err)
		}
		_ = outer.Release(bg)
	})
}

func TestAcquireEndsWithItsContextWhenItMeetsADebt(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.release" {
				time.Sleep(10 * time.Second)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		w.server.HSet("orders", c.ID()+":999", "1")
		w.server.SetTTL("orders", time.Minute)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Lock("orders").Acquire(ctx)
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("a context of 100 ms ended Acquire after %v: %v", took, err)
		}
		d.off.Store(true)
		time.Sleep(time.Minute)
	})
}

func TestWaitBoundsAReentry(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var slow atomic.Bool
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" && slow.Load() {
				time.Sleep(2900 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context())
		slow.Store(true)
		e := later(func() error { return inner.Release(bg) })
		synctest.Wait()
		start := time.Now()
		_, err := l.Acquire(context.WithoutCancel(outer.Context()), redlatch.Wait(100*time.Millisecond))
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("Wait(100ms) ended after %v: %v", took, err)
		}
		_ = <-e
		slow.Store(false)
		time.Sleep(20 * time.Second)
		_ = outer.Release(bg)
	})
}

func TestALeaseShorterThanARoundTripDoesNotSpin(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var n atomic.Int64
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.take" {
				n.Add(1)
			}
			r, err := next()
			time.Sleep(12 * time.Millisecond)
			return r, err
		}}
		c := w.tapped(redlatch.Config{}, d)
		done := later(func() error { _, err := c.Lock("orders").Acquire(bg, redlatch.Lease(20*time.Millisecond)); return err })
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Log(err, n.Load())
		default:
			t.Errorf("Acquire has sent %d takes in a minute", n.Load())
		}
	})
}

func TestALongTTLIsNotPassedOn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		inner := w.acquire(l, outer.Context(), redlatch.Lease(time.Hour))
		hc := later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.release(inner)
		w.release(outer)
		h := <-hc
		if ttl := w.server.TTL("orders"); ttl > 30*time.Second {
			t.Errorf("if this process dies, the watchdog hold of the next lasts %v", ttl)
		}
		w.release(h)
	})
}

func TestMaxHoldBoundsAReentry(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{MaxHold: time.Minute})
		l := c.Lock("orders")
		outer := w.acquire(l, bg, redlatch.Lease(10*time.Second))
		inner := w.acquire(l, outer.Context())
		time.Sleep(10 * time.Minute)
		if inner.Err() == nil {
			t.Error("the watchdog has kept a hold for 10 minutes, MaxHold is 1")
		}
		_ = inner.Release(bg)
		_ = outer.Release(bg)
	})
}

func TestAnOwnerNestedInAHoldKeepsItsTurn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.Lock("orders")
		g := w.acquire(l, bg)
		sc := redlatch.WithOwner(g.Context())
		a1 := w.acquire(l, sc)
		a2 := w.acquire(l, sc)
		bc := later(func() *redlatch.Hold { return w.acquire(l, g.Context()) })
		synctest.Wait()
		w.release(a1)
		synctest.Wait()
		var b *redlatch.Hold
		select {
		case b = <-bc:
			if a2.Err() == nil {
				t.Error("b, nested in g, is live together with a2, which is under an owner nested in g")
			}
			w.release(a2)
		default:
			w.release(a2)
			b = <-bc
		}
		w.release(b)
		w.release(g)
	})
}

// A revocation is confirmed although the take it is about is still under way.
func TestARevocationEndsATakeUnderWay(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			r, err := next()
			if s == "lock.take" {
				time.Sleep(2 * time.Second) // a slow reply, in time
			}
			return r, err
		}}
		a, b := w.tapped(redlatch.Config{}, d), w.client(redlatch.Config{})
		hc := later(func() *redlatch.Hold { h, _ := a.Lock("orders").Acquire(bg); return h })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		ok, err := b.Lock("orders").ForceRelease(bg)
		t.Log(ok, err, time.Since(start))
		h2 := w.acquire(b.Lock("orders"), bg)
		time.Sleep(time.Minute)
		select {
		case h := <-hc:
			t.Errorf("two holders; the revocation was confirmed: %v, %v", h.Err(), h2.Err())
		default:
		}
		w.release(h2)
		w.release(<-hc)
	})
}

// A re-entry of unknown outcome whose caller leaves between two
// attempts is sent again under the same id, so the first one can arrive late.
func TestALateReentryAfterItsCallerLeftChangesNothing(t *testing.T) {
	inFakeTime(t, func(w *world) {
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		d := &tap{}
		d.hook = func(s string, args []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" {
				t.Log(args)
				if n.Add(1) == 1 {
					late := d.again(s, args)
					time.AfterFunc(300*time.Millisecond, late)
					time.AfterFunc(time.Millisecond, cancel)
					return redlatch.Reply{}, errTapUnknown
				}
			}
			return next()
		}
		c := w.tapped(redlatch.Config{}, d)
		l := c.Lock("orders")
		outer := w.acquire(l, bg)
		_, err := l.Acquire(outer.With(ctx))
		t.Log(err)
		time.Sleep(10 * time.Second)
		if got := w.count(outer); got != "1" {
			t.Errorf("one hold, Redis shows %s", got)
		}
		w.release(outer)
	})
}

func TestALossDuringAReentryIsErrLost(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{hook: func(s string, _ []string, next func() (redlatch.Reply, error)) (redlatch.Reply, error) {
			if s == "lock.reenter" {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}
		c := w.tapped(redlatch.Config{MaxHold: time.Second}, d)
		outer := w.acquire(c.Lock("orders"), bg)
		time.Sleep(980 * time.Millisecond)
		_, err := c.Lock("orders").Acquire(outer.Context())
		if errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("ErrBusy: %v", err)
		}
	})
}

// A driver (or a hook of the user's go-redis client) that looks at its context
// after Run has returned.
func TestADriverMayKeepItsContext(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var kept context.Context
		d := &tap{seen: func(ctx context.Context) { kept = ctx }}
		c := w.tapped(redlatch.Config{}, d)
		w.release(w.acquire(c.Lock("orders"), bg))
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("panic: %v", r)
			}
		}()
		_ = kept.Value("trace")
	})
}
