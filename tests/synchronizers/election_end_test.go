package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestRunEndsWithTheErrorOfItsLeader(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		e := election.New(w.Client(redlatch.Config{}), name)
		sad := errors.New("no disk")
		if err := e.Run(bg, func(context.Context, int64) error { return sad }); err != sad { //nolint:errorlint // as it is
			t.Errorf("Run: %v", err)
		}
		ctx, stop := context.WithCancel(bg)
		err := e.Run(ctx, func(ctx context.Context, _ int64) error {
			stop()
			<-ctx.Done()
			return sad
		})
		w.WantErr(err, sad)
		if w.Server.Exists(name) {
			t.Error("it leads still")
		}
	})
}

// Only that the term has ended is no error. What a leader could not do in the end
// was lost when its error was joined to that.
func TestRunEndsWithWhatElseItsLeaderSays(t *testing.T) {
	sad := errors.New("no disk")
	for what, of := range map[string]struct {
		says func(ctx context.Context, c *redlatch.Client) error
		sad  bool
	}{
		"the context's": {says: func(ctx context.Context, _ *redlatch.Client) error { return ctx.Err() }},
		"its cause": {says: func(ctx context.Context, _ *redlatch.Client) error {
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}},
		"both": {says: func(ctx context.Context, _ *redlatch.Client) error { return errors.Join(ctx.Err(), context.Cause(ctx)) }},
		"a wait that it ended": {says: func(ctx context.Context, c *redlatch.Client) error {
			return c.Lock("other").Do(ctx, func(context.Context) error { return nil })
		}},
		"a take that it ended": {says: func(ctx context.Context, c *redlatch.Client) error {
			return ratelimit.New(c, "other", ratelimit.Rate{}).Acquire(ctx, 1)
		}},
		"a wait behind a count-down that it ended": {says: func(ctx context.Context, c *redlatch.Client) error {
			l := latch.New(c, "other")
			_, _ = l.TrySetCount(context.WithoutCancel(ctx), 2)
			counted, stop := context.WithCancelCause(context.WithoutCancel(ctx))
			time.AfterFunc(time.Second, func() { stop(context.Cause(ctx)) })
			return l.CountDownAndWait(counted)
		}},
		"another one":           {sad: true, says: func(context.Context, *redlatch.Client) error { return sad }},
		"another one beside it": {sad: true, says: func(ctx context.Context, _ *redlatch.Client) error { return errors.Join(ctx.Err(), sad) }},
		"another one deep in it": {sad: true, says: func(ctx context.Context, _ *redlatch.Client) error {
			return fmt.Errorf("flush: %w", fmt.Errorf("%w, then %w", context.Cause(ctx), errors.Join(sad, ctx.Err())))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				e := election.New(c, name)
				ctx, stop := context.WithCancelCause(bg)
				terms := 0
				err := e.Run(ctx, func(ctx context.Context, _ int64) error {
					if terms++; terms == 2 {
						stop(errEnough)
						return nil
					}
					_, _ = e.Resign(ctx)
					return of.says(ctx, c)
				})
				if of.sad {
					w.WantErr(err, sad)
				} else {
					w.WantErr(err, errEnough)
				}
				if want := map[bool]int{true: 1, false: 2}[of.sad]; terms != want {
					t.Errorf("%d terms, want %d", terms, want)
				}
			})
		})
	}
}

func TestAPanicOfALeaderGivesTheLeadershipUp(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		e := election.New(w.Client(redlatch.Config{}), name)
		func() {
			defer func() {
				if p := recover(); p != "oh" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = e.Run(bg, func(context.Context, int64) error { panic("oh") })
		}()
		if w.Server.Exists(name) {
			t.Error("it leads still")
		}
		if led, err := e.Resign(bg); led || err != nil {
			t.Errorf("Resign: %t, %v", led, err)
		}
	})
}

// A leader that resigns from within its function waited for itself.
func TestALeaderMayResignByItself(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		e := election.New(w.Client(redlatch.Config{}), name)
		ctx, stop := context.WithCancel(bg)
		terms := 0
		err := e.Run(ctx, func(ctx context.Context, _ int64) error {
			if terms++; terms == 2 {
				stop()
				return nil
			}
			led, err := e.Resign(ctx)
			if !led || err != nil {
				t.Errorf("Resign: %t, %v", led, err)
			}
			w.WantErr(context.Cause(ctx), election.ErrResigned)
			return ctx.Err()
		})
		w.WantErr(err, context.Canceled)
	})
}

// Resign returns with its context, and the leader ends nevertheless.
func TestResignDoesNotWaitForeverForALeader(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		e := election.New(w.Client(redlatch.Config{}), name)
		ctx, stop := context.WithCancel(bg)
		began, slow := make(chan struct{}), make(chan struct{})
		ended := locktest.Later(func() error {
			return e.Run(ctx, func(context.Context, int64) error { close(began); <-slow; return nil })
		})
		<-began
		soon, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		led, err := e.Resign(soon)
		if !led || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Resign: %t, %v", led, err)
		}
		stop()
		close(slow)
		w.WantErr(<-ended, context.Canceled)
	})
}
