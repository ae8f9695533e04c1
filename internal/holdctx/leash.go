package holdctx

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Leash is a part of what a user has, such as a Hold, and tells when that is
// dropped: garbage collected before the leash was taken off. Its zero value is
// off.
type Leash struct{ ring atomic.Pointer[ring] }

// A ring is referred to by the leash that it is on, and by nothing else: it is
// dropped when that is.
type ring struct{ about *about }

// about is what a ring is about, while it is on a leash.
type about struct {
	mu   sync.Mutex
	held Droppable
}

// Droppable is what a user may drop. Dropped is called in a goroutine of the
// garbage collector.
type Droppable interface{ Dropped() }

// rings are those that are on no leash. To have the garbage collector watch an
// object costs as much as a third of handing a lock on. So it watches rings, and a
// ring is for one leash after the other.
var rings = sync.Pool{New: func() any {
	r := &ring{about: &about{}}
	runtime.AddCleanup(r, (*about).collected, r.about)
	return r
}}

// PutOn puts the leash on what a user has of held, which must not refer to that.
func (l *Leash) PutOn(held Droppable) {
	r := rings.Get().(*ring) //nolint:forcetypeassert // as it says
	r.about.set(held)
	l.ring.Store(r)
}

// TakeOff takes the leash off, if it is on.
func (l *Leash) TakeOff() {
	if r := l.ring.Swap(nil); r != nil {
		r.about.set(nil)
		rings.Put(r)
	}
}

// set sets what it is about, and returns what that was before.
func (a *about) set(held Droppable) (before Droppable) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, a.held = a.held, held
	return before
}

// collected is called when its ring was, on a leash or not.
func (a *about) collected() {
	if held := a.set(nil); held != nil {
		held.Dropped()
	}
}
