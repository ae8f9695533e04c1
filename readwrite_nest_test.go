package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

func TestAWriterMayWriteAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		outer := w.acquire(rw.Write(), bg, redlatch.Lease(time.Minute))
		inner := w.acquire(rw.Write(), outer.Context(), redlatch.Lease(time.Second))
		w.wantFields("nested", "orders", map[string]string{"mode": "write", outer.Owner() + ":write": "2"})
		if ttl := w.server.TTL("orders"); ttl < 59*time.Second || ttl > time.Minute {
			t.Errorf("the TTL is %v, want the longer lease, not the sum", ttl)
		}
		w.release(inner)
		w.wantFields("after the inner one", "orders", map[string]string{"mode": "write", outer.Owner() + ":write": "1"})
		w.release(outer)
		w.wantNoKeys()
	})
}

func TestAWriteInsideAReadIsRefusedAtOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		rd := w.acquire(rw.Read(), bg)
		start := time.Now()
		_, err := rw.Write().Acquire(rd.Context())
		w.wantErr(err, redlatch.ErrReentry)
		if !strings.Contains(err.Error(), "would wait for itself") || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		w.release(rd)
		ctx := redlatch.WithOwner(bg)
		rd = w.acquire(rw.Read(), ctx)
		_, err = rw.Write().Acquire(ctx)
		w.wantErr(err, redlatch.ErrReentry)
		w.release(rd)
		wr := w.acquire(rw.Write(), ctx)
		rd = w.acquire(rw.Read(), ctx)
		w.release(w.acquire(rw.Write(), ctx)) // beside its own write hold
		w.release(wr)
		_, err = rw.Write().Acquire(ctx)
		w.wantErr(err, redlatch.ErrReentry)
		w.release(rd)
		w.wantNoKeys()
	})
}

func TestReadsInsideAReadOverlapAndAskNobody(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		outer := w.acquire(rw.Read(), bg)
		wc := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg) }) // keeps others out, not the nested
		time.Sleep(time.Second)
		w.server.SetError("LOADING a nested read asks nobody")
		a := w.acquire(rw.Read(), outer.Context())
		b := w.acquire(rw.Read(), outer.Context())
		w.server.SetError("")
		w.release(outer)
		w.wantFields("without the outer one", "orders", map[string]string{"mode": "read", outer.Owner(): "1"})
		w.release(a)
		w.release(b)
		w.release(<-wc)
		_, err := rw.Read().Acquire(outer.Context())
		w.wantErr(err, redlatch.ErrNotHeld)
		w.wantNoKeys()
	})
}

// Siblings take turns, and a branch has had its own when nobody in it is left: no
// writer beside a reader, not even of one owner.
func TestABranchOfReadersKeepsItsTurnUntilTheLastOneLeaves(t *testing.T) {
	for name, ctxOf := range map[string]func(branch *redlatch.Hold, scope context.Context) context.Context{
		"nested":       func(branch *redlatch.Hold, _ context.Context) context.Context { return branch.Context() },
		"of one owner": func(_ *redlatch.Hold, scope context.Context) context.Context { return scope },
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				slow := &tap{timeout: 100 * time.Millisecond}
				slow.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "readwrite.renew" {
						time.Sleep(50 * time.Millisecond)
					}
					return next()
				}
				rw := w.tapped(redlatch.Config{}, slow).ReadWriteLock("orders")
				outer := w.acquire(rw.Write(), bg)
				scope := redlatch.WithOwner(outer.Context())
				branch := w.acquire(rw.Read(), scope)
				inner := w.acquire(rw.Read(), ctxOf(branch, scope))
				last := w.acquire(rw.Read(), ctxOf(inner, scope))
				_, err := rw.Read().Acquire(ctxOf(branch, scope), redlatch.Lease(time.Hour), redlatch.Wait(10*time.Millisecond))
				w.wantErr(err, redlatch.ErrBusy) // and keeps no turn
				next := later(func() *redlatch.Hold { return w.acquire(rw.Write(), outer.Context()) })
				for _, h := range []*redlatch.Hold{branch, inner, last} {
					if !none(next) {
						t.Fatal("a writer beside a reader")
					}
					w.release(h)
				}
				w.release(<-next)
				w.release(outer)
				w.wantNoKeys()
			})
		})
	}
}

func TestAReadInsideAWriteLivesOnAndLetsReadersIn(t *testing.T) {
	for _, waiter := range []string{"here", "elsewhere", "nobody"} {
		inFakeTime(t, func(w *world) {
			c := w.client(redlatch.Config{})
			rw := c.ReadWriteLock("orders")
			msgs := w.messages("orders")
			wr := w.acquire(rw.Write(), bg)
			rd := w.acquire(rw.Read(), wr.Context())
			w.wantFields("nested", "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1", wr.Owner(): "1"})
			if !w.server.Exists(wire.ReadTimeout("orders", wr.Owner(), 1)) {
				t.Fatal("no key for the read hold")
			}
			var got <-chan *redlatch.Hold
			switch waiter {
			case "here":
				got = later(func() *redlatch.Hold { return w.acquire(rw.Read(), bg) })
			case "elsewhere":
				other := w.client(redlatch.Config{})
				got = later(func() *redlatch.Hold { return w.acquire(other.ReadWriteLock("orders").Read(), bg) })
			}
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			w.release(wr)
			if got := msgs(); !slices.Equal(got, []string{"1"}) {
				t.Errorf("the downgrade published %q, want 1", got)
			}
			if got != nil {
				h := <-got
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("a reader waited %v after the downgrade", d)
				}
				defer w.release(h)
			} else {
				w.wantFields("downgraded", "orders", map[string]string{"mode": "read", rd.Owner(): "1"})
			}
			time.Sleep(2 * time.Minute) // the watchdog goes on
			if rd.Err() != nil {
				t.Fatal(rd.Err())
			}
			w.release(rd)
		})
	}
}

func TestADowngradeWhoseReplyIsLostIsDone(t *testing.T) {
	inFakeTime(t, func(w *world) {
		lose := 0
		d := &tap{}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "readwrite.downgrade" && lose > 0 {
				lose--
				return driver.Reply{}, errTapUnknown
			}
			return r, err
		}
		rw := w.tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context())
		lose = 2
		w.release(wr)
		w.wantFields("downgraded", "orders", map[string]string{"mode": "read", rd.Owner(): "1"})
		if !w.server.Exists(wire.ReadTimeout("orders", rd.Owner(), 1)) || len(w.server.Keys()) != 2 {
			t.Errorf("keys %q", w.server.Keys())
		}
		time.Sleep(time.Minute)
		w.release(rd)
		time.Sleep(5 * time.Minute)
		w.wantNoKeys()
	})
}

// The server is away for longer than a call lasts: the downgrade comes all the same,
// and keeps what the reader trusts.
func TestADowngradeIsSentUntilItIsAnswered(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var away atomic.Bool
		var sent atomic.Int64
		d := &tap{}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				sent.Add(1)
				if away.Load() {
					return driver.Reply{}, errTapUnknown
				}
			}
			return next()
		}
		rw := w.tapped(redlatch.Config{OutageTimeout: time.Second}, d).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg, redlatch.Lease(time.Hour))
		rd := w.acquire(rw.Read(), wr.Context())
		away.Store(true)
		w.wantErr(wr.Release(bg), redlatch.ErrUnavailable)
		time.Sleep(10 * time.Second)
		other := w.client(redlatch.Config{}).ReadWriteLock("orders").Read()
		_, err := other.Try(bg)
		w.wantErr(err, redlatch.ErrBusy)
		away.Store(false)
		time.Sleep(2 * time.Second)
		h, err := other.Try(bg)
		w.no(err)
		w.release(h)
		if ttl, lock := w.server.TTL(wire.ReadTimeout("orders", rd.Owner(), 1)), w.server.TTL("orders"); ttl < lock || lock < 50*time.Minute {
			t.Errorf("the read hold lasts for %v, the lock for %v", ttl, lock)
		}
		before := sent.Load()
		time.Sleep(time.Minute)
		if sent.Load() != before {
			t.Error("sent again after the answer")
		}
		w.release(rd)
		w.wantNoKeys()
	})
}

func TestADowngradeThatIsRefusedIsNotRepeated(t *testing.T) {
	inFakeTime(t, func(w *world) {
		refused := 0
		d := &tap{}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				refused++
				return driver.Reply{}, driver.ServerError("NOPERM no", errors.New("NOPERM no"))
			}
			return next()
		}
		rw := w.tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context())
		if err := wr.Release(bg); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if refused != 1 || rd.Err() != nil {
			t.Errorf("refused %d times, %v", refused, rd.Err())
		}
		w.release(rd)
		w.wantNoKeys()
	})
}

// What somebody has read inside a write hold goes with the owner that read it.
func TestAReadInsideAWriteIsNotLeftByATransferOrATurn(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		for _, opts := range [][]redlatch.Option{{redlatch.Lease(time.Minute)}, {}} {
			h := w.acquire(rw.Write(), bg)
			w.release(w.acquire(rw.Read(), h.Context()))
			if len(opts) == 0 {
				time.Sleep(10 * time.Millisecond) // a turn
			}
			next := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg, opts...) })
			synctest.Wait()
			old := h.Owner()
			w.release(h)
			h = <-next
			if h.Owner() == old {
				t.Fatal("the owner is the same: nothing is tested")
			}
			w.wantFields("the next one's", "orders", map[string]string{"mode": "write", h.Owner() + ":write": "1"})
			if len(w.server.Keys()) != 1 {
				t.Errorf("keys %q", w.server.Keys())
			}
			w.release(h)
		}
		w.wantNoKeys()
	})
}

func TestTheReadInsideAWriteMayEndFirst(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context())
		r2 := w.acquire(rw.Read(), rd.Context())
		w.release(rd)
		w.release(r2)
		w.wantFields("the writer's", "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1", wr.Owner(): "1"})
		next := later(func() *redlatch.Hold { return w.acquire(rw.Read(), bg) })
		synctest.Wait()
		w.release(wr)
		w.release(<-next)
		w.wantNoKeys()
	})
}

func TestALeaseInsideAWriteEndsByItself(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context(), redlatch.Lease(5*time.Second))
		time.Sleep(6 * time.Second)
		w.wantErr(rd.Err(), redlatch.ErrLost)
		w.wantFields("the writer's", "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1", wr.Owner(): "1"})
		w.wantErr(rd.Release(bg), redlatch.ErrLost)
		w.release(wr)
		w.wantNoKeys()
	})
}

func TestAWriteLockIsPassedOnInsideAProcess(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Write()
		h := w.acquire(l, bg)
		next := later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.server.SetError("LOADING a hand-off does not ask")
		w.release(h)
		h2 := <-next
		w.server.SetError("")
		leased := later(func() *redlatch.Hold { return w.acquire(l, bg, redlatch.Lease(time.Minute)) })
		synctest.Wait()
		w.release(h2) // a transfer
		h3 := <-leased
		w.wantFields("transferred", "orders", map[string]string{"mode": "write", h3.Owner() + ":write": "1"})
		time.Sleep(10 * time.Millisecond)
		next = later(func() *redlatch.Hold { return w.acquire(l, bg) })
		synctest.Wait()
		w.release(h3) // a turn
		h4 := <-next
		w.wantFields("turned", "orders", map[string]string{"mode": "write", h4.Owner() + ":write": "1"})
		time.Sleep(time.Minute)
		w.release(h4)
		w.wantNoKeys()
	})
}

// Under WithOwner a second write may be wanted while the first is released and only
// a read is left: once Redis is to let others read, there is no way back.
func TestAWriteDoesNotOvertakeADowngrade(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{timeout: 100 * time.Millisecond}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}
		rw := w.tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		wr, rd := w.acquire(rw.Write(), ctx), w.acquire(rw.Read(), ctx)
		released := later(func() error { return wr.Release(bg) })
		time.Sleep(10 * time.Millisecond)
		_, err := rw.Write().Acquire(ctx)
		w.wantErr(err, redlatch.ErrReentry)
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		w.wantFields("in the end", "orders", map[string]string{"mode": "read", rd.Owner(): "1"})
		w.release(rd)
		w.wantNoKeys()
	})
}

// The first write is released while the second is on its way: nobody else may read
// between the two.
func TestAWriteOnItsWayKeepsTheLockWritten(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &tap{timeout: 100 * time.Millisecond}
		d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}
		rw := w.tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		w1, rd := w.acquire(rw.Write(), ctx), w.acquire(rw.Read(), ctx)
		got := later(func() *redlatch.Hold { return w.acquire(rw.Write(), ctx) })
		time.Sleep(10 * time.Millisecond)
		w.release(w1)
		w2 := <-got
		w.wantFields("written", "orders", map[string]string{"mode": "write", rd.Owner() + ":write": "1", rd.Owner(): "1"})
		w.release(w2)
		w.wantFields("in the end", "orders", map[string]string{"mode": "read", rd.Owner(): "1"})
		w.release(rd)
		w.wantNoKeys()
	})
}

func TestAWriteThatFailsOnItsWayLeavesTheReadARead(t *testing.T) {
	inFakeTime(t, func(w *world) {
		slow := false
		d := &tap{timeout: 100 * time.Millisecond}
		d.hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if sets("2", s, args) && slow {
				time.Sleep(90 * time.Millisecond)
			}
			return next()
		}
		rw := w.tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		w1, rd := w.acquire(rw.Write(), ctx), w.acquire(rw.Read(), ctx)
		slow = true
		beside := later(func() *redlatch.Hold { return w.acquire(rw.Read(), bg) })
		got := later(func() error { _, err := rw.Write().Acquire(ctx, redlatch.Wait(20*time.Millisecond)); return err })
		time.Sleep(10 * time.Millisecond)
		w.release(w1)
		w.wantErr(<-got, redlatch.ErrBusy)
		time.Sleep(time.Second)
		if none(beside) {
			t.Fatal("a reader of this process still waits")
		}
		w.release(<-beside)
		w.wantFields("in the end", "orders", map[string]string{"mode": "read", rd.Owner(): "1"})
		other := w.client(redlatch.Config{}).ReadWriteLock("orders").Read()
		h, err := other.Try(bg)
		if err != nil {
			t.Fatalf("another reader: %v", err)
		}
		w.release(h)
		next := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg) })
		time.Sleep(time.Second)
		w.release(rd)
		wr := <-next
		w.wantFields("the next writer's", "orders", map[string]string{"mode": "write", wr.Owner() + ":write": "1"})
		w.release(wr)
		w.wantNoKeys()
	})
}

// What was held to write and only reads in the end is not passed on: Redis would
// show a reader where a writer is.
func TestADowngradedLockIsNotPassedOnToAWriter(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context())
		w.release(wr)
		next := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg) })
		synctest.Wait()
		w.release(rd)
		h := <-next
		w.wantFields("the next writer's", "orders", map[string]string{"mode": "write", h.Owner() + ":write": "1"})
		if _, err := w.client(redlatch.Config{}).ReadWriteLock("orders").Read().Try(bg); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a reader beside it: %v", err)
		}
		w.release(h)
		w.wantNoKeys()
	})
}

// The last reader's Release returns when the lock has been released in Redis.
func TestAReadReleaseHasReleasedWhenItReturns(t *testing.T) {
	inFakeTime(t, func(w *world) {
		l := w.client(redlatch.Config{}).ReadWriteLock("orders").Read()
		for range 1000 {
			w.release(w.acquire(l, bg))
			w.wantNoKeys()
		}
	})
}

// What Redis stores of a read hold inside a write hold lasts until their id ends. So
// the next writer of this process gets an id of its own.
func TestTheNextWriterDoesNotInheritAReader(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.acquire(rw.Write(), bg)
		rd := w.acquire(rw.Read(), wr.Context())
		next := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg) })
		synctest.Wait()
		w.release(rd)
		w.release(wr)
		h := <-next
		w.settle()
		w.wantFields("handed on", "orders", map[string]string{"mode": "write", h.Owner() + ":write": "1"})
		w.release(h)
		w.wantNoKeys()
	})
}
