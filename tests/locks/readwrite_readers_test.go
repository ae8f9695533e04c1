package locks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A slowEnd is a context that has ended, and takes its time to say so: whoever
// waits under it has seen the end and not acted on it yet.
type slowEnd struct {
	context.Context //nolint:containedctx // this is a context
	asked, told     chan struct{}
}

func (c *slowEnd) Err() error {
	err := c.Context.Err()
	if err != nil {
		select {
		case <-c.asked:
		default:
			close(c.asked)
		}
		<-c.told
	}
	return err
}

// A member of a party that gives up just before the party is let in has a place
// in the term by the time it leaves. It must give it back, or the lock is kept
// for good by a reader whom nobody knows.
func TestAReaderThatGivesUpAsItsPartyIsLetInGivesItsPlaceBack(t *testing.T) {
	for _, others := range []int{0, 1, 5} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
			wr := w.Acquire(bg, other.ReadWriteLock("orders").Write())
			l := c.ReadWriteLock("orders").Read()
			var waits []<-chan *redlatch.Hold
			for range others {
				waits = append(waits, locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) }))
			}
			base, cancel := context.WithCancel(bg)
			ctx := &slowEnd{base, make(chan struct{}), make(chan struct{})}
			gone := locktest.Later(func() error { _, err := l.Acquire(ctx); return err })
			stays := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) }) // so that there is a party to be let in
			synctest.Wait()
			cancel()
			<-ctx.asked // it has seen the end, and is about to leave
			w.Release(wr)
			h := <-stays
			close(ctx.told)
			w.WantErr(<-gone, redlatch.ErrBusy, context.Canceled)
			w.Release(h)
			for _, c := range waits {
				w.Release(<-c)
			}
			synctest.Wait()
			w.WantNothing()
			w.Release(w.AcquireWithin(bg, other.ReadWriteLock("orders").Write(), time.Second))
		})
	}
}

func TestReadersThatWaitEnterTogether(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		wr := w.Acquire(bg, other.ReadWriteLock("orders").Write())
		var wg sync.WaitGroup
		in, most := 0, 0
		var mu sync.Mutex
		for range 1000 {
			wg.Go(func() {
				h, err := c.ReadWriteLock("orders").Read().Acquire(bg)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				in++
				most = max(most, in)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				in--
				mu.Unlock()
				w.Release(h)
			})
		}
		time.Sleep(time.Second)
		w.Release(wr)
		wg.Wait()
		if most != 1000 {
			t.Errorf("%d readers at a time", most)
		}
		w.WantNoKeys()
	})
}

func TestCancelledReadersLeaveNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		wr := w.Acquire(bg, other.ReadWriteLock("orders").Write())
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				wait := time.Hour
				if i%2 == 0 {
					wait = time.Duration(i) * 50 * time.Millisecond
				}
				_, err := c.ReadWriteLock("orders").Read().TryAcquire(ctx, wait)
				w.WantErr(err, redlatch.ErrBusy)
			})
		}
		time.Sleep(6 * time.Second)
		cancel()
		wg.Wait()
		w.WantFields("the writer's", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1"})
		w.Release(wr)
		time.Sleep(5 * time.Minute)
		w.WantNoKeys()
	})
}

// A writer that gives up must not leave readers waiting for a drain.
func TestReadersJoinAgainWhenTheWriterGivesUp(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			writer := c
			if where == "elsewhere" {
				writer = w.Client(redlatch.Config{})
			}
			l := c.ReadWriteLock("orders").Read()
			long := w.Acquire(bg, l)
			wc := locktest.Later(func() error {
				_, err := writer.ReadWriteLock("orders").Write().TryAcquire(bg, 3*time.Second)
				return err
			})
			time.Sleep(time.Second)
			if where == "elsewhere" {
				w.Release(w.Acquire(bg, l)) // has us ask
			}
			time.Sleep(time.Second)
			start := time.Now()
			h := w.Acquire(bg, l)
			if d := time.Since(start); d < 500*time.Millisecond || d > 2*time.Second {
				t.Errorf("%s: a reader waited for %v", where, d)
			}
			w.WantErr(<-wc, redlatch.ErrBusy)
			w.Release(h)
			w.Release(long)
			w.WantNoKeys()
		})
	}
}

func TestTryToReadSucceedsWhileOthersTry(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				h, err := c.ReadWriteLock("orders").Read().TryAcquire(bg, 0)
				if err != nil {
					t.Errorf("Try: %v", err)
					return
				}
				time.Sleep(time.Millisecond)
				w.Release(h)
			})
		}
		wg.Wait()
		synctest.Wait()
		w.WantNoKeys()
	})
}

// A reader that gives up as it is let in gives its place back.
func TestAReaderThatIsLetInAsItGivesUpLeavesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cancel context.CancelFunc
		d := &locktest.Tap{Timeout: 100 * time.Millisecond}
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "readwrite.read.take" {
				go cancel()
			}
			return r, err
		}
		l := w.Tapped(redlatch.Config{}, d).ReadWriteLock("orders").Read()
		for range 300 {
			ctx, stop := context.WithCancel(bg)
			cancel = stop
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					h, err := l.Acquire(ctx)
					if err == nil {
						w.Release(h)
					}
				})
			}
			wg.Wait()
			stop()
			synctest.Wait()
			w.WantNothing()
		}
	})
}

// The party is let in with the lease of whoever came first.
func TestAReaderWithTooShortALeaseSpoilsNobodyElsesParty(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			r, err := next()
			if s == "readwrite.read.take" {
				time.Sleep(12 * time.Millisecond) // a lease of 20 ms is trusted for 9.6
			}
			return r, err
		}}
		l := w.Tapped(redlatch.Config{}, slow).ReadWriteLock("orders").Read()
		hopeless := locktest.Later(func() error { _, err := locktest.With(l, redlatch.Lease(20*time.Millisecond)).Acquire(bg); return err })
		synctest.Wait()
		h := w.Acquire(bg, l)
		w.WantErr(<-hopeless, redlatch.ErrUnavailable)
		w.Release(h)
		w.WantNoKeys()
	})
}

// Nobody says so when a lock is deleted: the next renewal sees it, for all readers
// at once.
func TestReadersAreToldWhenTheirLockIsDeleted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Read()
		holds := []*redlatch.Hold{w.Acquire(bg, l), w.Acquire(bg, l), w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute)))}
		w.Server.Del("orders")
		wr := w.Acquire(bg, other.ReadWriteLock("orders").Write())
		time.Sleep(10100 * time.Millisecond)
		for _, h := range holds {
			w.WantErr(h.Err(), redlatch.ErrLost)
			w.WantErr(h.Release(bg), redlatch.ErrLost)
		}
		w.WantFields("the writer's", "orders", map[string]string{"mode": "write", wr.ID() + ":write": "1"})
		if _, err := l.TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a reader beside the writer: %v", err)
		}
		w.Release(wr)
		w.Release(w.Acquire(bg, l))
		time.Sleep(time.Minute) // the key of the hold that was lost
		w.WantNoKeys()
	})
}
