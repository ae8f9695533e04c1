package redlatchgocron

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
)

// Options say how jobs are locked. The zero value works.
type Options struct {
	// Prefix stands before a job's name in the name of its lock. Jobs must have names
	// (gocron.WithName). Without one, gocron uses the name of a function, which may
	// change.
	Prefix string
	// MinHold is for how long after a job has begun no other process runs it, however
	// soon the job ends: see redlatch.MinHold. It must be longer than the difference
	// between the clocks of the processes, and shorter than the time between two runs.
	// Zero means as long as the job runs.
	MinHold time.Duration
}

// ErrNotLocked says why a task of Locker.Task is not run: the scheduler did not
// acquire its lock from this Locker.
var ErrNotLocked = errors.New("redlatch: this Locker has not locked the job: give it to the scheduler (gocron.WithDistributedLocker), or to the job (gocron.WithDistributedJobLocker)")

// A Locker is a gocron.Locker. Its methods are safe for concurrent use.
type Locker struct {
	client  *redlatch.Client
	options Options

	mu    sync.Mutex
	begun map[<-chan struct{}][]*redlatch.Hold // of runs whose task has not begun, by the end of the job's context
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker that uses locks of the client.
func NewLocker(client *redlatch.Client, options Options) *Locker {
	return &Locker{client: client, options: options, begun: map[<-chan struct{}][]*redlatch.Hold{}}
}

// Lock tries to acquire the lock of a job, and does not wait for it, because a job
// that another process runs is not to be run. Its error is that of redlatch's
// Lock.TryAcquire.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	var options []redlatch.PlainOption
	if l.options.MinHold != 0 {
		options = append(options, redlatch.MinHold(l.options.MinHold))
	}
	hold, err := l.client.Lock(l.options.Prefix+key, options...).TryAcquire(ctx, 0)
	if err != nil {
		return nil, err
	}
	job := ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[job] = append(l.begun[job], hold)
	return &held{hold: hold, locker: l, job: job}, nil
}

// Task returns a task for gocron.Scheduler.NewJob that calls f under the lock of
// its job. The context of f ends when the lock is lost, with a *redlatch.LostError
// as its cause, and when the context of the job ends. So f stops before another
// process runs the job, if it heeds its context. redlatch.HoldFrom(ctx) is the
// hold.
//
// The task fails with the error of f, joined with the *redlatch.LostError if the
// lock was lost meanwhile: gocron tells it to AfterJobRunsWithError. It fails with
// ErrNotLocked, without a call of f, if this Locker has not locked the job.
func (l *Locker) Task(f func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		hold := l.take(ctx.Done(), nil)
		if hold == nil {
			return ErrNotLocked
		}
		return withLoss(f(hold.With(ctx)), hold.Err())
	})
}

// withLoss joins why a section has ended early to its own error, unless that says
// so.
func withLoss(err, end error) error {
	if end == nil || errors.Is(err, end) {
		return err
	}
	return errors.Join(err, end)
}

// take returns a hold of a job whose task has not begun, and forgets it: this
// hold, if it is not nil. gocron calls Lock and then the task, and does not say
// that both belong to one run. If two runs begin at the same time, the first has
// lost its hold, and their tasks may swap holds. That is safe: each hold ends with
// the Unlock of the run that acquired it.
func (l *Locker) take(job <-chan struct{}, hold *redlatch.Hold) *redlatch.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.begun[job]
	i := 0
	if hold != nil {
		i = slices.Index(of, hold)
	}
	if i < 0 || len(of) == 0 {
		return nil
	}
	hold = of[i]
	if of = slices.Delete(of, i, i+1); len(of) == 0 {
		delete(l.begun, job)
	} else {
		l.begun[job] = of
	}
	return hold
}

// held is a job's lock.
type held struct {
	hold   *redlatch.Hold
	locker *Locker
	job    <-chan struct{}
}

// Unlock releases the lock, even if ctx has ended. It returns redlatch.ErrLost if
// the lock was lost while the job ran.
func (h *held) Unlock(ctx context.Context) error {
	h.locker.take(h.job, h.hold)
	return h.hold.Release(ctx)
}
