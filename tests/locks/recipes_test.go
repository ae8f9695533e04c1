package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// The Go of docs/recipes.md stands in this file, line by line.

func refreshOnce(ctx context.Context, client *redlatch.Client, refresh func(ctx context.Context) error) error {
	const interval = 5 * time.Minute
	once := client.Lock("prices:refresh", redlatch.Lease(interval), redlatch.MinHold(interval))
	ran, err := once.TryDo(ctx, 0, refresh)
	if !ran && errors.Is(err, redlatch.ErrBusy) {
		return nil // it has been done in this interval, or is being done
	}
	return err
}

func table(client *redlatch.Client) *redlatch.ReadWriteLock {
	return client.ReadWriteLock("orders").PreferWriters()
}

func rows(client *redlatch.Client, ids ...int) *redlatch.Lock {
	locks := []*redlatch.Lock{table(client).Read()}
	for _, id := range ids {
		locks = append(locks, client.Lock(fmt.Sprintf("orders:%d", id)))
	}
	return redlatch.MultiLock(locks...)
}

// What many notice is done by the first of them, and by nobody else before the
// interval is over.
func TestOncePerIntervalRunsOncePerInterval(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		runs := 0
		refresh := func(context.Context) error { runs++; return nil }
		for want := 1; want <= 3; want++ {
			for _, c := range []*redlatch.Client{a, b, a} {
				w.OK(refreshOnce(bg, c, refresh))
				if runs != want {
					t.Fatalf("%d runs in %d intervals", runs, want)
				}
				time.Sleep(99 * time.Second) // three times, and the interval is almost over
			}
			time.Sleep(4 * time.Second)
		}
		failed := errors.New("no prices")
		if err := refreshOnce(bg, b, func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("it failed, and the caller was told %v", err)
		}
		w.OK(refreshOnce(bg, a, refresh))
		if runs != 3 {
			t.Error("one that has failed did not count")
		}
	})
}

// The process that was at it dies. Nobody begins again before the interval is
// over, and somebody does then.
func TestOncePerIntervalOutlivesAProcess(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, dying := w.Client(redlatch.Config{}), w.Mortal()
		began := make(chan struct{})
		ended := locktest.Later(func() error {
			return refreshOnce(bg, dying.Client, func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		<-began
		dying.Dead.Store(true)
		runs := 0
		for range 3 {
			time.Sleep(99 * time.Second)
			w.OK(refreshOnce(bg, c, func(context.Context) error { runs++; return nil }))
		}
		if runs > 0 {
			t.Error("it was begun again in the interval")
		}
		time.Sleep(4 * time.Second)
		w.OK(refreshOnce(bg, c, func(context.Context) error { runs++; return nil }))
		if runs != 1 {
			t.Errorf("%d runs after the interval", runs)
		}
		if err := <-ended; !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("the one that died was told %v", err)
		}
		dying.Dead.Store(false)
	})
}

// Rows exclude only themselves, and the table all of them.
func TestRowsAreLockedOneByOneAndTheTableAsAWhole(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		writer, late := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		first := w.Acquire(bg, rows(a, 1))
		second := w.AcquireWithin(bg, rows(b, 2), 0)
		others := w.AcquireWithin(bg, rows(a, 3, 4), 0)
		if _, err := rows(b, 1).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a row was had twice: %v", err)
		}
		if _, err := table(a).Write().Acquire(first.Context()); !errors.Is(err, redlatch.ErrReentry) {
			t.Errorf("whoever has a row wanted the table: %v", err)
		}

		whole := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, table(writer).Write()) })
		for _, h := range []*redlatch.Hold{first, second, others} {
			time.Sleep(time.Minute)
			if !locktest.NoneYet(whole) {
				t.Fatal("the table was had with a row")
			}
			if _, err := rows(late, 5).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("a row went before the one who waits for the table: %v", err)
			}
			w.Release(h)
		}
		all := <-whole

		got := make(chan *redlatch.Hold, 2)
		for id, client := range []*redlatch.Client{a, b} {
			go func() { got <- w.Acquire(bg, rows(client, id)) }()
		}
		time.Sleep(time.Minute)
		if !locktest.NoneYet(got) {
			t.Fatal("a row was had with the table")
		}
		w.Release(all)
		w.Release(<-got)
		w.Release(<-got)
	})
}

// Some row is held at any time, and the table is to be had nevertheless.
func TestTheTableIsHadAlthoughRowsAreAlwaysWanted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, stop := context.WithCancel(bg)
		var working sync.WaitGroup
		for i, c := range []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{})} {
			for j := range 4 {
				working.Go(func() {
					time.Sleep(time.Duration(i+2*j) * 125 * time.Millisecond)
					for ctx.Err() == nil {
						w.OK(rows(c, 4*i+j).Do(bg, func(context.Context) error { time.Sleep(time.Second); return nil }))
					}
				})
			}
		}
		time.Sleep(3 * time.Second)
		_, err := table(w.Client(redlatch.Config{})).Write().TryDo(bg, 5*time.Second, func(context.Context) error { return nil })
		stop()
		working.Wait()
		w.OK(err)
	})
}

// Whoever takes several rows names them at once, in whatever order: two of them do
// not wait in a circle.
func TestSeveralRowsAreLockedWithoutDeadlock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ended := make(chan error, 2)
		for _, of := range []*redlatch.Lock{rows(w.Client(redlatch.Config{}), 1, 2), rows(w.Client(redlatch.Config{}), 2, 1)} {
			go func() {
				var err error
				for range 20 {
					err = errors.Join(err, of.Do(bg, func(context.Context) error { time.Sleep(time.Millisecond); return nil }))
				}
				ended <- err
			}()
		}
		w.OK(<-ended)
		w.OK(<-ended)
	})
}
