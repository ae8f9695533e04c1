package locks

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson takes the lock away when it finds no live numbered key of anybody.
func TestAForeignReadUnlockKeepsTheLockForOurReaders(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		f := w.Foreigner("orders", locktest.JavaOwner)
		a, b := w.Acquire(bg, rw.Read()), w.Acquire(bg, rw.Read())
		if !f.Read(30*time.Second) || !f.Read(time.Hour) {
			t.Fatal("no place beside our readers")
		}
		w.Release(a) // the first of ours
		for range 2 {
			if f.Unread() != 0 {
				t.Fatal("the foreign release freed the lock")
			}
		}
		w.WantFields("ours alone", "orders", map[string]string{"mode": "read", b.ID(): "1"})
		if ttl := w.Server.TTL("orders"); time.Now().Add(ttl).Before(b.Expires()) {
			t.Errorf("the lock lives for %v, our hold is trusted for %v", ttl, time.Until(b.Expires()))
		}
		for range 10 {
			time.Sleep(15 * time.Second)
			f.Read(time.Second)
			if f.Unread() != 0 || b.Err() != nil {
				t.Fatal("the lock was taken from us", b.Err())
			}
		}
		w.Release(b)
		w.WantNoKeys()
	})
}

func TestOurReleaseKeepsTheLockForForeignReaders(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		f, g := w.Foreigner("orders", locktest.JavaOwner), w.Foreigner("orders", locktest.JavaOwner2)
		f.Read(20 * time.Second)
		f.Read(50 * time.Second) // its second key lives longer
		g.Read(10 * time.Second)
		h := w.Acquire(bg, locktest.With(rw.Read(), redlatch.Lease(time.Hour)))
		w.Release(h)
		if ttl := w.Server.TTL("orders"); ttl != 50*time.Second {
			t.Errorf("the lock lives for %v, its longest hold for 50s", ttl)
		}
		w.WantFields("theirs", "orders", map[string]string{"mode": "read", locktest.JavaOwner: "2", locktest.JavaOwner2: "1"})
		if _, err := rw.Write().TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a writer beside foreign readers: %v", err)
		}
		start := time.Now()
		wr := w.Acquire(bg, rw.Write())
		if d := time.Since(start); d < 50*time.Second || d > 51*time.Second {
			t.Errorf("the writer waited for %v", d)
		}
		if f.Read(time.Second) {
			t.Error("a foreign reader beside our writer")
		}
		w.Release(wr)
		w.WantNoKeys()
	})
}

func TestForeignZombiesDoNotKeepTheLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		f := w.Foreigner("orders", locktest.JavaOwner)
		f.Read(5 * time.Second)
		h := w.Acquire(bg, rw.Read())
		time.Sleep(time.Minute)
		w.WantFields("a zombie beside us", "orders", map[string]string{"mode": "read", locktest.JavaOwner: "1", h.ID(): "1"})
		w.Release(h)
		w.WantNoKeys()
	})
}

func TestAForeignReadReleaseWakesOurWriter(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
		f := w.Foreigner("orders", locktest.JavaOwner)
		f.Read(time.Hour)
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, rw.Write()) })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		if f.Unread() != 1 {
			t.Fatal("still held")
		}
		w.Release(<-got)
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("it waited for %v", d)
		}
		w.WantNoKeys()
	})
}

// A lock of another type under the name is left alone.
func TestAReadWriteLockDoesNotBreakIntoAPlainLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders"))
		for _, c := range []*redlatch.Client{c, other} {
			for _, l := range []*redlatch.Lock{c.ReadWriteLock("orders").Read(), c.ReadWriteLock("orders").Write()} {
				if _, err := l.TryAcquire(h.Context(), 0); !errors.Is(err, redlatch.ErrBusy) {
					t.Errorf("Try: %v", err)
				}
			}
		}
		synctest.Wait()
		w.WantFields("the plain lock's", "orders", map[string]string{h.ID(): "1"})
		w.Release(h)
	})
}

// What a late take of ours took is seen by our own writer, whoever reads beside.
func TestAStrayReadOfOursIsReleasedByOurWriter(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		stray := wire.Owner(c.ID(), 1<<40)
		w.Foreigner("orders", locktest.JavaOwner).Read(time.Second)
		w.Foreigner("orders", stray).Read(time.Hour)
		start := time.Now()
		w.Release(w.Acquire(bg, c.ReadWriteLock("orders").Write()))
		if d := time.Since(start); d > 4*time.Second { // a poll, and the other reader's lease
			t.Errorf("it kept our writer out for %v", d)
		}
		w.WantNoKeys()
	})
}
