package clients

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A section is a call of Semaphore.Do, under way.
type section struct {
	context.Context

	finish chan<- error // what its function returns
	done   <-chan error // what Do returns
}

func begin(sem *semaphore.Semaphore, n int) section {
	contexts, finish := make(chan context.Context, 1), make(chan error)
	done := locktest.Later(func() error {
		return sem.Do(bg, n, func(ctx context.Context) error {
			contexts <- ctx
			return <-finish
		})
	})
	return section{<-contexts, finish, done}
}

func wantSemaphore(w *locktest.World, when, want string) {
	w.Helper()
	if n, _ := w.Server.Get(locktest.SemaphoreName); n != want {
		w.Errorf("%s: Redis has %q permits, want %q", when, n, want)
	}
}

// Shutdown returned at once, and a program that ended then lost the permits for
// good.
func TestShutdownWaitsForSectionsUnderCountedPermits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		sem, sad := w.Semaphore(c, 3), errors.New("stopped half-way")
		first, second := begin(sem, 1), begin(sem, 2)
		waiting := locktest.Later(func() error { return sem.Do(bg, 1, func(context.Context) error { panic("it ran") }) })
		synctest.Wait()
		w.OK(first.Err())
		down := locktest.Later(func() error { return c.Shutdown(bg) })
		w.WantErr(<-waiting, redlatch.ErrClosed)
		for _, s := range []section{first, second} {
			time.Sleep(time.Minute)
			undisturbed(w, "the section", s)
			select {
			case err := <-down:
				t.Fatal("Shutdown did not wait for a section:", err)
			default:
			}
			s.finish <- sad
			if err := <-s.done; err != sad { //nolint:errorlint // nothing is joined to it
				t.Errorf("Do returned %v", err)
			}
		}
		w.OK(<-down)
		wantSemaphore(w, "after Shutdown", "3")
	})
}

// The permits of a section that did not end in time come back when it does, if
// that is still possible.
func TestShutdownSaysHowManySectionsItDidNotWaitFor(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := begin(w.Semaphore(c, 3), 1)
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		start := time.Now()
		err := c.Shutdown(ctx)
		w.WantErr(err, context.DeadlineExceeded)
		if got := err.Error(); got != "redlatch: Shutdown: not released in time: 0 holds and 0 permits, left to their TTL, 1 calls of Semaphore.Do, and 0 releases that got no answer: context deadline exceeded" {
			t.Error(got)
		}
		if d := time.Since(start); d != time.Minute+closeTimeout {
			t.Errorf("Shutdown took %v", d)
		}
		wantSemaphore(w, "after Shutdown", "2")
		s.finish <- nil
		w.OK(<-s.done)
		w.OK(c.Shutdown(bg))
	})
}

// Permits that a client did not get rid of were lost in silence.
func TestPermitsThatDidNotComeBackBeforeCloseAreToldOf(t *testing.T) {
	for _, how := range []string{"Close", "Close during the release", "Shutdown"} {
		t.Run(how, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var failed []observe.ReleaseFailedEvent
				away := &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("the driver is closed")}
				tap := &locktest.Tap{Hook: func(string, []string, func() (driver.Reply, error)) (driver.Reply, error) {
					return driver.Reply{}, away
				}}
				tap.Off.Store(true)
				c := w.Tapped(redlatch.Config{}, tap, observe.Hooks{ReleaseFailed: func(e observe.ReleaseFailedEvent) { failed = append(failed, e) }})
				s := begin(w.Semaphore(c, 3), 1)
				during := how == "Close during the release"
				if during {
					tap.Off.Store(false)
					s.finish <- nil
					time.Sleep(time.Minute) // for longer than Do waits for the server
					w.OK(<-s.done)
				}
				if how == "Shutdown" {
					ctx, cancel := context.WithTimeout(bg, time.Second)
					defer cancel()
					w.WantErr(c.Shutdown(ctx), context.DeadlineExceeded)
				} else {
					_ = c.Close() // which cannot end a request that fails
				}
				tap.Off.Store(false)
				if !during {
					<-s.Done()
					ended(w, "the section", s)
					s.finish <- nil
					w.OK(<-s.done)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(failed) != 1 || failed[0].Name != locktest.SemaphoreName ||
					!errors.Is(failed[0].Err, redlatch.ErrClosed) && !(during && errors.Is(failed[0].Err, redlatch.ErrUnavailable)) { // Close comes within a pause, or between two
					t.Errorf("events: %+v", failed)
				}
			})
		})
	}
}

// What they give back may not arrive for longer than Config.OutageTimeout.
func TestShutdownWaitsForPermitsThatASectionGivesBackInAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := begin(w.Semaphore(c, 3), 1)
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		down := locktest.Later(func() error {
			ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
			defer cancel()
			return c.Shutdown(ctx)
		})
		s.finish <- nil
		w.OK(<-s.done)
		time.Sleep(time.Minute)
		if !locktest.NoneYet(down) {
			w.Fatal("Shutdown returned before the permits were given back")
		}
		w.Server.SetError("")
		w.OK(<-down)
		wantSemaphore(w, "after Shutdown", "3")
	})
}
