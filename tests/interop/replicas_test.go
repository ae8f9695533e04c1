package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Where there are replicas Redisson sends WAIT behind each script, and takes what
// none of them has acknowledged for failed. What Go sees of that: a release is
// heard before it is acknowledged. A lock that is not acknowledged is Java's for
// a second; a new Redisson then gives it back, an old one leaves it to its lease,
// although no thread has it.
func noReplicaAcknowledges(t *testing.T, w *world) {
	replicas := w.stage.nodes[1:]
	pause := func() {
		for _, r := range replicas {
			r.Pause()
		}
	}
	resume := func() {
		for _, r := range replicas {
			r.Resume()
		}
	}
	t.Cleanup(resume)
	cfg := redlatch.Config{WatchdogTimeout: goWatchdog, Redisson: redlatch.Redisson{PubSub: w.stage.goes}, Acks: redlatch.AckOff}
	w.gone = newGoClient(t, w.driver, w.at, cfg)
	j, owner := w.javaLock("t1"), w.javaOwner("t1")

	j.take(long)
	g := w.goWaits()
	pause()
	unlocking := w.start("Java: unlock", func() error { return thrownOnly(j.Unlock(w.ctx)) })
	w.inSoon(g.waiting)
	w.holds(g.hold.ID(), "1")
	w.release(g.hold)
	resume() // a new Redisson tries again until one acknowledges
	unlocking.returns()

	lease := long
	if !w.newest() {
		lease = short
	}
	pause()
	began := time.Now()
	trying := w.start("Java: tryLock", func() error {
		ok, err := j.TryLock(w.ctx, 0, lease)
		if ok && w.newest() { // the old one, which leaves the lock to its lease either way, may take its replicas for gone, and ask none
			err = errors.New("it has what no replica has")
		}
		return thrownOnly(err)
	})
	w.eventually("Java's field", func() bool {
		select {
		case <-trying.done: // it had and has given it back
			return true
		default:
			return w.fields()[owner] != ""
		}
	})
	from := time.Now()
	h, err := locktest.With(w.goLock(), redlatch.Lease(long)).Acquire(w.ctx)
	took, since := time.Since(from), time.Since(began)
	w.must(err)
	resume()
	trying.returns()
	w.holds(h.ID(), "1")
	if w.newest() && took > generous {
		t.Errorf("Java gave the lock back only after %v", took)
	}
	if !w.newest() && (since < short || took > short+generous) {
		t.Errorf("Go got in after %v, and not at the end of the lease of %v", since, short)
	}
	w.release(h)
	w.free()

	// And a Go client that asks as Redisson does takes it for failed as well, and
	// leaves nothing that would keep a Redisson thread waiting.
	cfg.Acks = redlatch.AckAuto
	asking := newGoClient(t, w.driver, w.at, cfg)
	pause()
	_, err = goLock(asking, w.kind, w.name).Acquire(w.ctx)
	if e, ok := errors.AsType[*redlatch.AckError](err); !ok || e.Got != 0 {
		t.Errorf("Go acquires with silent replicas: %v, want an AckError", err)
	}
	w.eventually("nobody's field", func() bool { return len(w.fields()) == 0 })
	resume()
	j.take(long)
	w.must(j.Unlock(w.ctx))
	w.free()
}

// thrownOnly returns err unless Redisson threw it.
func thrownOnly(err error) error {
	if _, thrown := errors.AsType[*peer.Error](err); thrown {
		return nil
	}
	return err
}
