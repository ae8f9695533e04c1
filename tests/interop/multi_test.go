package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// eachPair tells a story with each version of Redisson, one driver each.
func eachPair(t *testing.T, kind string, story func(t *testing.T, w *world)) {
	t.Helper()
	needsServers(t)
	t.Parallel()
	for version, driver := range map[string]string{peer.Newest: "rueidis", peer.Oldest: "goredis"} {
		if c := (cast{version, driver, kind}); has(version, kind) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				story(t, newWorld(t, c, testserver.Redis))
			})
		}
	}
}

// member returns one lock of several in Go.
func (w *world) member(name string) *redlatch.Lock { return w.goClient().Lock(name) }

// javaMulti returns Redisson's MultiLock of these names for a thread.
func (w *world) javaMulti(thread string, names ...string) javaLock {
	w.t.Helper()
	th := w.javaClient().Thread(thread)
	var locks []peer.Lock
	for _, name := range names {
		locks = append(locks, th.Lock(peer.Plain, name))
	}
	return javaLock{th.Multi(locks...), w}
}

// ownerOf returns who has the lock with this name, "" if nobody has.
func (w *world) ownerOf(name string) string {
	w.t.Helper()
	for owner := range pairs(w.server.MustDo("HGETALL", name)) {
		return owner
	}
	return ""
}

// owned checks who has each of these locks; "" is nobody.
func (w *world) owned(owner string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		if got := w.ownerOf(name); got != owner {
			w.t.Errorf("%q has the lock %q, want %q", got, name, owner)
		}
	}
}

// Java's MultiLock does not get names of which Go holds one, whichever, and
// keeps none of the others; it gets them all when Go releases that one.
func TestJavaMultiOverWhatGoHolds(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		names := []string{"m:a", "m:b", "m:c"}
		j, owner := w.javaMulti("t1", names...), w.javaOwner("t1")
		for _, name := range names {
			h, err := w.member(name).Try(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if j.try(0, 0) || j.try(300*time.Millisecond, 0) {
				t.Fatalf("Java has all of %v, of which Go holds %q", names, name)
			}
			for _, other := range names {
				if other != name {
					w.owned("", other)
				}
			}
			waiter := w.start("Java: tryLock", func() error {
				if ok, err := j.TryLock(w.ctx, storyLimit, 0); err != nil || !ok {
					return errors.Join(err, errors.New("not acquired"))
				}
				return nil
			})
			w.eventually("Java at work", func() bool { return name == names[0] || w.ownerOf(names[0]) == owner })
			waiter.open()
			w.owned(h.Owner(), name)
			w.release(h)
			waiter.returns()
			w.owned(owner, names...)
			if _, err := w.member(name).Try(w.ctx); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Go: Try of %q, which Java's MultiLock holds: %v, want ErrBusy", name, err)
			}
			j.unlock()
			w.owned("", names...)
		}
	})
}

// Java's RedLock gets on with what Go does not hold if that is most, and not
// otherwise.
func TestJavaRedLockOverWhatGoHolds(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		names := []string{"r:a", "r:b", "r:c"}
		th, owner := w.javaClient().Thread("t1"), w.javaOwner("t1")
		var locks []peer.Lock
		for _, name := range names {
			locks = append(locks, th.Lock(peer.Plain, name))
		}
		j := javaLock{th.Red(locks...), w}

		first, err := w.member(names[0]).Try(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !j.try(soon, long) {
			t.Fatal("Java does not get two of three")
		}
		w.owned(first.Owner(), names[0])
		w.owned(owner, names[1:]...)
		if _, err := w.member(names[1]).Try(w.ctx); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try of what Java's RedLock holds: %v, want ErrBusy", err)
		}
		j.unlock()
		w.owned(first.Owner(), names[0])
		w.owned("", names[1:]...)

		second, err := w.member(names[2]).Try(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if j.try(300*time.Millisecond, long) {
			t.Fatal("Java has most of what Go holds two thirds of")
		}
		w.eventually("Java keeps nothing", func() bool { return w.ownerOf(names[1]) == "" })
		w.release(first)
		w.release(second)
		w.owned("", names...)
	})
}
