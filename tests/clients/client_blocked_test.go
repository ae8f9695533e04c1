package clients

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A call may last as long as its context and not a moment longer, whatever the
// driver does. In fake time that is exact.
func TestEveryCallReturnsWhenItsContextEnds(t *testing.T) {
	const patience = 700 * time.Millisecond
	var (
		c  *redlatch.Client
		l  *redlatch.Lock
		b  *locktest.Blockable
		no = errors.New("the work failed")
	)
	block := func() { b.Blocked.Store(true) }
	mustHold := func(t *testing.T, ctx context.Context, opts ...redlatch.PlainOption) *redlatch.Hold {
		t.Helper()
		h, err := locktest.With(l, opts...).Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	calls := []struct {
		name string
		// call brings about the state, blocks the driver and makes the call;
		// want is what its error must be, nil for none.
		call func(t *testing.T, ctx context.Context) error
		want []error
	}{
		{"Acquire", func(t *testing.T, ctx context.Context) error {
			block()
			_, err := l.Acquire(ctx)
			return err
		}, []error{context.DeadlineExceeded}},
		{"Acquire of a lease", func(t *testing.T, ctx context.Context) error {
			block()
			_, err := locktest.With(l, redlatch.Lease(time.Minute)).Acquire(ctx)
			return err
		}, []error{context.DeadlineExceeded}},
		{"Acquire with Wait", func(t *testing.T, _ context.Context) error {
			block()
			_, err := l.TryAcquire(bg, patience)
			return err
		}, []error{redlatch.ErrUnavailable}},
		{"Acquire behind one that is blocked", func(t *testing.T, ctx context.Context) error {
			block()
			go func() { _, _ = l.Acquire(bg) }()
			synctest.Wait()
			_, err := l.Acquire(ctx)
			return err
		}, []error{context.DeadlineExceeded, redlatch.ErrUnavailable}},
		{"Acquire behind a release that is blocked", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			block()
			go func() { _ = h.Release(bg) }()
			synctest.Wait()
			_, err := l.Acquire(ctx)
			return err
		}, []error{context.DeadlineExceeded, redlatch.ErrUnavailable}},
		{"Acquire under WithOwner", func(t *testing.T, ctx context.Context) error {
			ctx = redlatch.WithOwner(ctx)
			block()
			go func() { _, _ = l.Acquire(ctx) }()
			synctest.Wait()
			_, err := l.Acquire(ctx)
			return err
		}, []error{context.DeadlineExceeded}},
		{"take-over with a turn", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			got := locktest.Later(func() error { _, err := l.Acquire(ctx); return err })
			time.Sleep(10 * time.Millisecond)
			block()
			_ = h.Release(bg)
			return <-got
		}, []error{context.DeadlineExceeded}},
		{"take-over with a transfer", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			got := locktest.Later(func() error { _, err := locktest.With(l, redlatch.Lease(time.Minute)).Acquire(ctx); return err })
			synctest.Wait()
			block()
			_ = h.Release(bg)
			return <-got
		}, []error{context.DeadlineExceeded}},
		{"Try", func(t *testing.T, ctx context.Context) error {
			block()
			_, err := l.TryAcquire(ctx, 0)
			return err
		}, []error{context.DeadlineExceeded}},
		{"re-entry", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			block()
			_, err := l.Acquire(h.With(ctx))
			return err
		}, []error{context.DeadlineExceeded}},
		{"re-entry behind one that is blocked", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			block()
			go func() { _, _ = l.Acquire(h.Context()) }()
			synctest.Wait()
			_, err := l.Acquire(h.With(ctx))
			return err
		}, []error{context.DeadlineExceeded}},
		{"Release", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg)
			block()
			return h.Release(ctx)
		}, []error{context.DeadlineExceeded}},
		{"downgrading Release", func(t *testing.T, ctx context.Context) error {
			rw := c.ReadWriteLock("rw")
			h, err := rw.Write().Acquire(bg)
			if err == nil {
				_, err = rw.Read().Acquire(h.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			block()
			return h.Release(ctx)
		}, []error{context.DeadlineExceeded}},
		{"Extend", func(t *testing.T, ctx context.Context) error {
			h := mustHold(t, bg, redlatch.Lease(time.Minute))
			block()
			return h.Extend(ctx, time.Hour)
		}, []error{context.DeadlineExceeded}},
		{"Do, acquiring", func(t *testing.T, ctx context.Context) error {
			block()
			return l.Do(ctx, func(context.Context) error { t.Error("called without the lock"); return nil })
		}, []error{context.DeadlineExceeded}},
		{"Do, releasing", func(t *testing.T, ctx context.Context) error {
			return l.Do(ctx, func(context.Context) error { block(); return nil })
		}, nil},
		{"Do, releasing after its work failed", func(t *testing.T, ctx context.Context) error {
			return l.Do(ctx, func(context.Context) error { block(); return no })
		}, []error{no}},
		{"Info", func(t *testing.T, ctx context.Context) error {
			block()
			_, err := admin.LockInfo(ctx, l)
			return err
		}, []error{context.DeadlineExceeded}},
		{"ForceRelease", func(t *testing.T, ctx context.Context) error {
			block()
			_, err := admin.ForceRelease(ctx, l)
			return err
		}, []error{context.DeadlineExceeded}},
	}
	for _, x := range calls {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b = &locktest.Blockable{End: make(chan struct{})}
				var err error
				if c, err = redlatch.New(b, redlatch.Config{}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					start := time.Now()
					_ = c.Close() // as a rule something is in flight
					if took := time.Since(start); took > 3*time.Second {
						t.Errorf("Close took %v, want CloseTimeout at most", took)
					}
					close(b.End)
				}()
				l = c.Lock("orders")
				ctx, cancel := context.WithTimeout(bg, patience)
				defer cancel()
				start := time.Now()
				err = x.call(t, ctx)
				if took := time.Since(start); took != patience {
					t.Errorf("returned after %v, want %v", took, patience)
				}
				for _, want := range x.want {
					if !errors.Is(err, want) {
						t.Errorf("error %v, want %v", err, want)
					}
				}
				if x.want == nil && err != nil {
					t.Errorf("error %v, want none", err)
				}
			})
		})
	}
}
