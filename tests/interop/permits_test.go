package interop

import (
	"encoding/hex"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// skew is by how much longer than its lease redlatch writes a permit.
const skew = time.Second

// notLive is what Redisson throws about a permit that is not live, by version.
var notLive = []string{"IllegalArgumentException", "RedisException"}

func (w *world) goPermits(opts ...redlatch.HoldOption) *semaphore.Expirable {
	return semaphore.NewExpirable(w.goClient(), w.name, 0, opts...)
}

// goPermit acquires a permit in Go, which must be possible at once.
func (w *world) goPermit(opts ...redlatch.HoldOption) *redlatch.Hold {
	w.t.Helper()
	p, err := w.goPermits(opts...).TryAcquire(w.ctx, 1, generous)
	w.must(err)
	return p
}

// permit acquires a permit in Java, which must be possible at once.
func (j javaSync) permit(lease time.Duration) string {
	j.w.t.Helper()
	a := j.call("tryAcquire", peer.Call{N: 1, Wait: generous, Lease: lease})
	if !a.OK {
		j.w.t.Fatal("Java: there is no permit")
	}
	return a.IDs[0]
}

// live returns the ids of the permits that are given, as they stand in Redis.
func (w *world) live() map[string]string {
	w.t.Helper()
	m := map[string]string{}
	for id, until := range pairs(w.server.MustDo("ZRANGE", wire.Suffix(w.name, wire.PermitTimeout), "0", "-1", "WITHSCORES")) {
		m[hex.EncodeToString([]byte(id))] = until
	}
	return m
}

// given checks how many permits each side sees as free, and which as given.
func (w *world) given(free int, ids ...string) {
	w.t.Helper()
	s, j := w.goPermits(), w.javaSync("t1")
	available := map[string]func() (int, error){
		"Go":   func() (int, error) { return s.Available(w.ctx) },
		"Java": j.count("available"),
	}
	acquired := map[string]func() (int, error){"Go": func() (int, error) { return s.Acquired(w.ctx) }}
	all := map[string]func() (int, error){"Go": func() (int, error) { return s.Permits(w.ctx) }}
	if w.newest() {
		acquired["Java"], all["Java"] = j.count("acquired"), j.count("permits")
	}
	w.counts(free, available)
	w.counts(len(ids), acquired)
	w.counts(free+len(ids), all)
	live := w.live()
	for _, id := range ids {
		if live[id] == "" {
			w.t.Errorf("permit %s is not in Redis: %v", id, live)
		}
	}
}

// A permit's id is the same on both sides, each of which may release and extend
// what the other has.
func TestPermitsOfBoth(t *testing.T) { eachOf(t, peer.Permits, permitsOfBoth) }

func permitsOfBoth(t *testing.T, w *world) {
	s, j := w.goPermits(), w.javaSync("t1")
	_, err := s.TryAcquire(w.ctx, 1, 0)
	w.is(err, redlatch.ErrUninitialized)
	if j.call("tryAcquire", peer.Call{N: 1}).OK {
		t.Error("Java has a permit of a semaphore that has none")
	}
	w.yes(s.TrySetPermits(w.ctx, 2))
	j.answers(false, "trySetPermits", 9)

	g, id := w.goPermit(redlatch.Lease(long)), j.permit(long)
	if len(id) != 32 || len(g.ID()) != 32 {
		t.Errorf("ids are %q and %q", id, g.ID())
	}
	w.given(0, g.ID(), id)
	_, err = s.TryAcquire(w.ctx, 1, 0)
	w.is(err, redlatch.ErrBusy)
	if j.call("tryAcquire", peer.Call{N: 1}).OK {
		t.Error("Java has a permit too many")
	}

	w.must(s.Extend(w.ctx, id, 2*long))
	if left, err := s.LeaseLeft(w.ctx, id); err != nil || left <= long || left > 2*long+skew {
		t.Errorf("Java's permit has %v left, %v, want %v", left, err, 2*long)
	}
	if !j.call("extend", peer.Call{IDs: []string{g.ID()}, Lease: 2 * long}).OK {
		t.Error("Java cannot extend Go's permit")
	}
	if left, err := s.LeaseLeft(w.ctx, g.ID()); err != nil || left <= 2*long-generous || left > 2*long {
		t.Errorf("Go's permit has %v left, %v, want %v", left, err, 2*long)
	}
	if w.newest() {
		for _, permit := range []string{id, g.ID()} {
			left := time.Duration(j.call("leaseLeft", peer.Call{IDs: []string{permit}}).Count) * time.Millisecond
			if left <= 2*long-generous || left > 2*long+skew {
				t.Errorf("Java says that a permit has %v left", left)
			}
		}
	}

	w.must(s.Release(w.ctx, id))
	w.given(1, g.ID())
	w.is(s.Release(w.ctx, id), redlatch.ErrNotHeld)
	w.is(s.Extend(w.ctx, id, long), redlatch.ErrNotHeld)
	j.throws("release", peer.Call{IDs: []string{id}}, notLive...)
	if j.call("extend", peer.Call{IDs: []string{id}, Lease: long}).OK {
		t.Error("Java extended a permit that Go has released")
	}
	j.call("release", peer.Call{IDs: []string{g.ID()}})
	w.given(2)
	w.is(g.Extend(w.ctx, long), redlatch.ErrLost)
	if n := j.call("tryRelease", peer.Call{IDs: []string{g.ID()}}).Count; n != 0 {
		t.Errorf("Java released %d permits twice", n)
	}

	id = j.permit(0) // for ever
	if left, err := s.LeaseLeft(w.ctx, id); err != nil || left != -1 {
		t.Errorf("Java's permit has %v left, %v, want -1", left, err)
	}
	w.must(s.Release(w.ctx, id))
	w.given(2)
	w.yes(s.Delete(w.ctx))
	w.free()
}

// Several permits at once: all of them or none, on either side.
func TestManyPermits(t *testing.T) {
	eachOf(t, peer.Permits, func(t *testing.T, w *world) {
		s, j := w.goPermits(redlatch.Lease(long)), w.javaSync("t1")
		j.answers(true, "trySetPermits", 5)
		many, err := locktest.Each(s.Acquire(w.ctx, 3))
		w.must(err)
		defer runtime.KeepAlive(many) // what nobody can release any more is given back
		var ids []string
		for _, p := range many {
			ids = append(ids, p.ID())
		}
		w.given(2, ids...)
		if !w.newest() { // it knows permits only one by one
			for _, id := range ids {
				j.call("release", peer.Call{IDs: []string{id}})
			}
			w.given(5)
			w.deletes(j)
			return
		}
		if j.call("tryAcquire", peer.Call{N: 3, Lease: long}).OK {
			t.Error("Java has 3 of 2 permits")
		}
		theirs := j.call("acquire", peer.Call{N: 2, Lease: long}).IDs
		w.given(0, append(slices.Clone(ids), theirs...)...)

		wrong := append(slices.Clone(ids[:2]), "00000000000000000000000000000000")
		w.is(s.Release(w.ctx, append(slices.Clone(theirs), wrong[2])...), redlatch.ErrNotHeld)
		j.throws("release", peer.Call{IDs: wrong}, notLive...)
		w.given(0, append(slices.Clone(ids), theirs...)...)
		w.must(s.Release(w.ctx, theirs...))
		w.given(2, ids...)
		if n := j.call("tryRelease", peer.Call{IDs: ids}).Count; n != 3 {
			t.Errorf("Java released %d permits, want 3", n)
		}
		w.given(5)

		one := w.goPermit()
		w.must(s.SetPermits(w.ctx, 3))
		w.given(2, one.ID())
		j.do("setPermits", 0)
		w.given(-1, one.ID())
		j.call("release", peer.Call{IDs: []string{one.ID()}})
		w.given(0)
		w.must(s.AddPermits(w.ctx, 4))
		j.do("addPermits", -3)
		w.given(1)
		w.deletes(j)
	})
}

// Who waits goes on with the message, whatever made the permit free.
func TestPermitsWake(t *testing.T) { eachOf(t, peer.Permits, permitsWake) }

func permitsWake(t *testing.T, w *world) {
	s, j, t2 := w.goPermits(), w.javaSync("t1"), w.javaSync("t2")
	frees := func(f func()) {
		t.Helper()
		waiter := j.waits(0, "acquire", 1)
		f()
		w.inSoon(waiter)
	}
	frees(func() { w.yes(s.TrySetPermits(w.ctx, 1)) })
	frees(func() { w.must(s.AddPermits(w.ctx, 1)) })
	frees(func() { w.must(s.SetPermits(w.ctx, 3)) })
	w.must(s.AddPermits(w.ctx, 2))
	g, g2 := w.goPermit(), w.goPermit()
	frees(func() { w.must(g.Release(w.ctx)) })
	frees(func() { w.must(s.Release(w.ctx, g2.ID())) })
	w.yes(s.Delete(w.ctx))

	var all []*redlatch.Hold
	defer func() { runtime.KeepAlive(all) }() // what nobody can release any more is given back
	waits := func(f func()) string {
		t.Helper()
		var got *redlatch.Hold
		waiter := w.sleeps(0, "Go: acquire", func() (err error) {
			got, err = s.Acquire(w.ctx, 1)
			return err
		})
		f()
		w.inSoon(waiter)
		all = append(all, got)
		return got.ID()
	}
	t2.answers(true, "trySetPermits", 1)
	id := t2.permit(long)
	id = waits(func() { t2.call("release", peer.Call{IDs: []string{id}}) })
	id2 := waits(func() { t2.do("addPermits", 1) })
	if w.newest() {
		waits(func() { t2.do("setPermits", 3) })
		waits(func() { t2.call("release", peer.Call{IDs: []string{id, id2}}) })
	}
	w.deletes(j)
}

// The permit of one side is free for who waits on the other when its time is
// over, and not earlier.
func TestPermitsExpire(t *testing.T) {
	eachOf(t, peer.Permits, func(t *testing.T, w *world) {
		s, j := w.goPermits(redlatch.Lease(short)), w.javaSync("t1")
		w.yes(s.TrySetPermits(w.ctx, 1))
		id := j.permit(short)
		until := w.until(id)
		var g *redlatch.Hold
		w.sleeps(0, "Go: acquire", func() (err error) {
			g, err = s.Acquire(w.ctx, 1)
			return err
		}).returns()
		w.inTime("Go", until)
		if n := j.call("tryRelease", peer.Call{IDs: []string{id}}).Count; n != 0 {
			t.Error("Java released what was over")
		}
		trusted := g.Expires()
		if until = w.until(g.ID()); until.Before(trusted.Add(skew)) {
			t.Errorf("Go trusts a permit until %v that ends at %v", trusted, until)
		}
		j.waits(0, "acquire", 1).returns()
		w.inTime("Java", trusted) // Go lives, and gives back what it trusts no more
		w.is(g.Err(), redlatch.ErrLost)
		w.counts(0, map[string]func() (int, error){
			"Go":   func() (int, error) { return s.Available(w.ctx) },
			"Java": j.count("available"),
		})
		w.yes(s.Delete(w.ctx))
		w.free()
	})
}

// until returns when a permit is over.
func (w *world) until(id string) time.Time {
	w.t.Helper()
	ms, err := strconv.ParseInt(w.live()[id], 10, 64)
	w.must(err)
	return time.UnixMilli(ms)
}

// inTime checks that somebody got in now because something was over.
func (w *world) inTime(who string, over time.Time) {
	w.t.Helper()
	if late := time.Since(over); late < 0 || late > generous {
		w.t.Errorf("%s got in %v after the end of the permit", who, late)
	}
}

// A process that dies gives back what it has: with a lease, or, of Go's, if the
// watchdog kept it.
func TestPermitsOfTheDead(t *testing.T) {
	eachOf(t, peer.Permits, func(t *testing.T, w *world) {
		s := w.goPermits()
		w.yes(s.TrySetPermits(w.ctx, 1))
		dying := w.ownJava()
		until := w.until(w.javaSync("t1").permit(short))
		waiter := w.sleeps(0, "Go: acquire", func() error {
			p, err := s.Acquire(w.ctx, 1)
			if err == nil {
				err = p.Release(w.ctx)
			}
			return err
		})
		dying.Kill()
		waiter.returns()
		w.inTime("Go", until)

		w.java = nil // the dead one
		j := w.javaSync("t1")
		h := w.goProcessHolds()
		w.given(0, h.owner)
		waiter = j.waits(0, "acquire", 1)
		h.kill()
		until = w.until(h.owner)
		waiter.returns()
		w.inTime("Java", until)
		w.deletes(j)
	})
}

// Never more are inside than there are permits, and everybody gets in.
func TestPermitsCrowd(t *testing.T) {
	eachOf(t, peer.Permits, func(t *testing.T, w *world) {
		const room, rounds = 2, 15
		w.yes(w.goPermits().TrySetPermits(w.ctx, room))
		c := w.guests(room)
		for i := range 3 {
			var p *redlatch.Hold
			c.member("Go "+strconv.Itoa(i), rounds,
				func() (err error) { p, err = w.goPermits().Acquire(w.ctx, 1); return err },
				func() error { return errors.Join(p.Err(), p.Release(w.ctx)) })
			j, ids := w.javaSync("t"+strconv.Itoa(i)), []string(nil)
			c.member("Java "+strconv.Itoa(i), rounds,
				func() error {
					a, err := j.try("acquire", peer.Call{N: 1, Lease: long})
					ids = a.IDs
					return err
				},
				func() error { _, err := j.try("release", peer.Call{IDs: ids}); return err })
		}
		c.ends()
		w.given(room)
		w.deletes(w.javaSync("t1"))
	})
}
