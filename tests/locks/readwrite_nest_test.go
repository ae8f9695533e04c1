package locks

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
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestAWriterMayWriteAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		outer := w.Acquire(bg, locktest.With(rw.Write(), redlatch.Lease(time.Minute)))
		inner := w.Acquire(outer.Context(), locktest.With(rw.Write(), redlatch.Lease(time.Second)))
		w.WantFields("nested", "orders", map[string]string{"mode": "write", outer.ID() + ":write": "2"})
		if ttl := w.Server.TTL("orders"); ttl < 59*time.Second || ttl > time.Minute {
			t.Errorf("the TTL is %v, want the longer lease, not the sum", ttl)
		}
		w.Release(inner)
		w.WantFields("after the inner one", "orders", map[string]string{"mode": "write", outer.ID() + ":write": "1"})
		w.Release(outer)
		w.WantNoKeys()
	})
}

func TestAWriteInsideAReadIsRefusedAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		rd := w.Acquire(bg, rw.Read())
		start := time.Now()
		_, err := rw.Write().Acquire(rd.Context())
		w.WantErr(err, redlatch.ErrReentry)
		if !strings.Contains(err.Error(), "would wait for itself") || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		w.Release(rd)
		ctx := redlatch.WithOwner(bg)
		rd = w.Acquire(ctx, rw.Read())
		_, err = rw.Write().Acquire(ctx)
		w.WantErr(err, redlatch.ErrReentry)
		w.Release(rd)
		wr := w.Acquire(ctx, rw.Write())
		rd = w.Acquire(ctx, rw.Read())
		w.Release(w.Acquire(ctx, rw.Write())) // beside its own write hold
		w.Release(wr)
		_, err = rw.Write().Acquire(ctx)
		w.WantErr(err, redlatch.ErrReentry)
		w.Release(rd)
		w.WantNoKeys()
	})
}

// An owner that had just ended its last read was told that it reads, because
// another reader of its process did.
func TestAnOwnerThatReadsNoMoreMayWaitToWrite(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.renew" {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}}).ReadWriteLock("orders")
		beside := w.Acquire(bg, rw.Read())
		owner := redlatch.WithOwner(bg)
		rd := w.Acquire(owner, rw.Read())
		ctx, leave := context.WithCancel(owner)
		joins := locktest.Later(func() error { _, err := locktest.With(rw.Read(), redlatch.Lease(time.Hour)).Acquire(ctx); return err })
		synctest.Wait()
		writes := locktest.Later(func() error { // behind the one that joins
			h, err := rw.Write().Acquire(owner)
			if err == nil {
				err = h.Release(bg)
			}
			return err
		})
		synctest.Wait()
		w.Release(rd)
		leave()
		w.WantErr(<-joins, context.Canceled)
		time.Sleep(time.Second)
		w.Release(beside)
		w.OK(<-writes)
		w.WantNoKeys()
	})
}

func TestReadsInsideAReadOverlapAndAskNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		outer := w.Acquire(bg, rw.Read())
		wc := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Write()) }) // keeps others out, not the nested
		time.Sleep(time.Second)
		w.Server.SetError("LOADING a nested read asks nobody")
		a := w.Acquire(outer.Context(), rw.Read())
		b := w.Acquire(outer.Context(), rw.Read())
		w.Server.SetError("")
		w.Release(outer)
		w.WantFields("without the outer one", "orders", map[string]string{"mode": "read", outer.ID(): "1"})
		w.Release(a)
		w.Release(b)
		w.Release(<-wc)
		_, err := rw.Read().Acquire(outer.Context())
		w.WantErr(err, redlatch.ErrNotHeld)
		w.WantNoKeys()
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
			locktest.InFakeTime(t, func(w *locktest.World) {
				slow := &locktest.Tap{Timeout: 100 * time.Millisecond}
				slow.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "readwrite.renew" {
						time.Sleep(50 * time.Millisecond)
					}
					return next()
				}
				rw := w.Tapped(redlatch.Config{}, slow).ReadWriteLock("orders")
				outer := w.Acquire(bg, rw.Write())
				scope := redlatch.WithOwner(outer.Context())
				branch := w.Acquire(scope, rw.Read())
				inner := w.Acquire(ctxOf(branch, scope), rw.Read())
				last := w.Acquire(ctxOf(inner, scope), rw.Read())
				_, err := locktest.With(rw.Read(), redlatch.Lease(time.Hour)).TryAcquire(ctxOf(branch, scope), 10*time.Millisecond)
				w.WantErr(err, redlatch.ErrBusy) // and keeps no turn
				next := locktest.Later(func() *redlatch.Hold { return w.Acquire(outer.Context(), rw.Write()) })
				for _, h := range []*redlatch.Hold{branch, inner, last} {
					if !locktest.NoneYet(next) {
						t.Fatal("a writer beside a reader")
					}
					w.Release(h)
				}
				w.Release(<-next)
				w.Release(outer)
				w.WantNoKeys()
			})
		})
	}
}

func TestAReadInsideAWriteLivesOnAndLetsReadersIn(t *testing.T) {
	for _, waiter := range []string{"here", "elsewhere", "nobody"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			rw := c.ReadWriteLock("orders")
			msgs := messages(w, "orders")
			wr := w.Acquire(bg, rw.Write())
			rd := w.Acquire(wr.Context(), rw.Read())
			w.WantFields("nested", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1", wr.ID(): "1"})
			if !w.Server.Exists(wire.ReadTimeout("orders", wr.ID(), 1)) {
				t.Fatal("no key for the read hold")
			}
			var got <-chan *redlatch.Hold
			switch waiter {
			case "here":
				got = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Read()) })
			case "elsewhere":
				other := w.Client(redlatch.Config{})
				got = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, other.ReadWriteLock("orders").Read()) })
			}
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			w.Release(wr)
			if got := msgs(); !slices.Equal(got, []string{"1"}) {
				t.Errorf("the downgrade published %q, want 1", got)
			}
			if got != nil {
				h := <-got
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("a reader waited %v after the downgrade", d)
				}
				defer w.Release(h)
			} else {
				w.WantFields("downgraded", "orders", map[string]string{"mode": "read", rd.ID(): "1"})
			}
			time.Sleep(2 * time.Minute) // the watchdog goes on
			if rd.Err() != nil {
				t.Fatal(rd.Err())
			}
			w.Release(rd)
		})
	}
}

func TestADowngradeWithALostReplyIsDone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		lose := 0
		d := &locktest.Tap{}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "readwrite.downgrade" && lose > 0 {
				lose--
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return r, err
		}
		rw := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), rw.Read())
		lose = 2
		w.Release(wr)
		w.WantFields("downgraded", "orders", map[string]string{"mode": "read", rd.ID(): "1"})
		if !w.Server.Exists(wire.ReadTimeout("orders", rd.ID(), 1)) || len(w.Keys()) != 2 {
			t.Errorf("keys %q", w.Keys())
		}
		time.Sleep(time.Minute)
		w.Release(rd)
		time.Sleep(5 * time.Minute)
		w.WantNoKeys()
	})
}

// The server is away for longer than a call lasts: the downgrade comes all the
// same, and keeps what the reader trusts.
func TestADowngradeIsSentUntilItIsAnswered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var away atomic.Bool
		var sent atomic.Int64
		d := &locktest.Tap{}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				sent.Add(1)
				if away.Load() {
					return driver.Reply{}, locktest.ErrReplyLost
				}
			}
			return next()
		}
		rw := w.Tapped(redlatch.Config{OutageTimeout: time.Second}, d).ReadWriteLock("orders")
		wr := w.Acquire(bg, locktest.With(rw.Write(), redlatch.Lease(time.Hour)))
		rd := w.Acquire(wr.Context(), rw.Read())
		away.Store(true)
		w.WantErr(wr.Release(bg), redlatch.ErrUnavailable)
		time.Sleep(10 * time.Second)
		other := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read()
		_, err := other.TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		away.Store(false)
		time.Sleep(2 * time.Second)
		h, err := other.TryAcquire(bg, 0)
		w.OK(err)
		w.Release(h)
		if ttl, lock := w.Server.TTL(wire.ReadTimeout("orders", rd.ID(), 1)), w.Server.TTL("orders"); ttl < lock || lock < 50*time.Minute {
			t.Errorf("the read hold lasts for %v, the lock for %v", ttl, lock)
		}
		before := sent.Load()
		time.Sleep(time.Minute)
		if sent.Load() != before {
			t.Error("sent again after the answer")
		}
		w.Release(rd)
		w.WantNoKeys()
	})
}

// The writer has let go in time. What its readers lose afterwards is not its loss,
// whether it waits for the downgrade or not.
func TestAWriterThatHasReleasedLosesNothingWithItsReaders(t *testing.T) {
	for _, waits := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var away atomic.Bool
			d := &locktest.Tap{}
			d.Hook = locktest.Failing(&away, locktest.ErrReplyLost)
			lost := make(chan string, 5)
			rw := w.Tapped(redlatch.Config{}, d, observe.Hooks{Lost: func(e observe.LostEvent) { lost <- e.Mode }}).ReadWriteLock("orders")
			wr := w.Acquire(bg, locktest.With(rw.Write(), redlatch.Lease(5*time.Second)))
			rd := w.Acquire(wr.Context(), locktest.With(rw.Read(), redlatch.Lease(5*time.Second)))
			away.Store(true)
			ctx, cancel := context.WithCancel(bg)
			if !waits {
				cancel()
			}
			if err := wr.Release(ctx); err == nil || errors.Is(err, redlatch.ErrLost) {
				t.Errorf("the release of the writer, which waits for the answer: %v: %v", waits, err)
			}
			cancel()
			<-rd.Context().Done()
			time.Sleep(time.Minute)
			away.Store(false)
			w.WantErr(rd.Release(bg), redlatch.ErrLost)
			time.Sleep(5 * time.Minute) // all that may still be released again
			synctest.Wait()
			for len(lost) > 0 {
				if mode := <-lost; mode != "read" {
					t.Errorf("a %s is lost, too", mode)
				}
			}
			w.WantNoKeys()
		})
	}
}

func TestADowngradeThatIsRefusedIsNotRepeated(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		refused := 0
		d := &locktest.Tap{}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				refused++
				return driver.Reply{}, driver.ServerError("NOPERM no", errors.New("NOPERM no"))
			}
			return next()
		}
		rw := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), rw.Read())
		if err := wr.Release(bg); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if refused != 1 || rd.Err() != nil {
			t.Errorf("refused %d times, %v", refused, rd.Err())
		}
		w.Release(rd)
		w.WantNoKeys()
	})
}

// What somebody has read inside a write hold goes with the owner that read it.
func TestAReadInsideAWriteIsNotLeftByATransferOrATurn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		for _, opts := range [][]redlatch.PlainOption{{redlatch.Lease(time.Minute)}, {}} {
			h := w.Acquire(bg, rw.Write())
			w.Release(w.Acquire(h.Context(), rw.Read()))
			if len(opts) == 0 {
				time.Sleep(10 * time.Millisecond) // a turn
			}
			next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, locktest.With(rw.Write(), opts...)) })
			synctest.Wait()
			old := h.ID()
			w.Release(h)
			h = <-next
			if h.ID() == old {
				t.Fatal("the owner is the same: nothing is tested")
			}
			w.WantFields("the next one's", "orders", map[string]string{"mode": "write", h.ID() + ":write": "1"})
			if len(w.Keys()) != 1 {
				t.Errorf("keys %q", w.Keys())
			}
			w.Release(h)
		}
		w.WantNoKeys()
	})
}

func TestTheReadInsideAWriteMayEndFirst(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), rw.Read())
		r2 := w.Acquire(rd.Context(), rw.Read())
		w.Release(rd)
		w.Release(r2)
		w.WantFields("the writer's", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1", wr.ID(): "1"})
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Read()) })
		synctest.Wait()
		w.Release(wr)
		w.Release(<-next)
		w.WantNoKeys()
	})
}

func TestALeaseInsideAWriteEndsByItself(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), locktest.With(rw.Read(), redlatch.Lease(5*time.Second)))
		time.Sleep(6 * time.Second)
		w.WantErr(rd.Err(), redlatch.ErrLost)
		w.WantFields("the writer's", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1", wr.ID(): "1"})
		w.WantErr(rd.Release(bg), redlatch.ErrLost)
		w.Release(wr)
		w.WantNoKeys()
	})
}

func TestAWriteLockIsPassedOnInsideAProcess(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Write()
		h := w.Acquire(bg, l)
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Server.SetError("LOADING a hand-off does not ask")
		w.Release(h)
		h2 := <-next
		w.Server.SetError("")
		leased := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute))) })
		synctest.Wait()
		w.Release(h2) // a transfer
		h3 := <-leased
		w.WantFields("transferred", "orders", map[string]string{"mode": "write", h3.ID() + ":write": "1"})
		time.Sleep(10 * time.Millisecond)
		next = locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
		synctest.Wait()
		w.Release(h3) // a turn
		h4 := <-next
		w.WantFields("turned", "orders", map[string]string{"mode": "write", h4.ID() + ":write": "1"})
		time.Sleep(time.Minute)
		w.Release(h4)
		w.WantNoKeys()
	})
}

// Under WithOwner a second write may be wanted while the first is released and
// only a read is left: once Redis is to let others read, there is no way back.
func TestAWriteDoesNotOvertakeADowngrade(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Timeout: 100 * time.Millisecond}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.downgrade" {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}
		rw := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		wr, rd := w.Acquire(ctx, rw.Write()), w.Acquire(ctx, rw.Read())
		released := locktest.Later(func() error { return wr.Release(bg) })
		time.Sleep(10 * time.Millisecond)
		_, err := rw.Write().Acquire(ctx)
		w.WantErr(err, redlatch.ErrReentry)
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		w.WantFields("in the end", "orders", map[string]string{"mode": "read", rd.ID(): "1"})
		w.Release(rd)
		w.WantNoKeys()
	})
}

// The first write is released while the second is on its way: nobody else may read
// between the two.
func TestAWriteOnItsWayKeepsTheLockWritten(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{Timeout: 100 * time.Millisecond}
		d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		}
		rw := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		w1, rd := w.Acquire(ctx, rw.Write()), w.Acquire(ctx, rw.Read())
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(ctx, rw.Write()) })
		time.Sleep(10 * time.Millisecond)
		w.Release(w1)
		w2 := <-got
		w.WantFields("written", "orders", map[string]string{"mode": "write", rd.ID() + ":write": "1", rd.ID(): "1"})
		w.Release(w2)
		w.WantFields("in the end", "orders", map[string]string{"mode": "read", rd.ID(): "1"})
		w.Release(rd)
		w.WantNoKeys()
	})
}

func TestAWriteThatFailsOnItsWayLeavesTheReadARead(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := false
		d := &locktest.Tap{Timeout: 100 * time.Millisecond}
		d.Hook = func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if locktest.Sets("2", s, args) && slow {
				time.Sleep(90 * time.Millisecond)
			}
			return next()
		}
		rw := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders")
		ctx := redlatch.WithOwner(bg)
		w1, rd := w.Acquire(ctx, rw.Write()), w.Acquire(ctx, rw.Read())
		slow = true
		beside := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Read()) })
		got := locktest.Later(func() error { _, err := rw.Write().TryAcquire(ctx, 20*time.Millisecond); return err })
		time.Sleep(10 * time.Millisecond)
		w.Release(w1)
		w.WantErr(<-got, redlatch.ErrBusy)
		time.Sleep(time.Second)
		if locktest.NoneYet(beside) {
			t.Fatal("a reader of this process still waits")
		}
		w.Release(<-beside)
		w.WantFields("in the end", "orders", map[string]string{"mode": "read", rd.ID(): "1"})
		other := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read()
		h, err := other.TryAcquire(bg, 0)
		if err != nil {
			t.Fatalf("another reader: %v", err)
		}
		w.Release(h)
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Write()) })
		time.Sleep(time.Second)
		w.Release(rd)
		wr := <-next
		w.WantFields("the next writer's", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1"})
		w.Release(wr)
		w.WantNoKeys()
	})
}

// What was held to write and only reads in the end is not passed on: Redis would
// show a reader where a writer is.
func TestADowngradedLockIsNotPassedOnToAWriter(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), rw.Read())
		w.Release(wr)
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Write()) })
		synctest.Wait()
		w.Release(rd)
		h := <-next
		w.WantFields("the next writer's", "orders", map[string]string{"mode": "write", h.ID() + ":write": "1"})
		if _, err := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read().TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a reader beside it: %v", err)
		}
		w.Release(h)
		w.WantNoKeys()
	})
}

// The last reader's Release returns when the lock has been released in Redis.
func TestAReadReleaseHasReleasedWhenItReturns(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Client(redlatch.Config{}).ReadWriteLock("orders").Read()
		for range 1000 {
			w.Release(w.Acquire(bg, l))
			w.WantNoKeys()
		}
	})
}

// What Redis stores of a read hold inside a write hold lasts until their id ends.
// So the next writer of this process gets an id of its own.
func TestTheNextWriterDoesNotInheritAReader(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		wr := w.Acquire(bg, rw.Write())
		rd := w.Acquire(wr.Context(), rw.Read())
		next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Write()) })
		synctest.Wait()
		w.Release(rd)
		w.Release(wr)
		h := <-next
		w.Settle()
		w.WantFields("handed on", "orders", map[string]string{"mode": "write", h.ID() + ":write": "1"})
		w.Release(h)
		w.WantNoKeys()
	})
}

// Redisson's read unlock cuts the lock's TTL down to that of the longest read
// hold, also below the lease of a writer who reads.
func TestTheEndOfAReadInsideAWriteLeavesTheWriterItsTTL(t *testing.T) {
	for _, how := range []string{"released", "expired"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
			wr := w.Acquire(bg, locktest.With(rw.Write(), redlatch.Lease(time.Hour)))
			rd := w.Acquire(wr.Context(), locktest.With(rw.Read(), redlatch.Lease(time.Second)))
			if how == "released" {
				w.Release(rd)
			}
			time.Sleep(2 * time.Second)
			w.WantFields(how, "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1", wr.ID(): "1"})
			if ttl := w.Server.TTL("orders"); time.Now().Add(ttl).Before(wr.Expires()) || wr.Err() != nil {
				t.Errorf("%s: Redis keeps the lock for %v, the writer trusts it for %v (%v)", how, ttl, time.Until(wr.Expires()), wr.Err())
			}
			if how == "expired" {
				w.WantErr(rd.Release(bg), redlatch.ErrLost)
			}
			w.Release(wr)
			w.WantNoKeys()
		})
	}
}
