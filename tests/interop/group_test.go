package interop

import (
<<<<<<< HEAD
	"errors"
	"strconv"
=======
	"maps"
	"slices"
	"strings"
>>>>>>> group-int
	"testing"
	"time"

	"github.com/redlatch/redlatch"
<<<<<<< HEAD
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// values returns the lock of values of the story's group in Go.
func (w *world) values(values ...string) *redlatch.Lock {
	w.t.Helper()
	return w.goClient().GroupLock(w.name, values...)
}

// takesValues acquires values in Go, which must be possible soon.
func (w *world) takesValues(lease redlatch.Option, values ...string) *redlatch.Hold {
	w.t.Helper()
	h, err := w.values(values...).Acquire(w.ctx, redlatch.Wait(soon), lease)
	if err != nil {
		w.t.Fatalf("Go: acquire %q: %v; Redis has %v", values, err, w.fields())
	}
	return h
}

// javaValues returns the lock of values of the story's group for a Java thread.
func (w *world) javaValues(thread string, values ...string) javaLock {
=======
	"github.com/redlatch/redlatch/tests/interop/peer"
)

func (w *world) goGroup(values ...string) *redlatch.Lock {
	return w.goClient().GroupLock(w.name, values...)
}

func (w *world) javaGroup(thread string, values ...string) javaLock {
>>>>>>> group-int
	w.t.Helper()
	return javaLock{w.javaClient().Thread(thread).Group(w.name, values...), w}
}

<<<<<<< HEAD
// locked checks that the group is locked for these values, and how.
func (w *world) locked(owner, count string, values ...string) {
	w.t.Helper()
	fields := w.fields()
	if len(fields) != 3*len(values) {
		w.t.Errorf("Redis has %v, want three fields for each of %q", fields, values)
	}
	for _, v := range values {
		f := wire.GroupField(v)
		expiry, n := wire.GroupFields(f, owner)
		until, _ := strconv.ParseInt(fields[expiry], 10, 64)
		if fields[f] != owner || fields[n] != count || !time.UnixMilli(until).After(time.Now()) {
			w.t.Errorf("%q is locked by %q, %q times, until %q; want %q, %q", v, fields[f], fields[n], fields[expiry], owner, count)
		}
	}
}

// Both see the same fields for the same texts: what one has locked the other
// does not get, if they have but one value in common, and gets otherwise.
func TestGroupsOfBoth(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.takesValues(redlatch.Lease(long), "x", "käse 🧀", "")
		w.locked(h.Owner(), "1", "x", "käse 🧀", "")
		for _, value := range []string{"x", "käse 🧀", ""} {
			if w.javaValues("t1", "y", value).try(0, 0) {
				t.Errorf("Java has %q, which Go has locked", value)
			}
			w.javaValues("t1", value).refusesUnlock()
		}
		w.locked(h.Owner(), "1", "x", "käse 🧀", "")
		other := w.javaValues("t1", "y", "z")
		other.take(long)
		w.release(h)
		w.locked(w.javaOwner("t1"), "1", "y", "z")

		if _, err := w.values("x", "z").Try(w.ctx); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try of what Java has locked: %v, want ErrBusy", err)
		}
		w.locked(w.javaOwner("t1"), "1", "y", "z")
		w.release(w.takesValues(redlatch.Lease(long), "x"))
		other.take(long)
		w.locked(w.javaOwner("t1"), "2", "y", "z")
		other.unlock()
		other.unlock()
		w.free()

		outer := w.takesValues(redlatch.Lease(long), "x", "y")
		inner, err := w.values("x", "y").Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.locked(outer.Owner(), "2", "x", "y")
		w.release(inner)
		if w.javaValues("t1", "y").try(0, 0) {
			t.Error("Java has what Go still has locked")
		}
		w.release(outer)
		w.free()
	}, peer.Group)
}

// Each wakes the other's waiters.
func TestGroupsWake(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.takesValues(redlatch.Lease(long), "x", "y")
		j := w.javaValues("t1", "y", "z")
		java := w.start("Java: lock", func() error { return j.Lock.Lock(w.ctx, 0) })
		w.asleep(1)
		java.open()
		w.release(h)
		w.inSoon(java)

		lock := w.values("z", "x")
		var got *redlatch.Hold
		golang := w.start("Go: acquire", func() (err error) {
			got, err = lock.Acquire(w.ctx)
			return err
		})
		w.asleep(1)
		golang.open()
		j.unlock()
		w.inSoon(golang)
		w.locked(got.Owner(), "1", "x", "z")
		w.release(got)
		w.free()
	}, peer.Group)
}

// A lease that ends lets the other side in, and what is late changes nothing.
// Neither side's watchdog needs the other's.
func TestGroupLeasesEnd(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		j := w.javaValues("t1", "x", "y")
		j.take(0)
		lock := w.values("y")
		for end := time.Now().Add(javaWatchdog + javaWatchdog/2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if _, err := lock.Try(w.ctx); !errors.Is(err, redlatch.ErrBusy) {
				t.Fatalf("Go: Try of what Java's watchdog keeps: %v, want ErrBusy", err)
			}
		}
		var h *redlatch.Hold
		golang := w.start("Go: acquire", func() (err error) {
			h, err = lock.Acquire(w.ctx, redlatch.Lease(short))
			return err
		})
		w.asleep(1)
		p.Kill()
		w.java = nil
		// Go waits for what Redisson may still hold by a clock that is late.
		from, ttl := time.Now(), w.ttl()
		golang.returns()
		if took := time.Since(from); took > ttl+2*soon {
			t.Errorf("Go got in %v after Java's death, its lease had %v left", took, ttl)
		}

		next := w.javaValues("t2", "y")
		java := w.start("Java: lock", func() error { return next.Lock.Lock(w.ctx, 0) })
		w.asleep(1)
		java.open()
		<-h.Context().Done()
		java.returns()
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release after the lease: %v, want ErrLost", err)
		}
		if !next.try(0, 0) {
			t.Error("Java has lost what it has just got")
		}
		next.unlock()
		next.unlock()
	}, peer.Group)
}

// Threads of Java and goroutines of Go that want different pairs of three values
// do not wait for each other in a circle, and no update of a value is lost.
func TestGroupsExclude(t *testing.T) {
	const rounds = 25
	each(t, func(t *testing.T, w *world) {
		pairs := [][]string{{"x", "y"}, {"y", "z"}, {"z", "x"}}
		add := func(values []string) error {
			for _, v := range values {
				n, err := w.server.Do("GET", "counter:"+v)
				if err != nil {
					return err
				}
				text, _ := n.(string)
				value, _ := strconv.Atoi(text)
				if _, err := w.server.Do("SET", "counter:"+v, strconv.Itoa(value+1)); err != nil {
					return err
				}
			}
			return nil
		}
		var all []*waiting
		for i, values := range pairs {
			j := w.javaValues("t"+strconv.Itoa(i), values...)
			all = append(all, w.start("Java: loop", func() error {
				for range rounds {
					if err := j.Lock.Lock(w.ctx, 0); err != nil {
						return err
					}
					if err := errors.Join(add(values), j.Unlock(w.ctx)); err != nil {
						return err
					}
				}
				return nil
			}))
			lock := w.values(values...)
			all = append(all, w.start("Go: loop", func() error {
				for range rounds {
					h, err := lock.Acquire(w.ctx)
					if err != nil {
						return err
					}
					if err := errors.Join(add(values), h.Release(w.ctx)); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, c := range all {
			c.returns()
		}
		for _, v := range []string{"x", "y", "z"} {
			if n := w.server.MustDo("GET", "counter:"+v); n != strconv.Itoa(4*rounds) {
				t.Errorf("the counter of %q is %v after %d sections", v, n, 4*rounds)
			}
			w.server.MustDo("DEL", "counter:"+v)
		}
		w.free()
	}, peer.Group)
=======
// goTakes acquires values in Go, which must be possible soon.
func (w *world) goTakes(values ...string) *redlatch.Hold {
	w.t.Helper()
	h, err := w.goGroup(values...).Acquire(w.ctx, redlatch.Wait(soon))
	if err != nil {
		w.t.Fatalf("Go: acquire %q: %v", values, err)
	}
	return h
}

// What Go holds Java does not get, nor the other way round; values that nobody
// holds are free for both.
func TestGroupsExcludeEachOther(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakes("a", "ü")
		if w.javaGroup("t1", "ü", "b").try(0, 0) {
			t.Error("Java: took a value that Go holds")
		}
		j := w.javaGroup("t1", "b", "c")
		j.take(0)
		if _, err := w.goGroup("c", "d").Try(w.ctx); err == nil {
			t.Error("Go: took a value that Java holds")
		}
		info, err := w.goGroup("a", "b").Info(w.ctx)
		if err != nil || len(info.Holders) != 2 || !info.Holders[0].Redlatch || info.Holders[1].Redlatch || info.Holders[1].Owner != w.javaOwner("t1") {
			t.Errorf("%+v, %v", info, err)
		}
		j.unlock()
		if err := h.Err(); err != nil {
			t.Errorf("Java's unlock of other values: %v", err)
		}
		w.release(h)
		w.free()
	})
}

// A release wakes who waits in the other language.
func TestGroupReleaseWakesTheOther(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakes("a", "b")
		waits := w.javaWaits(w.javaGroup("t1", "b", "c"))
		w.release(h)
		w.inSoon(waits)
		g := &goWaiting{}
		lock := w.goGroup("c", "d")
		g.waiting = w.start("Go: acquire", func() (err error) {
			g.hold, err = lock.Acquire(w.ctx)
			return err
		})
		w.asleep(1)
		g.open()
		w.javaGroup("t1", "b", "c").unlock()
		w.inSoon(g.waiting)
		w.release(g.hold)
		w.free()
	})
}

// Each side's watchdog keeps its own values, beside the other's, for longer than
// any lease; nobody cuts the hash's TTL.
func TestGroupWatchdogsSideBySide(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakes("a")
		j := w.javaGroup("t1", "b")
		j.take(0)
		for end := time.Now().Add(goWatchdog + 3*time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if err := h.Err(); err != nil {
				t.Fatalf("Go: %v", err)
			}
			if ttl := w.ttl(); ttl < goWatchdog/2 {
				t.Fatalf("TTL %v", ttl)
			}
			if _, err := w.goGroup("b").Try(w.ctx); err == nil {
				t.Fatal("Go: took what Java's watchdog keeps")
			}
			if w.javaGroup("t2", "a").try(0, 0) {
				t.Fatal("Java: took what Go's watchdog keeps")
			}
		}
		w.release(h)
		j.unlock()
		w.free()
	})
}

// Java's forced unlock of a value is a loss for Go, of the whole hold; Go's is
// one for Java.
func TestGroupForce(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakes("a", "b")
		if _, err := w.javaGroup("t1", "a").ForceUnlock(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.javaGroup("t2", "a").take(0)
		w.eventually("a loss", func() bool { return h.Err() != nil })
		w.eventually("b is free", func() bool { // whatever is left of the hold is released
			return !slices.ContainsFunc(slices.Collect(maps.Keys(w.fields())), func(f string) bool { return strings.Contains(f, h.Owner()) })
		})
		if done, err := w.goGroup("a").ForceRelease(w.ctx); !done || err != nil {
			t.Error(done, err)
		}
		w.javaGroup("t2", "a").refusesUnlock()
		w.free()
	})
}

// A re-entry of each side shows in the other's count; the last release frees.
func TestGroupReentry(t *testing.T) {
	eachPair(t, peer.Group, func(t *testing.T, w *world) {
		h := w.goTakes("a", "b")
		inner, err := w.goGroup("a", "b").Acquire(h.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.release(h)
		if w.javaGroup("t1", "a").try(0, 0) {
			t.Error("Java: took what an inner hold keeps")
		}
		w.release(inner)
		j := w.javaGroup("t1", "a", "b")
		j.take(0)
		j.take(0)
		j.unlock()
		if _, err := w.goGroup("a").Try(w.ctx); err == nil {
			t.Error("Go: took what Java has entered twice")
		}
		j.unlock()
		w.free()
	})
>>>>>>> group-int
}
