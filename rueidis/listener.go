package rueidis

import (
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch"
)

// A listener is one local subscriber of a channel.
type listener struct {
	f    func(redlatch.Notice)
	over atomic.Bool // stopped

	mu      sync.Mutex // serializes f
	greeted bool       // has heard that the subscription is confirmed
}

// confirmed tells the listener that the subscription is confirmed; unless again
// is set, only if it has not heard so before.
func (l *listener) confirmed(again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() || l.greeted && !again {
		return
	}
	l.greeted = true
	l.f(redlatch.Notice{Subscribed: true})
}

// message delivers a message, behind the first confirmation in any case.
func (l *listener) message(payload string) {
	l.confirmed(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over.Load() {
		l.f(redlatch.Notice{Payload: payload})
	}
}
