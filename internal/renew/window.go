package renew

import (
	"sync"
	"time"
)

// Elapsed returns how much time has passed between two calls of time.Now, by
// the clock that says more.
func Elapsed(since, now time.Time) time.Duration {
	mono := now.Sub(since)
	wall := time.Duration(now.UnixNano() - since.UnixNano())
	return max(mono, wall)
}

// Margin is how much earlier than the server the holder of a lease ends it.
func Margin(lease time.Duration) time.Duration { return 10*time.Millisecond + lease/50 }

// A Window is the time for which a lease may be trusted. Its methods are safe
// for concurrent use.
type Window struct {
	mu    sync.Mutex
	sent  time.Time     // when the best confirmed request was sent
	lease time.Duration // what it was confirmed for
	trust time.Duration // how much of that can be trusted
	last  time.Time     // when the latest confirmed request was sent
}

// Confirm notes that a request sent at sent was confirmed for lease. It never
// shortens the window.
func (w *Window) Confirm(sent time.Time, lease time.Duration) {
	trust := lease - Margin(lease)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now() // that is Left's measure too: the clocks may differ by a suspend since one of the two was sent
	if w.sent.IsZero() || trust-Elapsed(sent, now) > w.trust-Elapsed(w.sent, now) {
		w.sent, w.lease, w.trust = sent, lease, trust
	}
	if sent.After(w.last) {
		w.last = sent
	}
}

// Reset forgets everything: the next Confirm starts a new window.
func (w *Window) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent, w.lease, w.trust, w.last = time.Time{}, 0, 0, time.Time{}
}

// Left returns how much of the window is left at now; 0 or less if it is over.
func (w *Window) Left(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trust - Elapsed(w.sent, now)
}

// rests returns which confirmed request the window rests on: when it was sent, and
// for what lease.
func (w *Window) rests() (sent time.Time, lease time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent, w.lease
}

// End returns when the window ends if no clock is stepped from now on.
func (w *Window) End() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if passed := Elapsed(w.sent, now); passed-now.Sub(w.sent) > slept {
		return now.Add(w.trust - passed) // of the sum below the monotonic part would be late
	}
	return w.sent.Add(w.trust)
}

// Granted returns for how long the confirmed request has the lease on which the
// window rests.
func (w *Window) Granted() time.Duration {
	_, lease := w.rests()
	return lease
}

// Confirmed returns when the latest confirmed request was sent.
func (w *Window) Confirmed() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
