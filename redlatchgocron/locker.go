package redlatchgocron

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
)

// Options say how jobs are locked. The zero value works.
type Options struct {
	// Prefix stands before a job's name in the name of its lock. Jobs must have names
	// (gocron.WithName). Without one, gocron uses the name of a function, which may change.
	Prefix string
	// MinHold is for how long after a job has begun no other process runs it, however soon the
	// job ends: see redlatch.MinHold. It must be longer than the difference between the clocks
	// of the processes, and shorter than the time between two runs. Zero means as long as the job
	// runs.
	MinHold time.Duration
}

// A Locker is a gocron.Locker. Its methods are safe for concurrent use.
type Locker struct {
	client  *redlatch.Client
	options Options
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker that uses locks of the client.
func NewLocker(client *redlatch.Client, options Options) *Locker {
	return &Locker{client: client, options: options}
}

// Lock tries to acquire the lock of a job, and does not wait for it, because a job that
// another process runs is not to be run. Its error is that of redlatch's Lock.TryAcquire.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	var options []redlatch.PlainOption
	if l.options.MinHold != 0 {
		options = append(options, redlatch.MinHold(l.options.MinHold))
	}
	hold, err := l.client.Lock(l.options.Prefix+key, options...).TryAcquire(ctx, 0)
	if err != nil {
		return nil, err
	}
	return held{hold}, nil
}

// held is a job's lock.
type held struct{ hold *redlatch.Hold }

// Unlock releases the lock, even if ctx has ended. It returns redlatch.ErrLost if the lock was lost while the
// job ran.
func (h held) Unlock(ctx context.Context) error { return h.hold.Release(ctx) }
