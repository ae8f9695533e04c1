package interop

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
				tell(t, func(t *testing.T) *world { return newWorld(t, c, testserver.Redis) }, story)
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
	for owner := range pairs(w.serverOf(name).MustDo("HGETALL", name)) {
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
func TestJavaMultiOverWhatGoHolds(t *testing.T) { eachPair(t, peer.Plain, javaMultiOverWhatGoHolds) }

func javaMultiOverWhatGoHolds(t *testing.T, w *world) {
	names := []string{"m:a", "m:c", "m:d"} // in a cluster each has another server
	j, owner := w.javaMulti("t1", names...), w.javaOwner("t1")
	for _, name := range names {
		h, err := w.member(name).TryAcquire(w.ctx, 0)
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
		w.owned(h.ID(), name)
		w.release(h)
		waiter.returns()
		w.owned(owner, names...)
		if _, err := w.member(name).TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try of %q, which Java's MultiLock holds: %v, want ErrBusy", name, err)
		}
		j.unlock()
		w.owned("", names...)
	}
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

		first, err := w.member(names[0]).TryAcquire(w.ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !j.try(2*short, long) { // of which it spends a third on the first
			t.Fatal("Java does not get two of three")
		}
		w.owned(first.ID(), names[0])
		w.owned(owner, names[1:]...)
		if _, err := w.member(names[1]).TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try of what Java's RedLock holds: %v, want ErrBusy", err)
		}
		j.unlock()
		w.owned(first.ID(), names[0])
		w.owned("", names[1:]...)

		second, err := w.member(names[2]).TryAcquire(w.ctx, 0)
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

// Go's MultiLock does not get names of which Java holds one, whichever, and
// keeps none of the others; it gets them all by the message of Java's unlock.
func TestGoMultiOverWhatJavaHolds(t *testing.T) { eachPair(t, peer.Plain, goMultiOverWhatJavaHolds) }

func goMultiOverWhatJavaHolds(t *testing.T, w *world) {
	names := []string{"m:a", "m:c", "m:d"} // in a cluster each has another server
	// In Java's order, which need not be ours.
	m := redlatch.MultiLock(w.member(names[2]), w.member(names[0]), w.member(names[1]))
	for _, name := range names {
		j := javaLock{w.javaClient().Thread("t1").Lock(peer.Plain, name), w}
		j.take(long)
		if _, err := m.TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatalf("Go: Try of %v, of which Java holds %q: %v, want ErrBusy", names, name, err)
		}
		for _, other := range names {
			if other != name {
				w.eventually("Go keeps nothing", func() bool { return w.ownerOf(other) == "" })
			}
		}
		var h *redlatch.Hold
		waiter := w.start("Go: acquire", func() (err error) {
			h, err = m.Acquire(w.ctx)
			return err
		})
		w.owned(w.javaOwner("t1"), name)
		waiter.open()
		j.unlock()
		w.inSoon(waiter)
		all := w.javaMulti("t2", names...)
		if all.try(0, 0) {
			t.Fatal("Java has what Go's MultiLock holds")
		}
		for _, name := range names {
			if w.ownerOf(name) == "" {
				t.Errorf("Go's MultiLock does not hold %q", name)
			}
			(javaLock{w.javaClient().Thread("t2").Lock(peer.Plain, name), w}).refusesUnlock()
		}
		if err := h.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.owned("", names...)
		if !all.try(generous, 0) {
			t.Fatal("Java does not get what nobody holds")
		}
		all.unlock()
	}
}

// Members may be locks of any kinds. Whoever has one of them, to read or whatever
// else its kind allows, keeps the other side's MultiLock from all.
func TestMultisOfManyKinds(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		kinds := []string{peer.Plain, peer.Fair, peer.Write}
		if has(w.version, peer.Fenced) {
			kinds = append(kinds, peer.Fenced)
		}
		th := w.javaClient().Thread("t1")
		var members []*redlatch.Lock
		var locks []peer.Lock
		var names []string
		for _, kind := range kinds {
			names = append(names, "k:"+kind)
			members = append(members, goLock(w.goClient(), kind, "k:"+kind))
			locks = append(locks, th.Lock(kind, "k:"+kind))
		}
		g, j := redlatch.MultiLock(members...), javaLock{th.Multi(locks...), w}
		for i, kind := range kinds {
			held := kind
			if kind == peer.Write {
				held = peer.Read
			}
			h, err := goLock(w.goClient(), held, names[i]).TryAcquire(w.ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			if j.try(0, 0) {
				t.Errorf("Java has all of %v, of which Go holds %q", names, names[i])
			}
			w.owned("", slices.Concat(names[:i], names[i+1:])...)
			w.release(h)

			other := javaLock{w.javaClient().Thread("t2").Lock(held, names[i]), w}
			other.take(0)
			if _, err := g.TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Go: Try of %v, of which Java holds %q: %v, want ErrBusy", names, names[i], err)
			}
			for _, free := range slices.Concat(names[:i], names[i+1:]) {
				w.eventually("Go keeps nothing", func() bool { return w.ownerOf(free) == "" })
			}
			other.unlock()
		}
		h, err := g.TryAcquire(w.ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if j.try(0, 0) {
			t.Error("Java has what Go's MultiLock holds")
		}
		if err := h.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		j.take(0)
		if _, err := g.TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try of what Java's MultiLock holds: %v, want ErrBusy", err)
		}
		j.unlock()
		w.owned("", names...)
	})
}

// Who dies with all names, or one, keeps the other side's MultiLock out for its
// lease, and no longer.
func TestMultiOverTheDead(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		names := []string{"m:a", "m:b", "m:c"}
		w.name = names[1]
		p := w.ownJava()
		if !w.javaMulti("t1", names...).try(storyLimit, 0) { // a process that has just begun is slow
			t.Fatal("Java does not get what nobody holds")
		}
		m := redlatch.MultiLock(w.member(names[0]), w.member(names[1]), w.member(names[2]))
		var h *redlatch.Hold
		waiter := w.start("Go: acquire", func() (err error) {
			h, err = m.Acquire(w.ctx)
			return err
		})
		w.asleep(0)
		waiter.open()
		p.Kill()
		w.java = nil
		var left time.Duration // of the longest: each is renewed by itself
		asked := time.Now()
		for _, name := range names {
			ms, _ := w.server.MustDo("PTTL", name).(int64)
			left = max(left, time.Duration(ms)*time.Millisecond)
		}
		waiter.returns()
		if took := time.Since(asked); left <= 0 || took < left || took > left+generous {
			t.Errorf("Go got in after %v, while the leases had %v left", took, left)
		}
		if err := h.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.owned("", names...)

		j := w.javaMulti("t1", names...)
		dead := w.goProcessHolds()
		dead.kill()
		waiter = w.start("Java: tryLock", func() error {
			if ok, err := j.TryLock(w.ctx, storyLimit, 0); err != nil || !ok {
				return errors.Join(err, errors.New("not acquired"))
			}
			return nil
		})
		w.inAfterLease(waiter, 0)
		w.owned(w.javaOwner("t1"), names...)
		j.unlock()
		w.owned("", names...)
	})
}

// Both want some of the same names, Java in another order: neither waits for
// ever, and no update is lost.
func TestMultisOfBoth(t *testing.T) {
	const (
		counter = "counter"
		rounds  = 15
	)
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		add := func() error {
			n, err := w.server.Do("GET", counter)
			if err != nil {
				return err
			}
			text, _ := n.(string)
			value, _ := strconv.Atoi(text)
			_, err = w.server.Do("SET", counter, strconv.Itoa(value+1))
			return err
		}
		m := redlatch.MultiLock(w.member("m:a"), w.member("m:b"))
		j := w.javaMulti("t1", "m:c", "m:b")
		other := redlatch.MultiLock(w.member("m:c"), w.member("m:b"))
		var all []*waiting
		for _, m := range []*redlatch.Lock{m, other} {
			all = append(all, w.start("Go: loop", func() error {
				for range rounds {
					if err := m.Do(w.ctx, func(context.Context) error { return add() }); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		all = append(all, w.start("Java: loop", func() error {
			for range rounds {
				if ok, err := j.TryLock(w.ctx, storyLimit, 0); err != nil || !ok {
					return errors.Join(err, errors.New("not acquired"))
				}
				if err := errors.Join(add(), j.Unlock(w.ctx)); err != nil {
					return err
				}
			}
			return nil
		}))
		for _, c := range all {
			c.returns()
		}
		if n := w.server.MustDo("GET", counter); n != strconv.Itoa(3*rounds) {
			t.Errorf("the counter is %v after %d sections", n, 3*rounds)
		}
		w.server.MustDo("DEL", counter)
		w.owned("", "m:a", "m:b", "m:c")
	})
}

// Over three servers that know nothing of each other, Go's RedLock and Java's
// exclude each other.
func TestRedLocksOfBoth(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		th := w.javaClient().Thread("t1")
		var members []*redlatch.Lock
		var locks []peer.Lock
		var servers []*testserver.Server
		for range 3 {
			s := testserver.Start(t, testserver.Redis, testserver.Open...)
			servers = append(servers, s)
			members = append(members, newGoClient(t, w.driver, single(s.Addr()), redlatch.Config{WatchdogTimeout: goWatchdog, CloseTimeout: generous}).Lock(w.name))
			c := w.openJava(sharedOrFail(t, w.version), s.Addr())
			t.Cleanup(func() { _ = c.Close(w.ctx) })
			locks = append(locks, c.Thread("t1").Lock(peer.Plain, w.name))
		}
		g, j := redlatch.RedLock(members...), javaLock{th.Red(locks...), w}
		for range 3 {
			h, err := g.TryAcquire(w.ctx, generous)
			if err != nil {
				t.Fatal(err)
			}
			if j.try(200*time.Millisecond, long) {
				t.Fatal("Java has what Go's RedLock holds")
			}
			if err := h.Err(); err != nil {
				t.Fatalf("Go: %v", err)
			}
			if err := h.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
			if !j.try(generous, long) {
				t.Fatal("Java does not get what nobody holds")
			}
			if _, err := g.TryAcquire(w.ctx, 200*time.Millisecond); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Go: Acquire of what Java's RedLock holds: %v, want ErrBusy", err)
			}
			j.unlock()
		}
		for _, s := range servers {
			w.eventually("nobody holds anything", func() bool { return s.MustDo("EXISTS", w.name) == int64(0) })
		}
	})
}
