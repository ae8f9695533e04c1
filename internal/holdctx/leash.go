package holdctx

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Leash is a part of what a user has, such as a Hold, and tells when that is dropped:
// garbage collected before the leash was taken off. Its zero value is off.
type Leash[T any] struct{ ring atomic.Pointer[ring[T]] }

// Leashes are those of one kind of thing. To have the garbage collector watch an object
// costs as much as a third of handing a lock on. So it watches rings, and a ring is for one
// leash after the other.
type Leashes[T any] struct {
	dropped func(*T)
	rings   sync.Pool // of those that are on no leash
}

// A ring is referred to by the leash that it is on, and by nothing else: it is dropped
// when that is.
type ring[T any] struct {
	all  *Leashes[T]
	held *atomic.Pointer[T] // what it is about, while it is on a leash
}

// NewLeashes returns leashes that call dropped with what they were put on for, in a
// goroutine of the garbage collector.
func NewLeashes[T any](dropped func(*T)) *Leashes[T] { return &Leashes[T]{dropped: dropped} }

// PutOn puts a leash on what a user has of held, which must not refer to that.
func (all *Leashes[T]) PutOn(l *Leash[T], held *T) {
	r, ok := all.rings.Get().(*ring[T])
	if !ok {
		r = &ring[T]{all: all, held: &atomic.Pointer[T]{}}
		runtime.AddCleanup(r, all.collected, r.held)
	}
	r.held.Store(held)
	l.ring.Store(r)
}

// collected is called when a ring was, on a leash or not.
func (all *Leashes[T]) collected(of *atomic.Pointer[T]) {
	if held := of.Load(); held != nil {
		all.dropped(held)
	}
}

// TakeOff takes the leash off, if it is on.
func (l *Leash[T]) TakeOff() {
	if r := l.ring.Swap(nil); r != nil {
		r.held.Store(nil)
		r.all.rings.Put(r)
	}
}
