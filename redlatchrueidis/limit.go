package redlatchrueidis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A limiter makes the contexts that end a Run or a RunBatch: connecting, waiting
// for somebody else who connects, and both requests. They are used again, so that
// a Run allocates nothing.
//
// A connection that many share is not closed because one caller is in a hurry:
// the limit is the time after which rueidis gives a connection up anyway.
type limiter struct {
	after time.Duration
	start time.Time
	free  sync.Pool
}

func newLimiter(after time.Duration) *limiter {
	return &limiter{after: after, start: time.Now()}
}

// A limit is a context that ends after some time. It carries no values: there is
// nobody who could ask for one.
type limit struct {
	of      *limiter
	ends    atomic.Int64 // time after of.start; atomic as leftovers of a dial may ask
	timer   *time.Timer
	done    chan struct{}
	release func() // to be called when the limit is not needed any more
}

func (l *limiter) get() *limit {
	x, ok := l.free.Get().(*limit)
	if !ok {
		x = &limit{of: l, done: make(chan struct{})}
		x.release = func() {
			if x.timer.Stop() {
				l.free.Put(x)
			}
		}
		x.set()
		x.timer = time.AfterFunc(l.after, func() { close(x.done) })
		return x
	}
	x.set()
	x.timer.Reset(l.after)
	return x
}

func (x *limit) set() { x.ends.Store(int64(time.Since(x.of.start) + x.of.after)) }

var _ context.Context = (*limit)(nil)

// Deadline is a little before the end: an attempt to connect then still has the
// time to say that it failed, and with it that nothing was sent.
func (x *limit) Deadline() (time.Time, bool) {
	return x.of.start.Add(time.Duration(x.ends.Load()) - x.of.after/10), true
}

func (x *limit) Done() <-chan struct{} { return x.done }

func (x *limit) Err() error {
	select {
	case <-x.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (x *limit) Value(any) any { return nil }
