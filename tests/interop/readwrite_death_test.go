package interop

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Each side renews its own numbered keys and not the other's: a reader that died
// does not live on by the other's renewals.
func TestReadersRenewTheirOwn(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		// Redisson's renewal sets the TTL of the lock, whatever it was, and that of
		// Go's keys too before 4.4. Go must have renewed before that is over.
		const watchdog = 20 * time.Second
		h := w.goTakes(peer.Read)
		p := w.ownJavaWith(peer.Options{Addr: w.server.Addr(), Watchdog: watchdog})
		w.javaSide("t1", peer.Read).take(0)
		owner := w.javaOwner("t1")
		javaKey, goKey := wire.ReadTimeout(w.name, owner, 1), wire.ReadTimeout(w.name, h.ID(), 1)
		for end := time.Now().Add(watchdog + watchdog/2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			w.alive(h.ID())
			w.alive(owner)
		}
		p.Kill()
		w.java = nil
		died := time.Now()
		w.eventually("the end of the dead reader's key", func() bool { return w.server.MustDo("EXISTS", javaKey) == int64(0) })
		if took := time.Since(died); took > watchdog+generous {
			t.Errorf("the dead reader's key went only after %v", took)
		}
		for end := time.Now().Add(goWatchdog); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if w.server.MustDo("EXISTS", goKey, w.name) != int64(2) {
				t.Fatalf("Go's hold is gone: Redis has %v; %v", w.fields(), h.Err())
			}
			w.noKey(javaKey)
		}
		// The dead one keeps nobody out when the last that lives has left.
		w.release(h)
		w.nothing()
		w.javaSide("t2", peer.Write).take(0)
	})
}

// A Go process that died reading keeps a writer out for its lease, while Java
// reads on, and no longer.
func TestGoReaderDiesWhileJavaReads(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		dead := w.goProcessHolds()
		j := w.javaSide("t1", peer.Read)
		j.take(0)
		w.alive(dead.owner)
		key := wire.ReadTimeout(w.name, dead.owner, 1)
		dead.kill()
		if w.version == peer.Oldest { // it renews what it finds, until 4.4
			j.unlock()
			w.eventually("the end of the dead reader", func() bool { return w.server.MustDo("EXISTS", w.name) == int64(0) })
			return
		}
		w.eventually("the end of the dead reader's key", func() bool { return w.server.MustDo("EXISTS", key) == int64(0) })
		w.alive(w.javaOwner("t1"))
		j.unlock() // sees that the other is dead
		w.nothing()
	}, peer.Read)
}

// A writer or reader that dies is replaced when its lease has ended.
func TestReadWriteHoldersDie(t *testing.T) {
	sides := map[string]string{peer.Read: peer.Write, peer.Write: peer.Read}
	for held, wanted := range sides {
		t.Run("Go dies to "+held, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				j := w.javaSide("t1", wanted)
				h := w.goProcessHolds()
				waiter := w.start("Java: lock to "+wanted, func() error { return j.Lock.Lock(w.ctx, 0) })
				w.asleep(1)
				h.kill()
				w.inAfterLease(waiter, 0)
				j.unlock()
				w.nothing()
			}, held)
		})
		t.Run("Java dies to "+held, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				p := w.ownJava()
				w.javaLock("t1").take(0)
				lock := w.side(wanted)
				var h *redlatch.Hold
				waiter := w.start("Go: acquire to "+wanted, func() (err error) {
					h, err = lock.Acquire(w.ctx)
					return err
				})
				w.asleep(1)
				p.Kill()
				w.inAfterLease(waiter, 0)
				w.release(h)
				w.nothing()
			}, held)
		})
	}
}
