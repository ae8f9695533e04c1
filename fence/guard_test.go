package fence_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/randtest"
)

// wantStale checks that err is what a refused token gets.
func wantStale(tb testing.TB, err error, token, highest int64) {
	tb.Helper()
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || *stale != (fence.StaleError{Token: token, Highest: highest}) {
		tb.Errorf("got %v, want token %d refused for %d", err, token, highest)
	}
}

func TestGuard(t *testing.T) {
	var g fence.Guard
	for _, token := range []int64{0, -1, math.MinInt64} {
		if err := g.Check(token); !errors.Is(err, fence.ErrUnfenced) || errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v, want ErrUnfenced", token, err)
		}
	}
	for _, token := range []int64{1, 1, 7, 7} {
		if err := g.Check(token); err != nil || g.Highest() != token {
			t.Errorf("token %d: %v, then the highest is %d", token, err, g.Highest())
		}
	}
	wantStale(t, g.Check(6), 6, 7)
	if err := g.Do(6, func() error { t.Error("called with a stale token"); return nil }); !errors.Is(err, fence.ErrStale) {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := g.Do(8, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Do returned %v, want its function's error", err)
	}
	wantStale(t, g.Check(7), 7, 8) // the token was shown although the work failed
	if err := g.Check(math.MaxInt64); err != nil {
		t.Error(err)
	}
	wantStale(t, g.Check(math.MaxInt64-1), math.MaxInt64-1, math.MaxInt64)
}

// A function that panics does not leave the guard locked.
func TestGuardAfterPanic(t *testing.T) {
	var g fence.Guard
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = g.Do(2, func() error { panic("broken") })
	}()
	wantStale(t, g.Check(1), 1, 2)
}

func TestRegister(t *testing.T) {
	var r fence.Register[string]
	if v, highest := r.Peek(); v != "" || highest != 0 {
		t.Errorf("a new register has %q and %d", v, highest)
	}
	if err := r.Set(0, "unfenced"); !errors.Is(err, fence.ErrUnfenced) {
		t.Errorf("token 0: %v", err)
	}
	if err := r.Set(5, "five"); err != nil {
		t.Error(err)
	}
	if err := r.Update(5, func(old string) (string, error) { return old + " again", nil }); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := r.Update(6, func(string) (string, error) { return "half", broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if v, highest := r.Peek(); v != "five again" || highest != 6 {
		t.Errorf("after a failed update there are %q and %d", v, highest)
	}
	wantStale(t, r.Set(5, "late"), 5, 6)
	if v, err := r.Get(7); v != "five again" || err != nil {
		t.Errorf("Get: %q, %v", v, err)
	}
	v, err := r.Get(6)
	wantStale(t, err, 6, 7)
	if v != "" {
		t.Errorf("a refused Get returned %q", v)
	}
	wantStale(t, r.Update(6, func(string) (string, error) { t.Error("called with a stale token"); return "", nil }), 6, 7)
}

// The rule, against a model that is the rule.
func TestRegisterFollowsTheRule(t *testing.T) {
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		var register fence.Register[int]
		var highest int64
		var value int
		for range r.Between(1, 50) {
			token, v := int64(r.Between(-1, 6)), r.Int()
			if r.Bool() {
				token = int64(r.Uint64())
			}
			err := register.Set(token, v)
			switch {
			case token <= 0:
				if !errors.Is(err, fence.ErrUnfenced) {
					t.Fatalf("token %d: %v", token, err)
				}
			case token < highest:
				wantStale(t, err, token, highest)
			case err != nil:
				t.Fatalf("token %d after %d: %v", token, highest, err)
			default:
				highest, value = token, v
			}
			if v, h := register.Peek(); v != value || h != highest {
				t.Fatalf("the register has %d and %d, want %d and %d", v, h, value, highest)
			}
		}
	})
}

// Many holders, most of them stale at one time or another: the sequence of
// accepted tokens never falls, whoever wins.
func TestGuardHammer(t *testing.T) {
	var (
		g        fence.Guard
		issued   atomic.Int64
		accepted []int64 // guarded by g
		refused  atomic.Int64
		wg       sync.WaitGroup
	)
	for range 16 {
		wg.Go(func() {
			for range 200 {
				token := issued.Add(1)
				for range 1 + rand.IntN(4) {
					err := g.Do(token, func() error {
						accepted = append(accepted, token)
						return nil
					})
					if errors.Is(err, fence.ErrStale) {
						refused.Add(1)
					} else if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if !slices.IsSorted(accepted) {
		t.Error("the sequence of accepted tokens falls")
	}
	if int64(len(accepted)) < 16 || accepted[len(accepted)-1] != g.Highest() {
		t.Errorf("%d tokens were accepted, the last is %d and the highest %d", len(accepted), accepted[len(accepted)-1], g.Highest())
	}
	t.Logf("%d accepted, %d refused", len(accepted), refused.Load())
}
