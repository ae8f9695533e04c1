package adapter

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
)

// A Listener is one local subscriber of a channel.
type Listener struct {
	f    func(driver.Notice)
	over atomic.Bool // stopped

	mu      sync.Mutex // serializes f
	greeted bool       // has heard that the subscription is confirmed
}

// NewListener returns a listener that passes everything on to f, one after the
// other.
func NewListener(f func(driver.Notice)) *Listener { return &Listener{f: f} }

// Stop keeps everything that comes later from the listener. It does not wait for a
// call of f that runs.
func (l *Listener) Stop() { l.over.Store(true) }

// Confirmed tells the listener that the subscription is confirmed. Without again,
// it tells only a listener that has not heard so before.
func (l *Listener) Confirmed(again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() || l.greeted && !again {
		return
	}
	l.greeted = true
	l.f(driver.Notice{Subscribed: true})
}

// Message delivers a message. The listener hears of a confirmation first.
func (l *Listener) Message(payload string) {
	l.Confirmed(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over.Load() {
		l.f(driver.Notice{Payload: payload})
	}
}

// Listeners are those of one channel. A list is replaced and never changed, so a
// caller that has read it under a lock may use it without the lock.
type Listeners []*Listener

// With returns the list with l at its end.
func (ls Listeners) With(l *Listener) Listeners { return append(slices.Clip(ls), l) }

// Without returns the list without l.
func (ls Listeners) Without(l *Listener) Listeners {
	rest := make(Listeners, 0, len(ls))
	for _, other := range ls {
		if other != l {
			rest = append(rest, other)
		}
	}
	return rest
}
