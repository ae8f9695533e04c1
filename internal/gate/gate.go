package gate

import (
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/queue"
)

// A Gate admits one goroutine at a time. Its zero value is an open gate. V is
// what is passed on.
type Gate[V any] struct {
	mu     sync.Mutex
	inside bool
	line   queue.Line[*Ticket[V]] // not empty only if inside
}

// A Ticket is one goroutine's place in a queue. It may be used again after
// the goroutine has been inside or has got away.
type Ticket[V any] struct {
	Who any // whose place it is, for Look; set before the first Enter

	woken chan struct{} // one slot: filled when there is something to look at
	in    atomic.Bool   // it was let in, and has not taken what it was given
	place queue.Place[*Ticket[V]]
	v     V
}

// NewTicket returns a Waiter for any gate of its type.
func NewTicket[V any]() *Ticket[V] { return &Ticket[V]{woken: make(chan struct{}, 1)} }

// Enter lets the caller in at once and returns true if nobody is inside;
// otherwise it queues w and returns false: the caller is inside when w.In
// says so, of which w.Woken tells.
func (g *Gate[V]) Enter(w *Ticket[V]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.inside {
		g.inside = true
		return true
	}
	g.line.Push(&w.place, w, false)
	return false
}

// TryEnter lets the caller in if nobody is inside, and says whether it did.
func (g *Gate[V]) TryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside {
		return false
	}
	g.inside = true
	return true
}

// Pass lets the first waiter in, gives it v and returns true; the caller is
// then outside. If nobody waits it does nothing and returns false.
func (g *Gate[V]) Pass(v V) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admit(v)
}

// Exit lets the first waiter in with the zero value, or leaves the gate open.
func (g *Gate[V]) Exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var none V
	if !g.admit(none) {
		g.inside = false
	}
}

// Cancel takes w out of the queue and returns true, or returns false if w has
// been let in: then the caller is inside, and w.Take tells with what.
func (g *Gate[V]) Cancel(w *Ticket[V]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !w.place.Taken() {
		return false
	}
	g.line.Remove(&w.place)
	return true
}

// Wake has all look around who are queued.
func (g *Gate[V]) Wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.line.All() {
		w.Wake()
	}
}

// Look calls f with Who of those who are queued, in their order, until it returns
// false. It returns how many were not looked at. The gate is locked meanwhile: f
// only copies what it wants to know.
func (g *Gate[V]) Look(f func(who any) (more bool)) (others int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	others = g.line.Len()
	for w := range g.line.All() {
		others--
		if !f(w.Who) {
			break
		}
	}
	return others
}

// Woken delivers when w is let in, and after Wake. It may also deliver without any
// reason: the reason was there before. A waiter has this one channel for all
// reasons, and looks: each channel more that all listen to costs a tenth of a
// hand-off.
func (w *Ticket[V]) Woken() <-chan struct{} { return w.woken }

// In says whether w has been let in.
func (w *Ticket[V]) In() bool { return w.in.Load() }

// Wake has w look around.
func (w *Ticket[V]) Wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it is yet to look
	}
}

// Take returns what w was let in with, once, after In has returned true or
// Cancel has returned false.
func (w *Ticket[V]) Take() V {
	w.in.Store(false)
	v := w.v
	var none V
	w.v = none
	return v
}

func (g *Gate[V]) admit(v V) bool {
	w := g.line.First()
	if w == nil {
		return false
	}
	g.line.Remove(&w.place)
	w.v = v
	w.in.Store(true)
	w.Wake()
	return true
}
