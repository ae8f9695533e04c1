package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestACancelledAcquireLeavesNoOrphan(t *testing.T) { lingering(t, cancelledAcquires()...) }

func TestACancelledAcquirePassesItsTakeOn(t *testing.T) {
	together(t,
		// No caller is in a driver for longer than a third of the lease: a worker is.
		telling{"from a worker", func(s *story) { s.cancelledAcquirePassesItsTakeOn(1, redlatch.Lease(20*patience)) }},
		// A driver that a caller has left drops the answer: a worker sends the take again.
		telling{"from a driver that was left", func(s *story) { s.cancelledAcquirePassesItsTakeOn(2) }})
}

// A release sent at once would overtake the take that it is to undo, and the
// take would leave a lock that nobody holds.
func cancelledAcquires() (stories []telling) {
	for i := range 20 {
		delay := time.Duration(5+10*i) * time.Millisecond // shorter than patience
		stories = append(stories, telling{fmt.Sprint("slow take/", delay), func(s *story) { s.cancelledAcquire(delay) }})
	}
	for i := range 4 {
		delay := patience + time.Duration(300+200*i)*time.Millisecond
		stories = append(stories, telling{fmt.Sprint("late take/", delay), func(s *story) { s.cancelledAcquire(delay) }})
	}
	return stories
}

func (s *story) cancelledAcquire(delay time.Duration) {
	take := &requestKind{script: "lock.take"}
	fired := s.inject(take, faultnet.Delay(delay), 1)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	start := time.Now()
	got := locktest.Later(func() locktest.Outcome {
		h, err := s.c.Lock(s.lock).Acquire(ctx)
		return locktest.Outcome{Hold: h, Err: err}
	})
	if !locktest.Within(locktest.Generous, fired) {
		s.T.Fatal("no take was sent")
	}
	cancelled := time.Now()
	cancel()
	o := await(s.T, "the cancelled Acquire", got) // how soon: TestEveryCallReturnsWhenItsContextEnds
	if o.Err == nil && delay < patience && time.Since(start) >= delay {
		s.release(o.Hold) // the take has run before, or while this process stood still
		return
	}
	if !errors.Is(o.Err, context.Canceled) || !errors.Is(o.Err, redlatch.ErrBusy) && !errors.Is(o.Err, redlatch.ErrUnavailable) {
		s.T.Fatalf("Acquire: %v, want cancelled, and busy or, if even to connect took too long, unavailable", o.Err)
	}

	// The take runs now, or has been waited for; either way its lock goes.
	time.Sleep(time.Until(cancelled.Add(delay)))
	h := s.acquireBy(s.other, bg)
	s.wantHeld("in the end", h, 1)
	s.release(h)
}

// The next in line inherits the request that is in flight: it gets the lock and
// nothing is left behind.
func (s *story) cancelledAcquirePassesItsTakeOn(most int, opts ...redlatch.PlainOption) {
	take := &requestKind{script: "lock.take"}
	sent, pass := make(chan struct{}), make(chan struct{})
	letPass := sync.OnceFunc(func() { close(pass) })
	defer letPass()
	var once sync.Once
	s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		if take.is(r, s.lock) {
			once.Do(func() { close(sent) })
			<-pass // the request waits meanwhile
		}
		return faultnet.Pass
	})
	s.c = s.client(s.place.connect(s.T, s.addr, 10*patience), redlatch.Config{})
	s.proxy.Record(true)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	first := locktest.Later(func() error { _, err := s.c.Lock(s.lock, opts...).Acquire(ctx); return err })
	await(s.T, "the take", sent)
	lined := make(chan struct{})
	second := locktest.Later(func() locktest.Outcome {
		ctx, cancel := context.WithTimeout(bg, locktest.Generous)
		defer cancel()
		h, err := s.c.Lock(s.lock, opts...).Acquire(listened{ctx, sync.OnceFunc(func() { close(lined) })})
		return locktest.Outcome{Hold: h, Err: err}
	})
	cancel()
	if err := await(s.T, "the cancelled Acquire", first); !errors.Is(err, context.Canceled) {
		s.T.Fatalf("Acquire: %v, want cancelled", err)
	}
	await(s.T, "the second in line", lined) // or, if it had nobody to wait for, its take
	letPass()
	h := s.got(second)
	s.wantHeld("by the second in line", h, 1)
	takes := 0
	for _, r := range s.proxy.Requests() {
		if take.is(r, s.lock) {
			takes++
		}
	}
	if takes > most {
		s.T.Errorf("the lock was asked for %d times, want %d at most", takes, most)
	}
	s.release(h)
	s.wantFree("in the end")
}

// A listened context tells when somebody waits for its end. Acquire does not
// before it has lined up. (There is no event of it: SlowWait needs a hold to wait
// for.)
type listened struct {
	context.Context
	waits func()
}

func (l listened) Done() <-chan struct{} {
	l.waits()
	return l.Context.Done()
}
