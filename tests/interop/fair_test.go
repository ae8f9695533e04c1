package interop

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// allowance is what a place in the queue adds to the score of the one before it,
// and what those behind it lose when it is left.
const allowance = 5 * time.Minute

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

// holder lets one side hold the lock, and returns what ends that.
func (w *world) holder(side string) func() {
	w.t.Helper()
	if side == "Go" {
		h := w.goHolds(redlatch.Lease(long))
		return func() { w.t.Helper(); w.release(h) }
	}
	j := w.javaLock("holder")
	j.take(long)
	return j.unlock
}

// A line notes in which order waiters get in, each before it releases.
type line struct {
	w      *world
	owners map[string]string
	next   chan struct{} // if not nil, who is in waits for it

	mu sync.Mutex
	in []string
}

func (w *world) line() *line { return &line{w: w, owners: map[string]string{}} }

// section is what each does inside.
func (l *line) section(who string) {
	l.mu.Lock()
	l.in = append(l.in, who)
	l.mu.Unlock()
	if l.next != nil {
		select {
		case <-l.next:
		case <-l.w.ctx.Done():
		}
	}
}

// java lets a Java thread join the queue as its n-th.
func (l *line) java(thread string, n int) *waiting {
	l.w.t.Helper()
	j := l.w.javaLock(thread)
	l.owners[thread] = l.w.javaOwner(thread) // threads answer nothing while they wait
	c := l.w.start("Java: "+thread, func() error {
		if err := j.Lock.Lock(l.w.ctx, 0); err != nil {
			return err
		}
		l.section(thread)
		return j.Unlock(l.w.ctx)
	})
	if last := l.w.queued(n); last != l.owners[thread] {
		l.w.t.Errorf("the last in the queue is %s, want %s", last, l.owners[thread])
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
		l.section(who)
		return h.Release(l.w.ctx)
	})
	l.owners[who] = l.w.queued(n)
	if !strings.HasPrefix(l.owners[who], l.w.goClient().ID()+":") {
		l.w.t.Errorf("the last in the queue is %s, want one of %s", l.owners[who], l.w.goClient().ID())
	}
	return c
}

// entered waits until n have got in.
func (l *line) entered(n int) {
	l.w.t.Helper()
	l.w.eventually(strconv.Itoa(n)+" who got in", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.in) >= n
	})
}

// came checks the order in which all got in.
func (l *line) came(want ...string) {
	l.w.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.in, want) {
		l.w.t.Errorf("their order was %q, want %q", l.in, want)
	}
}

// chained checks that these wait, in this order, each where it listens, and that
// the scores are Redisson's chain: first, and an allowance more for each.
func (l *line) chained(first time.Time, who ...string) {
	l.w.t.Helper()
	var want []string
	for i, id := range who {
		owner := l.owners[id]
		want = append(want, owner)
		if got, want := l.w.score(owner), first.Add(time.Duration(i)*allowance); !got.Equal(want) {
			l.w.t.Errorf("%s may wait until %v, want %v", id, got, want)
		}
		channel := wire.FairChannel(l.w.name, owner)
		l.w.eventually(id+" listens", func() bool { return l.w.subscribers(l.w.sharded(), channel) == 1 })
	}
	if q := l.w.queue(); !slices.Equal(q, want) {
		l.w.t.Errorf("the queue is %q, want %q", q, want)
	}
}

// Goroutines and Java threads that wait in one queue get in as they came. Each
// does at once when the one before it is done, by the message for it, and takes
// its allowance off those behind.
func TestFairQueueOfBoth(t *testing.T) { each(t, fairQueueOfBoth, fair...) }

func fairQueueOfBoth(t *testing.T, w *world) {
	m := newMonitor(w, "", nil)
	for _, holder := range []string{"Go", "Java"} {
		leaves := w.holder(holder)
		l := w.line()
		l.next = make(chan struct{})
		order := []string{"t1", "g1", "g2", "t2", "t3", "g3"}
		var all []*waiting
		for i, who := range order {
			join := l.golang
			if strings.HasPrefix(who, "t") {
				join = l.java
			}
			all = append(all, join(who, i+1))
		}
		first := w.score(l.owners["t1"])
		if off := time.Until(first) - w.ttl() - allowance; off < -generous || off > generous {
			t.Errorf("the first may wait for %v, while the lock has %v left", time.Until(first), w.ttl())
		}
		l.chained(first, order...)
		for i, who := range order {
			m.seen()
			from := time.Now()
			leaves()
			l.entered(i + 1)
			took := time.Since(from)
			if took > generous {
				t.Errorf("%s got in only after %v: not by the message", who, took)
			}
			if strings.HasPrefix(who, "g") {
				w.wake("Go: "+who, took)
			}
			l.came(order[:i+1]...)
			w.holds(l.owners[who], "1")
			told := m.published()
			want := regexp.QuoteMeta(wire.FairChannel(w.name, l.owners[who])) + " 0"
			if i > 0 && strings.HasPrefix(who, "g") && strings.HasPrefix(order[i-1], "g") && w.stage == nil {
				// redlatch gives redlatch the lock. With replicas it takes it itself, to have
				// one acknowledge that. The message is a number that nobody can guess.
				want = regexp.QuoteMeta(wire.FairChannel(w.name, l.owners[who])) + " [0-9]{16}"
			}
			right := regexp.MustCompile("^" + want + "$")
			if len(told) == 0 || slices.ContainsFunc(told, func(s string) bool { return !right.MatchString(s) }) {
				t.Errorf("when it was %s's turn, Redis was told %q, want %q", who, told, want)
			}
			l.chained(first, order[i+1:]...)
			leaves = func() { l.next <- struct{}{} }
		}
		leaves()
		for _, c := range all {
			c.returns()
		}
		w.free()
	}
}

// Nobody overtakes the queue, on either side.
func TestFairNobodyOvertakes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		h := w.goHolds(redlatch.Lease(long))
		dead := w.javaOwner("nobody")
		may := func(over time.Time) {
			w.server.MustDo("ZADD", wire.Prefix(wire.LockTimeout, w.name), strconv.FormatInt(over.UnixMilli(), 10), dead)
		}
		w.server.MustDo("RPUSH", wire.Prefix(wire.LockQueue, w.name), dead)
		may(time.Now().Add(long))
		w.release(h) // the lock is free now, and the queue is not
		if _, err := w.goLock().TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try: %v, want ErrBusy", err)
		}
		if w.javaLock("t1").try(0, 0) {
			t.Error("Java overtook the queue")
		}
		if q := w.queue(); !slices.Equal(q, []string{dead}) {
			t.Errorf("the queue is %q, want %q: a single try does not join it", q, dead)
		}
		// Whoever joins it gets in when the time of its head is over.
		over := time.Now().Add(3 * time.Second)
		may(over)
		waiter := w.start("Go: acquire", func() error {
			h, err := w.goLock().Acquire(w.ctx)
			if err == nil {
				err = h.Release(w.ctx)
			}
			return err
		})
		waiter.returns()
		if late := time.Since(over); late < 0 || late > generous {
			t.Errorf("Go got in %v after the head's time was over", late)
		}
		w.free()
	}, fair...)
}

// A waiter that gives up leaves nothing behind, and takes its allowance off those
// behind it. Java's tryLock has a lease here: without one Redisson takes the time
// to wait for milliseconds where it lines up and not where it leaves (4.7, and
// all before but 3.24.0), and scores go down by too much.
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
		if after := w.score(l.owners["t1"]); !after.Equal(before.Add(-allowance)) {
			t.Errorf("Java may wait until %v, want %v less than %v", after, allowance, before)
		}

		j := w.javaLock("t2")
		impatient := w.start("Java: tryLock", func() error {
			if ok, err := j.TryLock(w.ctx, short, long); ok || err != nil {
				return errors.Join(errors.New("acquired"), err)
			}
			return nil
		})
		w.queued(2)
		last := l.golang("g1", 3)
		before = w.score(l.owners["g1"])
		impatient.returns()
		w.queued(2)
		if after := w.score(l.owners["g1"]); !after.Equal(before.Add(-short)) {
			t.Errorf("Go may wait until %v, want %v less than %v", after, short, before)
		}
		w.release(h)
		java.returns()
		last.returns()
		l.came("t1", "g1")
		w.free()
	}, fair...)
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
		if ok, err := admin.ForceRelease(w.ctx, w.goLock()); err != nil || !ok {
			t.Fatalf("Go: ForceRelease: %v, %v", ok, err)
		}
		w.inSoon(first)
		w.inSoon(second)
		l.came("g1", "t1", "t1", "g1")
		w.free()
	}, fair...)
}
