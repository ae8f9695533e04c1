package interop

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// queue returns the owners that wait, the head first, and checks that list and
// sorted set have the same.
func (w *world) queue() []string {
	w.t.Helper()
	// One after the other would be two moments.
	reply, _ := w.server.MustDo("EVAL", `
		return {redis.call('LRANGE', KEYS[1], 0, -1), redis.call('ZRANGE', KEYS[2], 0, -1)}`,
		"2", wire.Prefix(wire.LockQueue, w.name), wire.Prefix(wire.LockTimeout, w.name)).([]any)
	list, set := words(reply[0]), words(reply[1])
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	slices.Sort(set)
	if !slices.Equal(sorted, set) {
		w.t.Errorf("the list has %q, the sorted set %q", sorted, set)
	}
	return list
}

func words(reply any) []string {
	list, _ := reply.([]any)
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.(string)
	}
	return all
}

// score returns until when an owner may wait.
func (w *world) score(owner string) time.Time {
	w.t.Helper()
	text, _ := w.server.MustDo("ZSCORE", wire.Prefix(wire.LockTimeout, w.name), owner).(string)
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil {
		w.t.Fatalf("the score of %s is %q", owner, text)
	}
	return time.UnixMilli(int64(ms))
}

// queued waits until n owners wait, and returns the last.
func (w *world) queued(n int) string {
	w.t.Helper()
	w.eventually(strconv.Itoa(n)+" who wait in the queue", func() bool { return len(w.queue()) == n })
	q := w.queue()
	return q[n-1]
}

// A line notes in which order waiters get in. Each releases at once.
type line struct {
	w      *world
	owners map[string]string // of Java's threads: they answer nothing while they wait

	mu sync.Mutex
	in []string
}

func (w *world) line() *line { return &line{w: w, owners: map[string]string{}} }

func (l *line) note(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = append(l.in, who)
}

// java lets a Java thread join the queue as its n-th.
func (l *line) java(thread string, n int) *waiting {
	l.w.t.Helper()
	j, owner := l.w.javaLock(thread), l.w.javaOwner(thread)
	l.owners[thread] = owner
	c := l.w.start("Java: "+thread, func() error {
		if err := j.Lock.Lock(l.w.ctx, 0); err != nil {
			return err
		}
		l.note(thread)
		return j.Unlock(l.w.ctx)
	})
	if last := l.w.queued(n); last != owner {
		l.w.t.Errorf("the last in the queue is %s, want %s", last, owner)
	}
	return c
}

// golang lets a goroutine join the queue as its n-th.
func (l *line) golang(who string, n int) *waiting {
	l.w.t.Helper()
	lock := l.w.goLock()
	c := l.w.start("Go: "+who, func() error {
		h, err := lock.Acquire(l.w.ctx)
		if err != nil {
			return err
		}
		l.note(who)
		return h.Release(l.w.ctx)
	})
	if owner := l.w.queued(n); !strings.HasPrefix(owner, l.w.goClient().ID()+":") {
		l.w.t.Errorf("the last in the queue is %s, want one of %s", owner, l.w.goClient().ID())
	}
	return c
}

// came checks the order in which all got in.
func (l *line) came(want ...string) {
	l.w.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.in, want) {
		l.w.t.Errorf("they were served in the order %q, want %q", l.in, want)
	}
}

// Goroutines and Java threads that wait in one queue enter in the order in
// which they came, each at once when the one before it is done.
func TestFairQueueOfBoth(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, holder := range []string{"Go", "Java"} {
			var free func()
			if holder == "Go" {
				h := w.goHolds(redlatch.Lease(long))
				free = func() { w.release(h) }
			} else {
				j := w.javaLock("holder")
				j.take(long)
				free = j.unlock
			}
			l := w.line()
			all := []*waiting{
				l.java("t1", 1), l.golang("g1", 2), l.golang("g2", 3),
				l.java("t2", 4), l.java("t3", 5), l.golang("g3", 6),
			}
			for i, owner := range w.queue() {
				if i > 0 && !w.score(owner).After(w.score(w.queue()[i-1])) {
					t.Errorf("the %d. in the queue may wait until %v, no longer than the one before it", i+1, w.score(owner))
				}
			}
			from := time.Now()
			free()
			for _, c := range all {
				c.returns()
			}
			if took := time.Since(from); took > 2*soon {
				t.Errorf("six took %v to get in: not by the messages", took)
			}
			l.came("t1", "g1", "g2", "t2", "t3", "g3")
			if q := w.queue(); len(q) != 0 {
				t.Errorf("%q still wait", q)
			}
			w.free()
		}
	}, fair...)
}

// Nobody overtakes the queue, on either side.
func TestFairNobodyOvertakes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		dead := w.javaOwner("nobody")
		over := time.Now().Add(short)
		w.server.MustDo("RPUSH", wire.Prefix(wire.LockQueue, w.name), dead)
		w.server.MustDo("ZADD", wire.Prefix(wire.LockTimeout, w.name), strconv.FormatInt(over.UnixMilli(), 10), dead)
		w.release(h) // the lock is free now, and the queue is not
		if _, err := w.goLock().Try(w.ctx); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try: %v, want ErrBusy", err)
		}
		if w.javaLock("t1").try(0, 0) {
			t.Error("Java overtook the queue")
		}
		if q := w.queue(); !slices.Equal(q, []string{dead}) {
			t.Errorf("the queue is %q, want %q: a single try does not join it", q, dead)
		}
		// Whoever joins it gets in when the time of its head is over.
		waiter := w.start("Go: acquire", func() error {
			h, err := w.goLock().Acquire(w.ctx)
			if err == nil {
				err = h.Release(w.ctx)
			}
			return err
		})
		waiter.returns()
		if late := time.Since(over); late < 0 || late > 2*soon {
			t.Errorf("Go got in %v after the head's time was over", late)
		}
		w.free()
	}, fair...)
}

// A waiter that gives up leaves nothing behind, and those behind it move up.
func TestFairWaitersLeave(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		ctx, cancel := context.WithCancel(w.ctx)
		lock := w.goLock()
		gone := w.start("Go: acquire", func() error {
			_, err := lock.Acquire(ctx)
			if !errors.Is(err, context.Canceled) {
				return errors.Join(errors.New("not canceled"), err)
			}
			return nil
		})
		w.queued(1)
		l := w.line()
		java := l.java("t1", 2)
		before := w.score(l.owners["t1"])
		cancel()
		gone.returns()
		w.eventually("the end of Go's place", func() bool { return len(w.queue()) == 1 })
		if after := w.score(l.owners["t1"]); !after.Before(before) {
			t.Errorf("Java may wait until %v still", after)
		}

		impatient := w.start("Java: tryLock", func() error {
			if ok, err := w.javaLock("t2").TryLock(w.ctx, 500*time.Millisecond, long); ok || err != nil {
				return errors.Join(errors.New("acquired"), err)
			}
			return nil
		})
		w.queued(2)
		last := l.golang("g1", 3)
		impatient.returns()
		w.queued(2)
		w.release(h)
		java.returns()
		last.returns()
		l.came("t1", "g1")
		w.free()
	}, fair...)
}

// The lock of a dead holder passes to the head of the queue when its lease has
// ended, and from there on.
func TestFairJavaHolderDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.ownJava()
		w.javaLock("t1").take(0)
		w.java = nil // the shared one, from here on
		l := w.line()
		first := l.golang("g1", 1)
		second := l.java("t2", 2)
		p.Kill()
		w.inAfterLease(first, 0)
		w.inSoon(second)
		l.came("g1", "t2")
		w.free()
	}, peer.Fair)
}

func TestFairGoHolderDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.javaClient()
		h := w.goProcessHolds()
		l := w.line()
		first := l.java("t1", 1)
		second := l.golang("g1", 2)
		h.kill()
		w.inAfterLease(first, 0)
		w.inSoon(second)
		l.came("t1", "g1")
		w.free()
	}, peer.Fair)
}

// A Java waiter that dies in the queue holds those behind it up until its time
// is over, which is what it said that it would wait, and no longer.
func TestFairJavaWaiterDies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		p := w.ownJava()
		dead := w.javaLock("t1")
		owner := w.javaOwner("t1")
		w.start("Java: tryLock", func() error {
			_, err := dead.TryLock(w.ctx, short, long)
			return err
		})
		w.queued(1)
		p.Kill()
		w.java = nil
		// Its time begins when the lock's lease is over; that is long. Tell it as
		// if the lease had been short.
		over := time.Now().Add(short)
		w.server.MustDo("ZADD", wire.Prefix(wire.LockTimeout, w.name), strconv.FormatInt(over.UnixMilli(), 10), owner)
		l := w.line()
		first := l.golang("g1", 2)
		second := l.java("t2", 3)
		w.release(h)
		first.returns()
		if late := time.Since(over); late < 0 || late > 2*soon {
			t.Errorf("Go got in %v after the time of the dead one", late)
		}
		second.returns()
		l.came("g1", "t2")
		w.free()
	}, peer.Fair)
}

// A Go waiter that dies in the queue holds nobody up for longer than a few
// seconds, as long as a redlatch client has anything to do with the lock.
func TestFairGoWaiterDies(t *testing.T) {
	const silent = 6 * time.Second // after that a Go process is taken for dead
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("holder")
		j.take(0)
		waits := w.goProcess(storyLimit)
		w.queued(1)
		waits.kill()
		died := time.Now()
		l := w.line()
		first := l.java("t1", 2)
		second := l.golang("g1", 3)
		j.unlock()
		first.returns()
		if took := time.Since(died); took > silent+3*soon {
			t.Errorf("Java got in %v after the death of Go's waiter before it", took)
		}
		second.returns()
		l.came("t1", "g1")
		w.free()
	}, peer.Fair)
}

// A live Go waiter that Redisson's sweep throws out of the queue joins it again.
func TestFairGoWaiterIsEvicted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		l := w.line()
		waits := l.golang("g1", 1)
		w.server.MustDo("ZADD", wire.Prefix(wire.LockTimeout, w.name), "1", w.queue()[0])
		if w.javaLock("t1").try(0, 0) { // it sweeps
			t.Fatal("Java got what Go holds")
		}
		w.queued(1) // again
		w.release(h)
		waits.returns()
		w.free()
	}, peer.Fair)
}

// Java's forceUnlock tells the head of the queue, and so does Go's.
func TestFairForce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		l := w.line()
		first, second := l.golang("g1", 1), l.java("t1", 2)
		if ok, err := w.javaLock("t2").ForceUnlock(w.ctx); err != nil || !ok {
			t.Fatalf("Java: forceUnlock: %v, %v", ok, err)
		}
		w.inSoon(first)
		w.inSoon(second)
		if err := h.Release(w.ctx); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Go: Release: %v, want ErrLost", err)
		}

		j := w.javaLock("t2")
		j.take(long)
		first, second = l.java("t1", 1), l.golang("g1", 2)
		if ok, err := w.goLock().ForceRelease(w.ctx); err != nil || !ok {
			t.Fatalf("Go: ForceRelease: %v, %v", ok, err)
		}
		w.inSoon(first)
		w.inSoon(second)
		l.came("g1", "t1", "t1", "g1")
		w.free()
	}, fair...)
}
