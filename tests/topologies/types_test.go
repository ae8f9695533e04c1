package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// generous bounds what should take milliseconds, on a busy machine too.
const generous = time.Minute

// A pair is two clients, as of two processes, and a name that nobody else uses.
type pair struct {
	*testing.T
	ctx  context.Context
	a, b *redlatch.Client
	name string
}

// types are all types of the library, each with what it is for: it is had by one,
// refused to another client, waited for, and passed on by a message. The names are
// the rows of the table in docs/guarantees.md.
var types = []struct {
	name string
	test func(p *pair)
}{
	{"Lock", func(p *pair) { p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) }) }},
	{"Lock, NonReentrant", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.NonReentrant()) })
		p.refusesReentry(p.a.Lock(p.name, redlatch.NonReentrant()))
	}},
	{"FairLock", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name) })
		p.order()
	}},
	{"FairLock, NonReentrant", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name, redlatch.NonReentrant()) })
		p.refusesReentry(p.a.FairLock(p.name, redlatch.NonReentrant()))
	}},
	{"ReadWriteLock", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() })
		p.readers()
	}},
	{"Lock, Fenced", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.Fenced()) })
		p.tokens()
	}},
	{"SpinLock", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock {
			return redisson.SpinLock(c, name, redisson.Constant(5*time.Millisecond))
		})
	}},
	{"StripedLock", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock { return c.StripedLock(name, 16).For("key") })
	}},
	{"GroupLock", func(p *pair) {
		p.lock(func(c *redlatch.Client, name string) *redlatch.Lock {
			return redisson.GroupLock(c, name, []string{"x", "y"})
		})
	}},
	{"MultiLock", (*pair).multi},
	{"RedLock", (*pair).red},
	{"semaphore.Semaphore", (*pair).semaphore},
	{"semaphore.Expirable", (*pair).permits},
	{"latch", (*pair).latch},
	{"barrier", (*pair).barrier},
	{"ratelimit", (*pair).rate},
	{"Locks, Info, ForceRelease", (*pair).inspect},
}

// start runs f in a goroutine; its error is to be taken with await.
func start(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func (p *pair) await(what string, c <-chan error) {
	p.Helper()
	select {
	case err := <-c:
		p.must(what, err)
	case <-time.After(generous):
		p.Fatalf("%s takes too long", what)
	}
}

func (p *pair) must(what string, err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

func (p *pair) busy(what string, err error) {
	p.Helper()
	if !errors.Is(err, redlatch.ErrBusy) {
		p.Fatalf("%s: %v, want that it is busy", what, err)
	}
}

func (p *pair) eventually(what string, f func() bool) {
	p.Helper()
	eventually(p.T, what, f)
}

func (p *pair) acquire(l *redlatch.Lock, opts ...redlatch.PlainOption) *redlatch.Hold {
	p.Helper()
	h, err := locktest.With(l, opts...).Acquire(p.ctx)
	p.must("Acquire", err)
	return h
}

func (p *pair) release(h *redlatch.Hold) {
	p.Helper()
	p.must("Release", h.Release(p.ctx))
}

// lock is the life of an exclusive lock: two clients take turns, with and without
// waiting; leases are extended; a hold is entered once more.
func (p *pair) lock(of func(c *redlatch.Client, name string) *redlatch.Lock) {
	mine, other := of(p.a, p.name), of(p.b, p.name)
	h := p.acquire(mine)
	_, err := other.TryAcquire(p.ctx, 0)
	p.busy("Try beside a holder", err)
	if inner, err := mine.Acquire(h.Context()); err == nil {
		p.release(inner)
	} else if !errors.Is(err, redlatch.ErrReentry) {
		p.Fatalf("the second Acquire: %v", err)
	}
	for range 3 {
		var next *redlatch.Hold
		got := start(func() (err error) { next, err = other.Acquire(p.ctx); return err })
		time.Sleep(5 * time.Millisecond) // often it waits by then
		p.release(h)
		p.await("Acquire behind a holder", got)
		h, mine, other = next, other, mine
	}
	p.release(h)
	h = p.acquire(other, redlatch.Lease(time.Minute))
	p.must("Extend", h.Extend(p.ctx, time.Hour))
	if left := time.Until(h.Expires()); left < 50*time.Minute {
		p.Errorf("after Extend the hold lasts for %v", left)
	}
	p.release(h)
	h = p.acquire(mine)
	for limit := 50 * time.Millisecond; limit < time.Minute; limit *= 2 {
		ctx, cancel := context.WithTimeout(p.ctx, limit)
		_, err = other.Acquire(ctx)
		cancel()
		if !errors.Is(err, redlatch.ErrUnavailable) { // else the machine stood still, and the server was not heard
			break
		}
	}
	p.busy("Acquire whose context ends", err)
	p.release(h)
}

func (p *pair) refusesReentry(l *redlatch.Lock) {
	h := p.acquire(l)
	if _, err := l.TryAcquire(h.Context(), 0); !errors.Is(err, redlatch.ErrReentry) {
		p.Errorf("the second Try: %v", err)
	}
	p.release(h)
}

// order: waiters of both clients get a fair lock in the order in which they came,
// but for one who gives up in the middle of the queue. The lock is one of its own:
// a waiter that gave up before may still be leaving the queue of another, and
// would be counted.
func (p *pair) order() {
	const n, quitter = 6, 2
	name := p.name + ":order"
	queued := func(want int) func() bool {
		return func() bool {
			info, err := admin.New(p.a).Info(p.ctx, name)
			p.must("Info", err)
			return len(info.Queue) == want
		}
	}
	h := p.acquire(p.a.FairLock(name))
	patience, cancel := context.WithCancel(p.ctx)
	defer cancel()
	served, done := make(chan int, n), make(chan error, n)
	for i := range n {
		c, ctx := []*redlatch.Client{p.a, p.b}[i%2], p.ctx
		if i == quitter {
			ctx = patience
		}
		go func() {
			h, err := c.FairLock(name).Acquire(ctx)
			switch {
			case err == nil:
				served <- i // before the next one has it
				done <- h.Release(p.ctx)
			case i != quitter:
				served <- -1
				done <- err
			}
		}()
		p.eventually("it stands in the queue", queued(i+1))
	}
	cancel()
	p.eventually("one has left the queue", queued(n-1))
	p.release(h)
	for i := range n {
		if i == quitter {
			continue
		}
		if got := <-served; got != i {
			p.Fatalf("number %d was served as number %d", got, i)
		}
		p.await("a waiter of the queue", done)
	}
}

func (p *pair) readers() {
	mine, other := p.a.ReadWriteLock(p.name), p.b.ReadWriteLock(p.name)
	one, two := p.acquire(mine.Read()), p.acquire(other.Read())
	_, err := other.Write().TryAcquire(p.ctx, 0)
	p.busy("a writer beside readers", err)
	var w *redlatch.Hold
	got := start(func() (err error) { w, err = other.Write().Acquire(p.ctx); return err })
	p.release(two)
	p.release(one)
	p.await("the writer", got)
	_, err = mine.Read().TryAcquire(p.ctx, 0)
	p.busy("a reader beside a writer", err)
	down, err := other.Read().Acquire(w.Context())
	p.must("a read under the write", err)
	p.release(w)
	p.release(p.acquire(mine.Read()))
	p.release(down)
}

func (p *pair) tokens() {
	last := int64(0)
	for range 3 {
		for _, c := range []*redlatch.Client{p.a, p.b} {
			h := p.acquire(c.Lock(p.name, redlatch.Fenced()))
			if h.Token() <= last {
				p.Errorf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			p.release(h)
		}
	}
}

// multi takes locks of several slots.
func (p *pair) multi() {
	of := func(c *redlatch.Client) (locks []*redlatch.Lock) {
		for i := range 6 {
			locks = append(locks, c.Lock(fmt.Sprintf("%s-%d", p.name, i)))
		}
		return append(locks, c.FairLock(p.name+"-fair"), c.ReadWriteLock(p.name+"-rw").Read())
	}
	h, err := redlatch.MultiLock(of(p.a)...).Acquire(p.ctx)
	p.must("Acquire", err)
	_, err = redlatch.MultiLock(of(p.b)...).TryAcquire(p.ctx, 0)
	p.busy("Try", err)
	got := start(func() error {
		h, err := redlatch.MultiLock(of(p.b)...).Acquire(p.ctx)
		if err != nil {
			return err
		}
		return h.Release(p.ctx)
	})
	p.must("Release", h.Release(p.ctx))
	p.await("Acquire behind a holder", got)
	p.release(p.acquire(p.a.Lock(p.name + "-3")))
}

// red has two members only, as there are two clients: both must be had.
func (p *pair) red() {
	l := redlatch.RedLock(p.a.Lock(p.name+"-a"), p.b.Lock(p.name+"-b"))
	h, err := l.Acquire(p.ctx)
	p.must("Acquire", err)
	_, err = redlatch.RedLock(p.a.Lock(p.name+"-a"), p.b.Lock(p.name+"-b")).TryAcquire(p.ctx, 0)
	p.busy("Try", err)
	p.must("Release", h.Release(p.ctx))
	h, err = l.TryAcquire(p.ctx, 0)
	p.must("Try", err)
	p.must("Release", h.Release(p.ctx))
}

func (p *pair) semaphore() {
	mine, other := semaphore.New(p.a, p.name, 0), semaphore.New(p.b, p.name, 0)
	_, err := mine.TrySetPermits(p.ctx, 3)
	p.must("TrySetPermits", err)
	p.must("Acquire", mine.Acquire(p.ctx, 2))
	p.busy("Try", other.TryAcquire(p.ctx, 2, 0))
	got := start(func() error { return other.Acquire(p.ctx, 3) })
	p.must("Release", mine.Release(p.ctx, 2))
	p.await("Acquire", got)
	p.must("Release", other.Release(p.ctx, 3))
	n, err := mine.Drain(p.ctx)
	p.must("Drain", err)
	if n != 3 {
		p.Errorf("%d drained", n)
	}
	_, err = mine.Delete(p.ctx)
	p.must("Delete", err)
}

func (p *pair) permits() {
	mine, other := semaphore.NewExpirable(p.a, p.name, 0), semaphore.NewExpirable(p.b, p.name, 0)
	_, err := mine.TrySetPermits(p.ctx, 2)
	p.must("TrySetPermits", err)
	both, err := locktest.Each(mine.Acquire(p.ctx, 2))
	p.must("Acquire of several", err)
	_, err = other.TryAcquire(p.ctx, 1, 0)
	p.busy("Try", err)
	var next *redlatch.Hold
	got := start(func() (err error) { next, err = other.Acquire(p.ctx, 1); return err })
	p.must("Release", both[0].Release(p.ctx))
	p.await("Acquire", got)
	p.must("Release of another client's permit", other.Release(p.ctx, both[1].ID()))
	p.must("Release", next.Release(p.ctx))
	if err := both[1].Release(p.ctx); err == nil {
		p.Error("a permit was released twice")
	}
	_, err = mine.Delete(p.ctx)
	p.must("Delete", err)
}

func (p *pair) latch() {
	mine, other := latch.New(p.a, p.name), latch.New(p.b, p.name)
	_, err := mine.TrySetCount(p.ctx, 2)
	p.must("TrySetCount", err)
	got := start(func() error { return other.Wait(p.ctx) })
	p.must("CountDown", other.CountDown(p.ctx))
	p.must("CountDown", mine.CountDown(p.ctx))
	p.await("Wait", got)
}

func (p *pair) barrier() {
	for range 2 {
		got := start(func() error { _, err := barrier.New(p.b, p.name, 2).Await(p.ctx); return err })
		_, err := barrier.New(p.a, p.name, 2).Await(p.ctx)
		p.must("Await", err)
		p.await("Await", got)
	}
}

func (p *pair) rate() {
	mine, other := ratelimit.New(p.a, p.name, ratelimit.Rate{}), ratelimit.New(p.b, p.name, ratelimit.Rate{})
	_, err := mine.TrySetRate(p.ctx, ratelimit.Rate{Permits: 2, Interval: 300 * time.Millisecond})
	p.must("TrySetRate", err)
	start := time.Now()
	for range 3 {
		p.must("Acquire", mine.Acquire(p.ctx, 1))
		p.must("Acquire", other.Acquire(p.ctx, 1))
	}
	if took := time.Since(start); took < 590*time.Millisecond {
		p.Errorf("6 permits, 2 in 300 ms, in %v", took)
	}
	_, err = mine.Delete(p.ctx)
	p.must("Delete", err)
}

// inspect finds locks on all nodes, and takes one away.
func (p *pair) inspect() {
	const n = 20
	var holds []*redlatch.Hold
	var want []string
	for i := range n {
		name := fmt.Sprintf("%s-%d", p.name, i)
		want = append(want, name)
		holds = append(holds, p.acquire(p.a.Lock(name)))
	}
	var got []string
	for info, err := range admin.New(p.b).Locks(p.ctx, p.name+"-*") {
		p.must("Locks", err)
		got = append(got, info.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.Errorf("found %q, want %q", got, want)
	}
	info, err := admin.New(p.b).Info(p.ctx, want[0])
	p.must("Info", err)
	if len(info.Holders) != 1 || !strings.HasPrefix(info.Holders[0].Owner, p.a.ID()) {
		p.Errorf("Info: %+v", info)
	}
	ok, err := admin.ForceRelease(p.ctx, p.b.Lock(holds[0].Name()))
	p.must("ForceRelease", err)
	if !ok {
		p.Error("ForceRelease found nobody")
	}
	select {
	case <-holds[0].Context().Done():
	case <-time.After(generous):
		p.Error("the holder was not told")
	}
	for _, h := range holds[1:] {
		p.release(h)
	}
}
