package synchronizers

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Whatever becomes of the function, its permits come back.
func TestDoForgetsNoPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		events := observe.Hooks{AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context { return ctx }}
		for _, c := range []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{}, events)} {
			w.Server.FlushAll()
			sem, permits := w.Semaphore(c, 3), w.Permits(c, 3)
			sad := errors.New("sad")
			ways := map[string]func(ctx context.Context) error{
				"nil":    func(context.Context) error { return nil },
				"error":  func(context.Context) error { return sad },
				"panic":  func(context.Context) error { panic("oh") },
				"goexit": func(context.Context) error { runtime.Goexit(); return nil },
				"held": func(context.Context) error {
					wantSemaphore(w, "meanwhile", "1")
					return nil
				},
			}
			for name, f := range ways {
				for what, do := range map[string]func(ctx context.Context) error{
					"counted":   func(ctx context.Context) error { return sem.Do(ctx, 2, f) },
					"expirable": func(ctx context.Context) error { return permits.Do(ctx, 1, f) },
				} {
					if what == "expirable" && name == "held" {
						continue
					}
					ctx, cancel := context.WithCancel(bg)
					ended := make(chan error, 1)
					go func() {
						var err error
						defer func() {
							_ = recover()
							ended <- err
						}()
						err = do(ctx)
					}()
					err := <-ended
					cancel()
					if (err != nil) != (name == "error") || err != nil && err != sad { //nolint:errorlint // as it is
						t.Errorf("%s, %s: %v", what, name, err)
					}
					wantSemaphore(w, name, "3")
					w.WantPermits(3, 0)
				}
			}
		}
	})
}

// What Do could not have it says so, and calls nothing.
func TestDoSaysThatItHasNotRun(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		sem, permits := w.Semaphore(c, 1), w.Permits(c, 1)
		w.OK(sem.Acquire(bg, 1))
		p := w.Permit(permits)
		never := func(context.Context) error { panic("it ran") }
		not := func(ran bool, err error) error {
			if ran {
				t.Errorf("it says that it has run: %v", err)
			}
			return err
		}
		w.WantErr(not(sem.TryDo(bg, 1, 0, never)), redlatch.ErrBusy)
		w.WantErr(not(permits.TryDo(bg, 1, time.Second, never)), redlatch.ErrBusy)
		w.WantErr(not(semaphore.NewExpirable(c, "unset", 0).TryDo(bg, 1, 0, never)), redlatch.ErrUninitialized)
		w.WantErr(not(sem.TryDo(bg, -1, 0, never)), redlatch.ErrInvalid)
		w.WantErr(not(sem.TryDo(bg, 1, 0, nil)), redlatch.ErrInvalid)
		w.WantErr(semaphore.NewExpirable(c, "unset", 0).Do(bg, 1, never), redlatch.ErrUninitialized)
		w.WantErr(sem.Do(bg, -1, never), redlatch.ErrInvalid)
		w.OK(p.Release(bg))
		ran := false
		w.OK(sem.Do(bg, 0, func(context.Context) error { ran = true; return nil }))
		if !ran {
			t.Error("Do of no permits has not run")
		}
	})
}

// The function's context has the values of AcquireStart's, and ends with the
// permit, whose loss is joined once.
func TestDoOfAPermitEndsWithIt(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		type key struct{}
		c := w.Client(redlatch.Config{}, observe.Hooks{AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context {
			return context.WithValue(ctx, key{}, "told")
		}})
		permits, sem := w.Permits(c, 1), w.Semaphore(c, 1)
		err := permits.Do(bg, 1, func(ctx context.Context) error {
			if p := redlatch.HoldFrom(ctx); p == nil || p.Err() != nil || ctx.Value(key{}) != "told" {
				t.Errorf("permit %v, %v", p, ctx.Value(key{}))
			}
			w.Server.Del(locktest.PoolTimes)
			<-ctx.Done()
			return nil
		})
		w.WantErr(err, redlatch.ErrLost)
		if redlatch.HoldFrom(bg) != nil {
			t.Error("a permit of nobody's")
		}
		w.OK(sem.Do(bg, 1, func(ctx context.Context) error {
			if ctx.Value(key{}) != "told" {
				t.Error("AcquireStart's context is lost")
			}
			return nil
		}))
	})
}

// The function's context is the caller's for as long as it has the permits.
func TestDoOfCountedPermitsEndsItsContext(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		sem, sad := w.Semaphore(w.Client(redlatch.Config{}), 2), errors.New("sad")
		ctx, cancel := context.WithCancelCause(bg)
		defer cancel(nil)
		var outer, inner context.Context
		w.OK(sem.Do(ctx, 1, func(section context.Context) error {
			outer = section
			return sem.Do(section, 1, func(section context.Context) error {
				inner = section
				w.OK(outer.Err())
				w.OK(inner.Err())
				return nil
			})
		}))
		w.WantErr(context.Cause(outer), redlatch.ErrNotHeld)
		w.WantErr(context.Cause(inner), redlatch.ErrNotHeld)
		w.WantErr(sem.Do(ctx, 1, func(section context.Context) error {
			cancel(sad)
			<-section.Done()
			return context.Cause(section)
		}), sad)
		synctest.Wait() // its release was sent, though its context had ended
		wantSemaphore(w, "afterwards", "2")
	})
}

// A refusal to take permits back is no error of Do, for the work is done; but it
// is told.
func TestDoTellsOfPermitsThatDidNotComeBack(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		refused := &driver.RunError{Outcome: driver.Refused, Code: "NOPERM", Err: errors.New("NOPERM no permissions to run it")}
		var failed []error
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "semaphore.exchange" && args[3] != "0" {
				return driver.Reply{}, refused
			}
			return next()
		}}, observe.Hooks{ReleaseFailed: func(e observe.ReleaseFailedEvent) { failed = append(failed, e.Err) }})
		w.OK(w.Semaphore(c, 1).Do(bg, 1, func(context.Context) error { return nil }))
		synctest.Wait()
		if len(failed) != 1 || !errors.Is(failed[0], refused) {
			t.Errorf("events: %v", failed)
		}
	})
}
