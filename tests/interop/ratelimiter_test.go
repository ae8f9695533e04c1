package interop

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

func (w *world) goRate() *ratelimit.Limiter {
	return ratelimit.New(w.goClient(), w.name, ratelimit.Rate{})
}

// rate checks what rate each side sees. Of the keep-alive time Redisson says
// nothing.
func (w *world) rate(want ratelimit.Rate) {
	w.t.Helper()
	if got, err := w.goRate().Config(w.ctx); err != nil || got != want {
		w.t.Errorf("Go sees the rate %+v, %v, want %+v", got, err, want)
	}
	got, err := w.javaClient().Thread("t1").Rate(w.ctx, w.name)
	if theirs := (peer.Rate{Permits: want.Permits, Interval: want.Interval, PerClient: want.PerClient}); err != nil || got != theirs {
		w.t.Errorf("Java sees the rate %+v, %v, want %+v", got, err, theirs)
	}
}

// javaSets calls trySetRate or setRate.
func (w *world) javaSets(method string, r ratelimit.Rate) bool {
	w.t.Helper()
	return w.javaSync("t1").call(method, peer.Call{Rate: peer.Rate(r)}).OK
}

// canTake checks what each side could take.
func (w *world) canTake(want int) {
	w.t.Helper()
	w.counts(want, map[string]func() (int, error){
		"Go":   func() (int, error) { return w.goRate().Available(w.ctx) },
		"Java": w.javaSync("t1").count("available"),
	})
}

// Both have one rate, whoever sets it, and one number of permits.
func TestRateOfBoth(t *testing.T) { eachOf(t, peer.RateLimiter, rateOfBoth) }

func rateOfBoth(t *testing.T, w *world) {
	l, j := w.goRate(), w.javaSync("t1")
	slow := ratelimit.Rate{Permits: 5, Interval: long}
	w.yes(l.TrySetRate(w.ctx, slow))
	w.rate(slow)
	if w.javaSets("trySetRate", ratelimit.Rate{Permits: 9, Interval: short}) {
		t.Error("Java set a rate beside Go's")
	}
	j.answers(true, "tryAcquire", 2)
	w.canTake(3)
	w.must(l.TryAcquire(w.ctx, 2, 0))
	w.canTake(1)
	j.answers(false, "tryAcquire", 2)
	var busy *redlatch.BusyError
	if err := l.TryAcquire(w.ctx, 2, 0); !errors.As(err, &busy) {
		t.Errorf("Go: Try: %v, want a BusyError", err)
	}
	w.must(l.Release(w.ctx, 3))
	w.canTake(4)
	if w.newest() {
		j.answers(true, "release", 1)
		w.canTake(5)
	}
	w.deletes(j)

	if !w.javaSets("trySetRate", slow) {
		t.Error("Java cannot set a rate")
	}
	w.rate(slow)
	w.no(l.TrySetRate(w.ctx, ratelimit.Rate{Permits: 9, Interval: short}))
	w.must(l.TryAcquire(w.ctx, 5, 0))
	j.answers(false, "tryAcquire", 1)
	more := ratelimit.Rate{Permits: 7, Interval: long}
	w.must(l.UpdateRate(w.ctx, more)) // and what was taken still counts
	w.rate(more)
	w.canTake(2)
	if w.newest() {
		most := ratelimit.Rate{Permits: 9, Interval: long}
		if !w.javaSets("updateRate", most) {
			t.Error("Java cannot update a rate")
		}
		w.rate(most)
		w.canTake(4)
		w.javaSets("setRateKeeping", more)
		w.rate(more)
		w.canTake(2)
		w.must(l.UpdateRate(w.ctx, most))
		w.rate(most)
		w.canTake(4)
		if !w.javaSets("updateRateAnew", more) {
			t.Error("Java cannot update a rate and let it begin anew")
		}
		w.canTake(7)
		j.answers(true, "tryAcquire", 5)
		w.must(l.SetRate(w.ctx, most))
		w.canTake(9)
	}
	w.javaSets("setRate", slow)
	w.rate(slow)
	w.canTake(5)
	j.answers(true, "tryAcquire", 5)
	w.must(l.SetRate(w.ctx, more))
	w.rate(more)
	w.canTake(7)
	w.yes(l.Delete(w.ctx))
	if keys, _ := w.server.MustDo("KEYS", "*"+w.name+"*").([]any); slices.ContainsFunc(keys, func(k any) bool {
		return !strings.HasPrefix(k.(string), wire.Sessions)
	}) {
		t.Errorf("after Delete there is %q", keys)
	}
	w.is(l.TryAcquire(w.ctx, 1, 0), redlatch.ErrUninitialized)
	j.throws("tryAcquire", peer.Call{N: 1}, "RedisException", "RedisResponseException")
}

// Each client has the rate for itself, of whatever library it is.
func TestRatePerClient(t *testing.T) {
	eachOf(t, peer.RateLimiter, func(t *testing.T, w *world) {
		l, j := w.goRate(), w.javaSync("t1")
		each := ratelimit.Rate{Permits: 3, Interval: long, PerClient: true}
		if !w.javaSets("trySetRate", each) {
			t.Error("Java cannot set a rate")
		}
		w.rate(each)
		w.must(l.TryAcquire(w.ctx, 3, 0))
		w.counts(3, map[string]func() (int, error){"Java": j.count("available")})
		j.answers(true, "tryAcquire", 2)
		w.is(l.TryAcquire(w.ctx, 1, 0), redlatch.ErrBusy)
		j.answers(true, "tryAcquire", 1)
		j.answers(false, "tryAcquire", 1)
		w.must(l.SetRate(w.ctx, each)) // lets this client begin anew, not the other
		j.answers(false, "tryAcquire", 1)
		w.must(l.TryAcquire(w.ctx, 1, 0))
		w.yes(l.Delete(w.ctx))
		for _, s := range []string{wire.RateValue, wire.RatePermits} {
			key := wire.Suffix(w.name, s) + ":" + w.javaClient().UUID
			if w.server.MustDo("EXISTS", key) != int64(1) {
				t.Errorf("Go's Delete took Java's own %q", key)
			}
		}
		j.do("delete")
	})
}

// A limiter with a keep-alive time lives for that long from its last use by
// anybody who knows of it.
func TestRateKeepAlive(t *testing.T) {
	eachOf(t, peer.RateLimiter, func(t *testing.T, w *world) {
		l, j := w.goRate(), w.javaSync("t1")
		r := ratelimit.Rate{Permits: 5, Interval: time.Second, KeepAlive: short}
		inUse := func(what string, use func()) {
			t.Helper()
			time.Sleep(short / 10)
			from := time.Now()
			use()
			// However late that is: from the use before it on it would have less.
			if ttl := w.ttl(); ttl > short || time.Now().Add(ttl+2*time.Millisecond).Before(from.Add(short)) {
				t.Errorf("after %s the limiter has %v left, want %v", what, ttl, short)
			}
		}
		w.yes(l.TrySetRate(w.ctx, r))
		if !w.newest() { // it only gives what it writes the TTL that there is
			j.answers(true, "tryAcquire", 1)
			inUse("Go's use", func() { w.must(l.TryAcquire(w.ctx, 1, 0)) })
			for _, key := range []string{w.name, wire.Suffix(w.name, wire.RateValue), wire.Suffix(w.name, wire.RatePermits)} {
				j.answers(true, "tryAcquire", 1)
				if ttl, _ := w.server.MustDo("PTTL", key).(int64); ttl <= 0 || ttl > short.Milliseconds() {
					t.Errorf("%q has a TTL of %d ms", key, ttl)
				}
			}
			w.deletes(j)
			return
		}
		inUse("Java's use", func() { j.answers(true, "tryAcquire", 1) })
		inUse("Go's use", func() { w.must(l.TryAcquire(w.ctx, 1, 0)) })
		w.yes(l.Delete(w.ctx))
		if !w.javaSets("trySetRate", r) {
			t.Error("Java cannot set a rate with a keep-alive time")
		}
		w.rate(r)
		inUse("Go's use", func() { w.must(l.TryAcquire(w.ctx, 1, 0)) })
		inUse("Java's use", func() { j.answers(true, "tryAcquire", 1) })
		w.eventually("the end of the limiter", func() bool { return w.server.MustDo("EXISTS", w.name) == int64(0) })
		w.is(l.TryAcquire(w.ctx, 1, 0), redlatch.ErrUninitialized)
	})
}

// Who waits on one side goes on when what the other took has left the interval.
func TestRateWaits(t *testing.T) {
	eachOf(t, peer.RateLimiter, func(t *testing.T, w *world) {
		const interval = 700 * time.Millisecond
		l, j := w.goRate(), w.javaSync("t1")
		w.yes(l.TrySetRate(w.ctx, ratelimit.Rate{Permits: 2, Interval: interval}))
		// Nothing is given in less than an interval from the last time on.
		earliest := time.Now()
		took := func(what string, f func()) {
			t.Helper()
			from := time.Now()
			f()
			earliest = earliest.Add(interval)
			if early := time.Until(earliest); early > 2*time.Millisecond {
				t.Errorf("%s got permits %v too early", what, early)
			}
			if d := time.Since(from); d > interval+generous {
				t.Errorf("%s waited for %v, want %v", what, d, interval)
			}
		}
		j.answers(true, "tryAcquire", 2)
		took("Go", func() { w.must(l.Acquire(w.ctx, 2)) })
		took("Java", func() { j.do("acquire", 2) })
		took("Go", func() { w.must(l.TryAcquire(w.ctx, 1, interval+generous)) })
		w.deletes(j)
	})
}

// granted is permits that a limiter gave.
type granted struct {
	at   time.Time     // when Redis gave them
	late time.Duration // by how much later that was than who took them says
	n    int
}

// grants returns what was given since the last look, in order.
func (m *monitor) grants(permits string) (all []granted) {
	m.w.t.Helper()
	for _, c := range m.seen() {
		if !c.inScript || !strings.EqualFold(c.args[0], "ZADD") || c.args[1] != permits {
			continue
		}
		ms, err := strconv.ParseInt(c.args[2], 10, 64)
		m.w.must(err)
		record := []byte(c.args[3])
		all = append(all, granted{
			at: c.at, late: c.at.Sub(time.UnixMilli(ms)),
			n: int(binary.LittleEndian.Uint32(record[len(record)-4:])),
		})
	}
	return all
}

// However many take at the same time on both sides, in no interval do they get
// more than the rate. The interval is as much too short as a request of Java's is
// late, since its clock says when it begins.
func TestRateIsShared(t *testing.T) {
	eachOf(t, peer.RateLimiter, func(t *testing.T, w *world) {
		const rate, interval, intervals = 12, 300 * time.Millisecond, 8
		w.yes(w.goRate().TrySetRate(w.ctx, ratelimit.Rate{Permits: rate, Interval: interval}))
		w.javaClient() // takes its time
		m := newMonitor(w, "", nil)
		end := time.Now().Add(intervals * interval)
		var all []*waiting
		var byGo, byJava, sum atomic.Int64
		goesOn := func() bool { // on a busy machine, until there is enough to see
			return w.ctx.Err() == nil && (byGo.Load() == 0 || byJava.Load() == 0 || sum.Load() < rate*intervals/2)
		}
		for i := range 2 {
			l := ratelimit.New(w.anotherGo(), w.name, ratelimit.Rate{})
			j := w.javaSync("t" + strconv.Itoa(i))
			take := func(what string, count *atomic.Int64, f func(n int) error) {
				all = append(all, w.start(what, func() error {
					for round := 0; time.Now().Before(end) || goesOn(); round++ {
						if err := f(1 + round%3); err != nil {
							return err
						}
						count.Add(1)
						sum.Add(int64(1 + round%3))
					}
					return nil
				}))
			}
			take("Go: acquire", &byGo, func(n int) error { return l.Acquire(w.ctx, n) })
			take("Java: acquire", &byJava, func(n int) error { _, err := j.try("acquire", peer.Call{N: n}); return err })
		}
		for _, c := range all {
			c.returns()
		}
		given, seen := m.grants(wire.Suffix(w.name, wire.RatePermits)), 0
		late := time.Duration(0)
		for _, g := range given {
			late, seen = max(late, g.late), seen+g.n
		}
		late += 2 * time.Millisecond // clocks of milliseconds, on both sides
		for i := range given {
			n := 0
			for _, g := range given[i:] {
				if g.at.Sub(given[i].at) >= interval-late {
					break
				}
				n += g.n
			}
			if n > rate {
				t.Fatalf("%d permits within %v from %v on, where requests are %v late; the rate is %d", n, interval-late, given[i].at, late, rate)
			}
		}
		if int64(seen) != sum.Load() {
			t.Errorf("Redis gave %d permits, and %d were taken", seen, sum.Load())
		}
		w.deletes(w.javaSync("t0"))
	})
}
