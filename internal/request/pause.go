package request

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// LongestPause is how long to wait at most between two tries, give or take a
// fifth.
const LongestPause = 2 * time.Second

// Jittered returns d, give or take a fifth.
func Jittered(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5) //nolint:gosec // jitter
}

// ErrWaitOver says that the longest wait that the caller allows is over.
var ErrWaitOver = errors.New("wait over")

// Pause waits for d, and says whether wake delivered before. It ends with ctx,
// stop and until.
func Pause(ctx context.Context, stop, wake <-chan struct{}, until time.Time, d time.Duration) (woken bool, err error) {
	last := false
	if !until.IsZero() {
		if left := time.Until(until); left <= d {
			d, last = max(left, 0), true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, ContextError(ctx)
	case <-stop:
		return false, ErrClosed
	case <-t.C:
		if last {
			return false, ErrWaitOver
		}
		return false, nil
	}
}

// Await waits for what done delivers. It ends with ctx, stop and, unless that is
// zero, until.
func Await[T any](ctx context.Context, stop <-chan struct{}, done <-chan T, until time.Time) (v T, err error) {
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	select {
	case v = <-done:
	case <-ctx.Done():
		err = ContextError(ctx)
	case <-stop:
		err = ErrClosed
	case <-over:
		err = ErrWaitOver
	}
	return v, err
}

// AwaitAll waits until nothing of several kinds is pending, one kind after the
// other. It ends with ctx and stop.
func AwaitAll(ctx context.Context, stop <-chan struct{}, kinds ...func() <-chan struct{}) error {
	for _, none := range kinds {
		left := none()
		if _, err := Await(ctx, stop, left, time.Time{}); err != nil && !closed(left) {
			return err
		}
	}
	return nil
}

// Lateness counts answers that came too late to be trusted.
type Lateness struct {
	since time.Time
	pause time.Duration
}

// ErrTooLate is why a call fails whose answers keep coming too late.
var ErrTooLate = errors.New("the server took longer to answer than the lease can be trusted for")

// Again waits before the next try. It fails if that is hopeless, for the server
// needs longer to answer than the lease lasts; at once if the caller only tries.
func (late *Lateness) Again(ctx context.Context, s *Server, once bool, until time.Time) error {
	if late.since.IsZero() {
		late.since = time.Now()
	}
	if once || !s.Patient(late.since) {
		return &OutageError{Cause: ErrTooLate}
	}
	late.pause = min(max(2*late.pause, 5*time.Millisecond), time.Second)
	_, err := Pause(ctx, s.Done, nil, until, late.pause)
	return err
}

// Pause waits for d and says whether the client still settles things.
func (s *Server) Pause(d time.Duration) bool {
	_, err := Pause(context.Background(), s.Over, nil, time.Time{}, d)
	return err == nil
}

// ContextError returns ctx's error and, if it says more, its cause.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case cause == nil:
		cause = err
	case !errors.Is(cause, err):
		cause = fmt.Errorf("%w: %w", err, cause)
	}
	return &endedError{cause}
}

// An endedError is the error of a context that has ended. It may wrap an error of
// redlatch's as its cause: that is not how the call itself has failed.
type endedError struct{ error }

func (e *endedError) Unwrap() error { return e.error }
