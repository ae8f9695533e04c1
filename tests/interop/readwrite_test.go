package interop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// side returns one side of the story's read-write lock in Go.
func (w *world) side(kind string) *redlatch.Lock { return goLock(w.goClient(), kind, w.name) }

// javaSide returns one side of it as a Java thread sees it.
func (w *world) javaSide(thread, kind string) javaLock {
	w.t.Helper()
	return javaLock{w.javaClient().Thread(thread).Lock(kind, w.name), w}
}

// goTakes acquires one side in Go, which must be possible at once.
func (w *world) goTakes(kind string, opts ...redlatch.PlainOption) *redlatch.Hold {
	w.t.Helper()
	h, err := locktest.With(w.side(kind), opts...).TryAcquire(w.ctx, generous)
	if err != nil {
		w.t.Fatalf("Go: acquire to %s: %v; Redis has %v", kind, err, w.fields())
	}
	return h
}

// refused checks that Go does not get a side now.
func (w *world) refused(kind string) {
	w.t.Helper()
	if _, err := w.side(kind).TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
		w.t.Errorf("Go: Try to %s: %v, want ErrBusy", kind, err)
	}
}

// javaRefused checks that a Java thread does not get a side now.
func (w *world) javaRefused(kind string) {
	w.t.Helper()
	if w.javaSide("refused", kind).try(0, 0) {
		w.t.Errorf("Java: tryLock to %s was not refused; Redis has %v", kind, w.fields())
	}
}

// alive checks that what keeps an owner's read holds alive is there: a key for
// each of them and none beyond.
func (w *world) alive(owner string) {
	w.t.Helper()
	count, _ := strconv.Atoi(w.fields()[owner])
	if count == 0 {
		w.t.Errorf("%s does not read; Redis has %v", owner, w.fields())
	}
	for i := range count {
		key := wire.ReadTimeout(w.name, owner, i+1)
		ttl, _ := w.server.MustDo("PTTL", key).(int64)
		if ttl <= 0 {
			w.t.Errorf("%q has a TTL of %d ms", key, ttl)
		}
	}
	w.noKey(wire.ReadTimeout(w.name, owner, count+1))
}

func (w *world) noKey(key string) {
	w.t.Helper()
	if w.server.MustDo("EXISTS", key) != int64(0) {
		w.t.Errorf("there is a key %q", key)
	}
}

// lasts checks that the lock is there for as long as an owner's read hold. It is
// not while others of Redisson read: their renewal sets its TTL to their own.
func (w *world) lasts(owner string) {
	w.t.Helper()
	w.alive(owner)
	// One after the other would be two moments.
	ttls, _ := w.server.MustDo("EVAL", "return {redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])}",
		"2", w.name, wire.ReadTimeout(w.name, owner, 1)).([]any)
	if lock, hold := ttls[0].(int64), ttls[1].(int64); lock < hold {
		w.t.Errorf("the lock has a TTL of %d ms, the hold of %s one of %d ms", lock, owner, hold)
	}
}

// told checks what was published since the last look: this, once.
func (m *monitor) told(message string) {
	m.w.t.Helper()
	if got, want := m.published(), wire.Prefix(wire.RWChannel, m.w.name)+" "+message; !slices.Equal(got, []string{want}) {
		m.w.t.Errorf("Redis was told %q, want %q", got, want)
	}
}

// reads is the story of two sides; kind is only its name's.
func reads(t *testing.T, story func(t *testing.T, w *world)) {
	t.Helper()
	each(t, story, peer.Write)
}

// Readers of both are in together, and keep writers of both out until the last
// has left, whoever that is.
func TestReadersOfBoth(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		j := w.javaSide("t1", peer.Read)
		for _, last := range []string{"Go", "Java"} {
			j.take(0)
			h := w.goTakes(peer.Read)
			w.alive(h.ID())
			w.alive(w.javaOwner("t1"))
			again := w.goTakes(peer.Read)
			w.alive(h.ID())
			if locked, err := j.IsLocked(w.ctx); err != nil || !locked {
				t.Errorf("Java: isLocked: %v, %v", locked, err)
			}
			w.refused(peer.Write)
			w.javaRefused(peer.Write)
			if last == "Go" {
				j.unlock()
				w.lasts(h.ID())
				w.javaRefused(peer.Write)
				w.release(h)
				w.lasts(again.ID())
				w.javaRefused(peer.Write)
				w.release(again)
			} else {
				w.release(again)
				w.lasts(w.javaOwner("t1"))
				w.release(h)
				w.refused(peer.Write)
				w.lasts(w.javaOwner("t1"))
				j.unlock()
			}
			w.nothing()
		}
	})
}

// nothing checks that a free read-write lock leaves no key.
func (w *world) nothing() {
	w.t.Helper()
	w.free()
	keys, _ := w.server.MustDo("KEYS", "*rwlock_timeout*").([]any)
	if len(keys) > 0 {
		w.t.Errorf("the lock is free, and there are %q", keys)
	}
}

// The first of two read holds of Go is released, then Java reads and unlocks:
// Redisson looks for what keeps the others alive and must find the second's. So
// it is with holds of one client, which share one in Redis, and with two clients.
func TestFirstGoReaderLeavesThenJava(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		other := w.anotherGo()
		stranger, err := goLock(other, peer.Read, w.name).Acquire(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		first := w.goTakes(peer.Read)
		second := w.goTakes(peer.Read)
		nested, err := w.side(peer.Read).Acquire(second.Context())
		if err != nil {
			t.Fatal(err)
		}
		j := w.javaSide("t1", peer.Read)
		for _, h := range []*redlatch.Hold{stranger, first, nested} {
			j.take(0)
			j.take(0) // its second key is the last one
			w.alive(w.javaOwner("t1"))
			w.release(h)
			j.unlock()
			w.alive(w.javaOwner("t1"))
			j.unlock()
			w.lasts(second.ID())
			w.javaRefused(peer.Write)
		}
		if err := second.Err(); err != nil {
			t.Errorf("Go: the second hold: %v", err)
		}
		w.release(second)
		w.nothing()
	})
}

// What one writes, nobody else reads or writes.
func TestWriterOfEither(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		h := w.goTakes(peer.Write)
		w.holds(h.ID(), "1")
		w.javaRefused(peer.Read)
		w.javaRefused(peer.Write)
		w.javaSide("t1", peer.Write).refusesUnlock()
		w.javaSide("t1", peer.Read).refusesUnlock()
		w.holds(h.ID(), "1")
		w.release(h)
		w.nothing()

		j := w.javaSide("t1", peer.Write)
		j.take(0)
		w.refused(peer.Read)
		w.refused(peer.Write)
		w.holds(w.javaOwner("t1"), "1")
		j.unlock()
		w.nothing()
	})
}

// A writer of either that leaves wakes all readers of both.
func TestWriterWakesAllReaders(t *testing.T) { reads(t, writerWakesAllReaders) }

func writerWakesAllReaders(_ *testing.T, w *world) {
	other := w.anotherGo()
	m := newMonitor(w, "", nil)
	for _, writer := range []string{"Go", "Java"} {
		var free func()
		processes := int64(3)
		if writer == "Go" {
			h := w.goTakes(peer.Write, redlatch.Lease(long))
			free = func() { w.release(h) }
			processes-- // its own readers know where it is
		} else {
			j := w.javaSide("writer", peer.Write)
			j.take(long)
			free = j.unlock
		}
		var all []*waiting
		for i := range 3 {
			j := w.javaSide(fmt.Sprintf("t%d", i), peer.Read)
			all = append(all, w.start("Java: lock to read", func() error { return j.Lock.Lock(w.ctx, long) }))
		}
		var held [2]*redlatch.Hold
		for i, c := range []*redlatch.Client{w.goClient(), other} {
			lock := goLock(c, peer.Read, w.name)
			all = append(all, w.start("Go: acquire to read", func() (err error) {
				held[i], err = lock.Acquire(w.ctx)
				return err
			}))
		}
		w.asleep(processes)
		for _, c := range all {
			c.open()
		}
		m.seen()
		from := time.Now()
		free()
		w.inSoonFrom(from, all...)
		m.told("1")
		for i := range 3 {
			w.javaSide(fmt.Sprintf("t%d", i), peer.Read).unlock()
		}
		for _, h := range held {
			w.release(h)
		}
		w.nothing()
	}
}

// The last reader of either that leaves wakes a writer of the other.
func TestLastReaderWakesWriter(t *testing.T) { reads(t, lastReaderWakesWriter) }

func lastReaderWakesWriter(_ *testing.T, w *world) {
	reader := w.goTakes(peer.Read, redlatch.Lease(long))
	j := w.javaSide("t1", peer.Write)
	javaWriter := w.start("Java: lock to write", func() error { return j.Lock.Lock(w.ctx, 0) })
	w.asleep(1)
	javaWriter.open()
	m := newMonitor(w, "", nil)
	w.release(reader)
	w.inSoon(javaWriter)
	m.told("0")
	w.holds(w.javaOwner("t1"), "1")
	j.unlock()

	jr := w.javaSide("t1", peer.Read)
	jr.take(long)
	goWriter := w.goWaits()
	jr.unlock()
	w.inSoon(goWriter.waiting)
	w.holds(goWriter.hold.ID(), "1")
	w.release(goWriter.hold)
	w.nothing()
}

// A writer of Go that goes on reading wakes Java's readers, which Redisson's own
// does not; then all read, and nobody writes.
func TestGoDowngradeWakesJavaReaders(t *testing.T) { reads(t, goDowngradeWakesJavaReaders) }

func goDowngradeWakesJavaReaders(t *testing.T, w *world) {
	writer := w.goTakes(peer.Write, redlatch.Lease(long))
	reader, err := locktest.With(w.side(peer.Read), redlatch.Lease(long)).Acquire(writer.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []*waiting
	for i := range 2 {
		j := w.javaSide(fmt.Sprintf("t%d", i), peer.Read)
		all = append(all, w.start("Java: lock to read", func() error { return j.Lock.Lock(w.ctx, long) }))
	}
	w.asleep(1)
	for _, c := range all {
		c.open()
	}
	m := newMonitor(w, "", nil)
	w.release(writer)
	w.inSoon(all...)
	m.told("1")
	w.alive(reader.ID())
	w.refused(peer.Write)
	w.javaRefused(peer.Write)
	for i := range 2 {
		w.javaSide(fmt.Sprintf("t%d", i), peer.Read).unlock()
	}
	w.alive(reader.ID())
	w.release(reader)
	w.nothing()
}

// Redisson does not tell that a writer goes on reading: Go's readers find out
// at their next poll.
func TestJavaDowngradeLetsGoRead(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		jw, jr := w.javaSide("t1", peer.Write), w.javaSide("t1", peer.Read)
		jw.take(long)
		jr.take(long)
		lock := w.side(peer.Read)
		var h *redlatch.Hold
		waiter := w.start("Go: acquire to read", func() (err error) {
			h, err = lock.Acquire(w.ctx)
			return err
		})
		w.asleep(1)
		waiter.open()
		from := time.Now()
		jw.unlock()
		waiter.returns()
		if took := time.Since(from); took > generous {
			t.Errorf("Go got in %v after the downgrade", took)
		}
		w.refused(peer.Write)
		jr.unlock()
		w.alive(h.ID())
		w.release(h)
		w.nothing()
	})
}

// A nest of one owner is closed to the other side until it is all released.
// Redisson's unlock to read inside of a hold to write ends the watchdog of that
// (4.7): the story is over before its lease is.
func TestReadWriteNests(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		outer := w.goTakes(peer.Write)
		inner, err := w.side(peer.Write).Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.holds(outer.ID(), "2")
		w.javaRefused(peer.Read)
		w.release(inner)
		w.javaRefused(peer.Read)
		w.release(outer)

		jw, jr := w.javaSide("t1", peer.Write), w.javaSide("t1", peer.Read)
		jw.take(0)
		jw.take(0)
		jr.take(0)
		w.refused(peer.Read)
		jr.unlock()
		w.refused(peer.Read)
		jw.unlock()
		w.refused(peer.Read)
		jw.unlock()
		w.nothing()
	})
}

// forceUnlock of one side leaves the other alone, and frees its own.
func TestReadWriteForce(t *testing.T) {
	reads(t, func(t *testing.T, w *world) {
		h := w.goTakes(peer.Read)
		if ok, err := w.javaSide("t1", peer.Write).ForceUnlock(w.ctx); err != nil || ok {
			t.Errorf("Java: forceUnlock of the writer while Go reads: %v, %v", ok, err)
		}
		w.alive(h.ID())
		if ok, err := w.javaSide("t1", peer.Read).ForceUnlock(w.ctx); err != nil || !ok {
			t.Errorf("Java: forceUnlock of readers: %v, %v", ok, err)
		}
		w.free()
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release: %v, want ErrLost", err)
		}

		j := w.javaSide("t1", peer.Write)
		j.take(long)
		if ok, err := admin.ForceRelease(w.ctx, w.side(peer.Read)); err != nil || ok {
			t.Errorf("Go: ForceRelease of readers while Java writes: %v, %v", ok, err)
		}
		w.holds(w.javaOwner("t1"), "1")
		if ok, err := admin.ForceRelease(w.ctx, w.side(peer.Write)); err != nil || !ok {
			t.Errorf("Go: ForceRelease of Java's writer: %v, %v", ok, err)
		}
		w.free()
		if w.version != peer.Oldest { // which unlocks what is not there
			j.refusesUnlock()
		}
	})
}

// Threads of Java write, goroutines of Go write and read: no update is lost, and
// no reader sees one.
func TestNoReaderSeesAnUpdate(t *testing.T) {
	const (
		counter  = "counter"
		together = 2 * time.Second
	)
	reads(t, func(t *testing.T, w *world) {
		java, err := w.javaClient(), error(nil)
		var byJava peer.LoopResult
		all := []*waiting{w.start("Java: loop", func() error {
			byJava, err = java.Loop(w.ctx, peer.Loop{
				Kind: peer.Write, Name: w.name, Threads: 2, Duration: together, Counter: counter, Pause: time.Millisecond,
			})
			return err
		})}
		end := time.Now().Add(together)
		var counts [5]int64
		for i := range counts {
			c := w.anotherGo()
			section := func() error { return w.addOne(goLock(c, peer.Write, w.name), counter) }
			if i > 1 {
				section = func() error { return w.sameTwice(goLock(c, peer.Read, w.name), counter) }
			}
			all = append(all, w.start("Go: loop", func() error {
				for counts[i] == 0 || time.Now().Before(end) {
					if err := section(); err != nil {
						return err
					}
					counts[i]++
					if i > 1 {
						time.Sleep(3 * time.Millisecond) // or there is always one who reads
					}
				}
				return nil
			}))
		}
		for _, c := range all {
			c.returns()
		}
		want := strconv.FormatInt(byJava.Ops+counts[0]+counts[1], 10)
		if got := w.server.MustDo("GET", counter); got != want {
			t.Errorf("the counter is %v after %d sections of Java and %v of Go", got, byJava.Ops, counts[:2])
		}
		if byJava.Ops == 0 {
			t.Error("Java got nothing")
		}
		for i, n := range counts {
			if n == 0 {
				t.Errorf("goroutine %d got nothing", i)
			}
		}
		t.Logf("sections: %d of Java, %v of Go, the first two to write", byJava.Ops, counts)
		w.server.MustDo("DEL", counter)
		w.nothing()
	})
}

// sameTwice reads the counter twice.
func (w *world) sameTwice(lock *redlatch.Lock, counter string) error {
	h, err := lock.Acquire(w.ctx)
	if err != nil {
		return err
	}
	one, err := w.server.Do("GET", counter)
	if err != nil {
		return err
	}
	time.Sleep(200 * time.Microsecond)
	two, err := w.server.Do("GET", counter)
	if err != nil {
		return err
	}
	if one != two {
		return fmt.Errorf("a reader saw %v and then %v", one, two)
	}
	return h.Release(w.ctx)
}
