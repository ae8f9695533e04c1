package main

import (
	"context"
	"sync/atomic"
	"time"
)

// The phases of a measuring process.
const (
	warming int32 = iota
	measuring
	stopping
)

// A worker is one goroutine that takes and releases a lock again and again.
type worker struct {
	g       int
	who     int64 // unique among all processes
	lock    locker
	page    *page // nil: uncontended
	section time.Duration
	phase   *atomic.Int32

	// Owned by the worker until it has ended.
	acquisitions              int64
	acquire, release, handOff histogram
	pair                      histogram
	violations, errors        int64
	firstError                error
	last                      int64 // a recent time, to ask for it less often
	_                         [64]byte
}

// run goes on until the phase is stopping. waiting is the context of acquires and
// ends then; releasing outlives it.
func (w *worker) run(waiting, releasing context.Context) {
	for {
		switch w.phase.Load() {
		case stopping:
			return
		case warming:
			w.once(waiting, releasing, false)
		default:
			w.once(waiting, releasing, true)
		}
	}
}

// once is one acquisition. It counts if it began in the measured phase and its
// lock was returned in it.
func (w *worker) once(waiting, releasing context.Context, count bool) {
	asked := w.last
	if asked == 0 {
		asked = now()
	}
	w.last = 0
	err := w.lock.acquire(waiting, w.g)
	got := now()
	if err != nil {
		w.failed(err)
		return
	}
	count = count && w.phase.Load() == measuring
	left := got
	if w.page != nil {
		alone, handedAt := w.page.enter(w.who)
		if !alone {
			w.violations++
		}
		if count && handedAt > 0 && alone {
			w.handOff.add(got - handedAt)
		}
		if w.section > 0 {
			time.Sleep(w.section)
		}
		left = w.page.leave(w.who)
	}
	if err := w.lock.release(releasing, w.g); err != nil {
		w.failed(err)
		return
	}
	if !count {
		return
	}
	done := now()
	w.last = done
	w.acquisitions++
	w.acquire.add(got - asked)
	w.release.add(done - left)
	w.pair.add(got - asked + done - left)
}

// failed notes an error of the measured phase; a waiter that is stopped fails
// as it should. The pause keeps a failing implementation from spinning.
func (w *worker) failed(err error) {
	if w.phase.Load() == stopping {
		return
	}
	w.errors++
	if w.firstError == nil {
		w.firstError = err
	}
	time.Sleep(time.Millisecond)
}
