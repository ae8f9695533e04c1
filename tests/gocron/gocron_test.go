package gocron

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/redlatchgocron"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// scheduled starts a scheduler with one job every minute, whose clock is so late.
func scheduled(w *locktest.World, late time.Duration, job func(), options ...gocron.SchedulerOption) gocron.Scheduler {
	return scheduledTask(w, late, gocron.NewTask(job), nil, options...)
}

// scheduledTask is scheduled, of a task with options of its job.
func scheduledTask(w *locktest.World, late time.Duration, task gocron.Task, of []gocron.JobOption, options ...gocron.SchedulerOption) gocron.Scheduler {
	s, err := gocron.NewScheduler(append(options, gocron.WithLocation(time.UTC))...)
	w.OK(err)
	first := time.Now().Truncate(time.Minute).Add(time.Minute + late)
	of = append(of, gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartDateTime(first)))
	_, err = s.NewJob(gocron.DurationJob(time.Minute), task, of...)
	w.OK(err)
	s.Start()
	return s
}

// A job of a few milliseconds ran once in each process, one after the other.
func TestEachRunOfAJobIsOneProcesss(t *testing.T) {
	for _, atLeast := range []time.Duration{0, 30 * time.Second} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			var runs atomic.Int32
			var all []gocron.Scheduler
			for i := range 4 {
				locker := redlatchgocron.NewLocker(w.Client(redlatch.Config{}), redlatchgocron.Options{Prefix: "jobs:", MinHold: atLeast})
				all = append(all, scheduled(w, time.Duration(i)*2*time.Second, func() { runs.Add(1); time.Sleep(10 * time.Millisecond) }, gocron.WithDistributedLocker(locker)))
			}
			const minutes = 10
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(minutes*time.Minute + 30*time.Second)))
			for _, s := range all {
				w.OK(s.Shutdown())
			}
			want := int32(minutes)
			if atLeast == 0 {
				want *= 4 // that is what MinHold is for
			}
			if n := runs.Load(); n != want {
				t.Errorf("MinHold %v: %d runs in %d minutes, want %d", atLeast, n, minutes, want)
			}
			time.Sleep(time.Minute)
			if keys := w.Server.Keys(); len(locks(keys)) > 0 {
				t.Errorf("left: %q", keys)
			}
		})
	}
}

func locks(keys []string) (found []string) {
	for _, key := range keys {
		if key == "jobs:report" {
			found = append(found, key)
		}
	}
	return found
}

// The errors say why a job was not run, and that a lock was lost under it.
func TestALockerSaysWhoRunsAJobAndWhatWasLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		locker := redlatchgocron.NewLocker(c, redlatchgocron.Options{})
		h := w.Acquire(bg, other.Lock("report"))
		_, err := locker.Lock(bg, "report")
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.ID() {
			t.Errorf("Lock: %v", err)
		}
		w.Release(h)
		time.Sleep(time.Second)
		lock, err := locker.Lock(bg, "report")
		w.OK(err)
		ended, cancel := context.WithCancel(bg)
		cancel()
		if err := lock.Unlock(ended); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Unlock: %v", err)
		}
		synctest.Wait()
		if w.Server.Exists("report") {
			t.Error("a job whose context has ended keeps its lock")
		}
		lock, err = locker.Lock(bg, "report")
		w.OK(err)
		w.Server.Del("report")
		w.WantErr(lock.Unlock(bg), redlatch.ErrLost)
	})
}

// One process runs every job, and the next one when that ends.
func TestOneProcessRunsAllJobsUntilItEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var mu sync.Mutex
		runs := map[int]int{}
		type process struct {
			stop  func()
			ended <-chan error
			jobs  gocron.Scheduler
		}
		var all []process
		for i := range 3 {
			elector := redlatchgocron.NewElector(election.New(w.Client(redlatch.Config{}), "scheduler"))
			w.WantErr(elector.IsLeader(bg), redlatchgocron.ErrNotLeader)
			ctx, stop := context.WithCancel(bg)
			p := process{stop: stop, ended: locktest.Later(func() error { return elector.Run(ctx) })}
			synctest.Wait()
			if err := elector.IsLeader(bg); (err == nil) != (i == 0) {
				t.Errorf("%d: %v", i, err)
			}
			p.jobs = scheduled(w, 0, func() { mu.Lock(); runs[i]++; mu.Unlock() }, gocron.WithDistributedElector(elector))
			all = append(all, p)
		}
		time.Sleep(30 * time.Second) // so that no job is due at the moment of a change
		seen := 0
		for range all {
			time.Sleep(10 * time.Minute)
			mu.Lock()
			leaders, most := 0, -1
			for i, n := range runs {
				if n > 0 {
					leaders++
					most = i
				}
				seen += n
			}
			clear(runs)
			mu.Unlock()
			if leaders != 1 || most < 0 {
				t.Fatalf("%d processes ran jobs", leaders)
			}
			w.OK(all[most].jobs.Shutdown())
			all[most].stop()
			w.WantErr(<-all[most].ended, context.Canceled)
		}
		if seen < 24 || seen > 30 { // a run may be missed when a leader ends
			t.Errorf("%d runs in 30 minutes", seen)
		}
	})
}

// A leader that is cut off runs no more jobs, before it can be told and before
// another one leads.
func TestAnElectorThatIsCutOffRunsNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: locktest.Failing(&cut, locktest.ErrReplyLost)})
		elector := redlatchgocron.NewElector(election.New(c, "scheduler"))
		ctx, stop := context.WithCancel(bg)
		ended := locktest.Later(func() error { return elector.Run(ctx) })
		synctest.Wait()
		w.OK(elector.IsLeader(bg))
		cut.Store(true)
		time.Sleep(30 * time.Second)
		w.WantErr(elector.IsLeader(bg), redlatchgocron.ErrNotLeader)
		cut.Store(false)
		stop()
		w.WantErr(<-ended, context.Canceled)
	})
}
