package redlatchtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
)

func TestClientInBubble(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(t, redlatch.Config{})
		ctx := context.Background()
		hold, err := c.Lock("job").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // 360 renewals
		if err := hold.Err(); err != nil {
			t.Fatalf("after an hour: %v", err)
		}
		if _, err := c.Lock("job").TryAcquire(ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatalf("a second acquisition: %v", err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLose(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(t, redlatch.Config{})
		hold, err := c.Lock("job").Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		Lose(hold)
		if err := hold.Err(); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("the hold says %v", err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the loss took %v to be noticed", d)
		}
		defer func() {
			if recover() == nil {
				t.Error("a lost hold was lost again")
			}
		}()
		Lose(hold)
	})
}

// Whatever can be held can be lost, also by the context of who holds it, and
// whatever its name is in Redis.
func TestLoseOfEachType(t *testing.T) {
	ctx := context.Background()
	within := func(do func(ctx context.Context, f func(ctx context.Context) error) error) func(t *testing.T) error {
		return func(t *testing.T) error {
			t.Helper()
			return do(ctx, func(ctx context.Context) error {
				Lose(redlatch.HoldFrom(context.WithValue(ctx, t, "below")))
				cause := context.Cause(ctx) // at once
				if !errors.Is(cause, redlatch.ErrLost) {
					t.Errorf("the context has ended by %v", cause)
				}
				return cause
			})
		}
	}
	permits := func(s *semaphore.Expirable, n int) func(context.Context, func(context.Context) error) error {
		return func(ctx context.Context, f func(context.Context) error) error { return s.Do(ctx, n, f) }
	}
	for _, prefix := range []string{"", "app:"} {
		for name, lost := range map[string]func(c, other *redlatch.Client) func(t *testing.T) error{
			"lock": func(c, _ *redlatch.Client) func(*testing.T) error { return within(c.Lock("x").Do) },
			"fair": func(c, _ *redlatch.Client) func(*testing.T) error { return within(c.FairLock("x").Do) },
			"fenced": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(c.Lock("{x}:y", redlatch.Fenced()).Do)
			},
			"read":  func(c, _ *redlatch.Client) func(*testing.T) error { return within(c.ReadWriteLock("x").Read().Do) },
			"write": func(c, _ *redlatch.Client) func(*testing.T) error { return within(c.ReadWriteLock("x").Write().Do) },
			"group": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(redisson.GroupLock(c, "x", []string{"a", "b"}).Do)
			},
			"lease": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(c.Lock("x", redlatch.Lease(time.Hour)).Do)
			},
			"several": func(c, other *redlatch.Client) func(*testing.T) error {
				return within(redlatch.MultiLock(c.Lock("x"), c.Lock("y"), other.FairLock("z")).Do)
			},
			"permit": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(permits(semaphore.NewExpirable(c, "x", 2), 1))
			},
			"permits": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(permits(semaphore.NewExpirable(c, "x", 2), 2))
			},
			"permit with braces": func(c, _ *redlatch.Client) func(*testing.T) error {
				return within(permits(semaphore.NewExpirable(c, "{x}", 2), 1))
			},
			"permit itself": func(c, _ *redlatch.Client) func(*testing.T) error {
				return func(t *testing.T) error {
					t.Helper()
					s := semaphore.NewExpirable(c, "x", 1)
					p, err := s.Acquire(ctx, 1)
					if err != nil {
						t.Fatal(err)
					}
					Lose(p)
					if next, err := s.TryAcquire(ctx, 1, 0); err != nil {
						t.Errorf("the permit is not free: %v", err)
					} else {
						_ = next.Release(ctx)
					}
					return p.Err()
				}
			},
			"several themselves": func(c, other *redlatch.Client) func(*testing.T) error {
				return func(t *testing.T) error {
					t.Helper()
					h, err := redlatch.MultiLock(c.Lock("x"), other.Lock("y")).Acquire(ctx)
					if err != nil {
						t.Fatal(err)
					}
					Lose(h)
					for _, member := range h.Members() {
						if member.Err() == nil {
							t.Errorf("%s is not lost", member.Name())
						}
					}
					return h.Err()
				}
			},
		} {
			t.Run(prefix+name, func(t *testing.T) {
				leaktest.Check(t)
				synctest.Test(t, func(t *testing.T) {
					cfg := redlatch.Config{Prefix: prefix}
					if err := lost(NewClient(t, cfg), NewClient(t, cfg))(t); !errors.Is(err, redlatch.ErrLost) {
						t.Errorf("got %v, want a loss", err)
					}
				})
			})
		}
	}
}

// A context without a hold is a mistake of the test that calls Lose, and its
// author wants to read which.
func TestLoseSaysThatThereIsNoHold(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "HoldFrom") {
			t.Errorf("it said %q", said)
		}
	}()
	Lose(redlatch.HoldFrom(context.Background()))
}
