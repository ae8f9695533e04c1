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

// A worker is one goroutine that takes and releases a lock again and again, or
// lets a crowd go.
type worker struct {
	g        int
	who      int64 // unique among all processes, from 1
	together int64 // goroutines of a process; who of the second starts behind those of the first
	lock     locker
	page     *page // nil: uncontended
	section  time.Duration
	pause    time.Duration
	phase    *atomic.Int32

	crowd *crowd // at a latch; nil for others

	// Of a read-write lock or a semaphore; sharing is nil for others.
	sharing    sharer
	limit      int32 // how many may share
	writeEvery int
	n          int

	// Owned by the worker until it has ended.
	acquisitions       int64
	crossings          int64 // acquisitions that followed another process's
	op, pair, handOff  histogram
	violations, errors int64
	firstError         error
	last               int64 // a recent time, to ask for it less often
	_                  [64]byte
}

// run goes on until the phase is stopping. waiting is the context of acquires and
// ends then; releasing outlives it.
func (w *worker) run(waiting, releasing context.Context) {
	for {
		switch phase := w.phase.Load(); {
		case phase == stopping:
			return
		case w.crowd != nil:
			w.letGo(waiting, phase == measuring)
		default:
			w.once(waiting, releasing)
		}
		if w.pause > 0 {
			time.Sleep(w.pause)
			w.last = 0
		}
	}
}

// once is one acquisition. It counts if the lock was acquired and returned in the
// measured phase. Where very many wait, they asked for it before.
func (w *worker) once(waiting, releasing context.Context) {
	asked := w.last
	if asked == 0 {
		asked = now()
	}
	w.last = 0
	shares := w.shares()
	var err error
	if shares {
		err = w.sharing.acquireShared(waiting, w.g)
	} else {
		err = w.lock.acquire(waiting, w.g)
	}
	got := now()
	if err != nil {
		w.failed(err)
		return
	}
	count := w.phase.Load() == measuring
	crossed := false
	left := got
	switch {
	case w.page == nil:
	case shares:
		if !w.page.enterShared(w.limit) {
			w.violations++
		}
		w.sleep()
		left = w.page.leaveShared()
	default:
		alone, handedAt := w.page.enter(w.who)
		if !alone {
			w.violations++
		}
		if count && handedAt > 0 && alone && w.sharing == nil {
			w.handOff.add(got - handedAt)
		}
		crossed = w.crossed()
		w.sleep()
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
	if crossed {
		w.crossings++
	}
	w.op.add(got - asked)
	w.op.add(done - left)
	w.pair.add(got - asked + done - left)
}

// crossed says whether a goroutine of another process unlocked last.
func (w *worker) crossed() bool {
	by := w.page.releasedBy.Load()
	return by != 0 && (by-1)/w.together != (w.who-1)/w.together
}

// shares says whether the next acquisition is one of a reader.
func (w *worker) shares() bool {
	if w.sharing == nil {
		return false
	}
	w.n++
	return w.writeEvery == 0 || w.n%w.writeEvery != 0
}

func (w *worker) sleep() {
	if w.section > 0 {
		time.Sleep(w.section)
	}
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
