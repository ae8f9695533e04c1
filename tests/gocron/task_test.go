package gocron

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/redlatchgocron"
	"github.com/redlatch/redlatch/redlatchtest"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// failures delivers what runs of a job have failed with.
func failures() (<-chan error, gocron.JobOption) {
	failed := make(chan error, 10)
	return failed, gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
}

// A job went on beside the next one when its lock was lost: gocron does not tell
// it.
func TestATaskStopsWhenItsLockIsLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		locker := redlatchgocron.NewLocker(redlatchtest.NewClient(w.T, redlatch.Config{}), redlatchgocron.Options{Prefix: "jobs:"})
		begun := make(chan context.Context, 1)
		failed, listener := failures()
		s := scheduledTask(w, 0, locker.Task(func(ctx context.Context) error {
			begun <- ctx
			<-ctx.Done()
			return ctx.Err()
		}), []gocron.JobOption{listener}, gocron.WithDistributedLocker(locker))
		for range 3 { // each run has a hold of its own
			ctx := <-begun
			if hold := redlatch.HoldFrom(ctx); hold == nil || hold.Name() != "jobs:report" || hold.Err() != nil {
				t.Fatalf("the task runs under %v", hold)
			}
			redlatchtest.Lose(redlatch.HoldFrom(ctx))
			var lost *redlatch.LostError
			if cause := context.Cause(ctx); !errors.As(cause, &lost) {
				t.Errorf("the context ended with %v", cause)
			}
			if err := <-failed; !errors.Is(err, redlatch.ErrLost) || !errors.Is(err, context.Canceled) {
				t.Errorf("the run failed with %v", err)
			}
		}
		ctx := <-begun
		w.OK(s.Shutdown())
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("at the end of the scheduler: %v", cause)
		}
	})
}

// A run that does not heed its context must not take the hold of the next one, nor
// leave it one that is over.
func TestEachRunHasItsOwnHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		locker := redlatchgocron.NewLocker(redlatchtest.NewClient(w.T, redlatch.Config{}), redlatchgocron.Options{})
		begun, end, skip := make(chan context.Context, 1), make(chan struct{}), atomic.Bool{}
		skipper := gocron.WithEventListeners(gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error {
			if skip.Swap(false) {
				return errors.New("not now")
			}
			return nil
		}))
		skip.Store(true) // the first run has a hold, and no task
		s := scheduledTask(w, 0, locker.Task(func(ctx context.Context) error {
			begun <- ctx
			<-end
			return nil
		}), []gocron.JobOption{skipper}, gocron.WithDistributedLocker(locker))
		first := <-begun
		w.OK(first.Err())
		redlatchtest.Lose(redlatch.HoldFrom(first))
		second := <-begun
		if a, b := redlatch.HoldFrom(first), redlatch.HoldFrom(second); a.ID() == b.ID() || b.Err() != nil {
			t.Errorf("the second run has the hold %s (%v) after %s", b.ID(), b.Err(), a.ID())
		}
		close(end)
		synctest.Wait()
		if err := redlatch.HoldFrom(second).Err(); !errors.Is(err, redlatch.ErrNotHeld) {
			t.Errorf("after the runs the hold is %v", err)
		}
		w.OK(s.Shutdown())
	})
}

// A task of a scheduler that has no Locker, or no Elector, ran without a lock.
func TestATaskWithoutItsLockIsNotRun(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		run := func(context.Context) error { t.Error("it runs"); return nil }
		for _, of := range []struct {
			task gocron.Task
			want error
		}{
			{redlatchgocron.NewLocker(c, redlatchgocron.Options{}).Task(run), redlatchgocron.ErrNotLocked},
			{redlatchgocron.NewElector(election.New(c, "scheduler")).Task(run), redlatchgocron.ErrNotLeader},
		} {
			failed, listener := failures()
			s := scheduledTask(w, 0, of.task, []gocron.JobOption{listener})
			w.WantErr(<-failed, of.want)
			w.OK(s.Shutdown())
		}
	})
}

// A leader's job went on when another process led already.
func TestATaskOfALeaderStopsWithItsTerm(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		candidate := election.New(redlatchtest.NewClient(w.T, redlatch.Config{}), "scheduler")
		elector := redlatchgocron.NewElector(candidate)
		ctx, stop := context.WithCancel(bg)
		ended := locktest.Later(func() error { return elector.Run(ctx) })
		synctest.Wait()
		begun := make(chan context.Context, 1)
		failed, listener := failures()
		s := scheduledTask(w, 0, elector.Task(func(ctx context.Context) error {
			begun <- ctx
			<-ctx.Done()
			return nil
		}), []gocron.JobOption{listener}, gocron.WithDistributedElector(elector))

		first := <-begun
		if redlatch.HoldFrom(first).Token() == 0 {
			t.Error("the term has no number")
		}
		redlatchtest.Lose(redlatch.HoldFrom(first))
		w.WantErr(<-failed, redlatch.ErrLost)
		w.WantErr(context.Cause(first), redlatch.ErrLost)

		second := <-begun
		if redlatch.HoldFrom(second).Token() <= redlatch.HoldFrom(first).Token() {
			t.Error("the second term has no higher number")
		}
		if led, err := candidate.Resign(bg); !led || err != nil {
			t.Errorf("Resign: %v, %v", led, err)
		}
		w.WantErr(<-failed, election.ErrResigned)

		third := <-begun
		w.OK(s.Shutdown())
		w.WantErr(context.Cause(third), context.Canceled)
		stop()
		w.WantErr(<-ended, context.Canceled)
	})
}

// The leadership was given up while tasks still stopped, so the next leader's jobs
// ran beside them.
func TestTheNextLeaderWaitsForTheTasksOfTheLast(t *testing.T) {
	for _, end := range []struct {
		name string
		term func(w *locktest.World, c *redlatch.Client, candidate *election.Candidate, stop func())
	}{
		{"its context ends", func(_ *locktest.World, _ *redlatch.Client, _ *election.Candidate, stop func()) { stop() }},
		{"it resigns", func(w *locktest.World, _ *redlatch.Client, candidate *election.Candidate, _ func()) {
			_, err := candidate.Resign(bg)
			w.OK(err)
		}},
		{"its client is shut down", func(w *locktest.World, c *redlatch.Client, _ *election.Candidate, _ func()) { w.OK(c.Shutdown(bg)) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				candidate := election.New(c, "scheduler")
				elector := redlatchgocron.NewElector(candidate)
				ctx, stop := context.WithCancel(bg)
				ended := locktest.Later(func() error { return elector.Run(ctx) })
				synctest.Wait()
				var running atomic.Int32
				begun := make(chan struct{}, 1)
				s := scheduledTask(w, 0, elector.Task(func(ctx context.Context) error {
					running.Add(1)
					begun <- struct{}{}
					<-ctx.Done()
					time.Sleep(5 * time.Second)
					running.Add(-1)
					return nil
				}), nil, gocron.WithDistributedElector(elector))
				<-begun

				nextCtx, stopNext := context.WithCancel(bg)
				led := make(chan int32, 1)
				next := locktest.Later(func() error {
					return election.New(w.Client(redlatch.Config{}), "scheduler").Run(nextCtx, func(ctx context.Context, _ int64) error {
						led <- running.Load()
						<-ctx.Done()
						return nil
					})
				})
				time.Sleep(time.Second)
				go end.term(w, c, candidate, stop)
				if n := <-led; n != 0 {
					t.Errorf("the next leader begins beside %d tasks", n)
				}
				w.WantErr(elector.IsLeader(bg), redlatchgocron.ErrNotLeader)
				time.Sleep(10 * time.Second) // also a task that runs beside the next leader has returned
				w.OK(s.Shutdown())
				stop()
				t.Log(<-ended)
				stopNext()
				t.Log(<-next)
			})
		})
	}
}

// A task that resigns would wait for itself, as the leadership is given up only
// after it has returned.
func TestATaskThatResignsDoesNotWaitForItself(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		candidate := election.New(w.Client(redlatch.Config{}), "scheduler")
		elector := redlatchgocron.NewElector(candidate)
		ctx, stop := context.WithCancel(bg)
		ended := locktest.Later(func() error { return elector.Run(ctx) })
		synctest.Wait()
		resigned := make(chan error, 1)
		s := scheduledTask(w, 0, elector.Task(func(ctx context.Context) error {
			_, err := candidate.Resign(ctx)
			resigned <- err
			return err
		}), nil, gocron.WithDistributedElector(elector))
		w.OK(<-resigned)
		w.OK(s.Shutdown())
		stop()
		w.WantErr(<-ended, context.Canceled)
	})
}

// A task that ignores its context must not keep its process from leading, once the
// leadership is lost.
func TestATaskThatIgnoresItsContextDoesNotKeepALostTerm(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		elector := redlatchgocron.NewElector(election.New(redlatchtest.NewClient(w.T, redlatch.Config{}), "scheduler"))
		ctx, stop := context.WithCancel(bg)
		ended := locktest.Later(func() error { return elector.Run(ctx) })
		synctest.Wait()
		begun, end := make(chan context.Context, 1), make(chan struct{})
		s := scheduledTask(w, 0, elector.Task(func(ctx context.Context) error {
			begun <- ctx
			<-end
			return nil
		}), nil, gocron.WithDistributedElector(elector))
		redlatchtest.Lose(redlatch.HoldFrom(<-begun))
		time.Sleep(10 * time.Second)
		w.OK(elector.IsLeader(bg))
		close(end)
		w.OK(s.Shutdown())
		stop()
		w.WantErr(<-ended, context.Canceled)
	})
}
