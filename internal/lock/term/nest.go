package term

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/gate"
)

// A nesting is a hold's place in the nest of its term. Those that are nested in
// the same hold are siblings, and take turns. It is guarded by Term.mu.
type nesting struct {
	t          *Term
	prev, next *Hold             // of the live holds of the term
	parent     *Hold             // the hold that this one is nested in; nil for the first
	children   *gate.Gate[*Term] // at which those line up that nest in this hold
	joined     *Hold             // the first hold of the same scope, whose turn this one shares
	open       int               // this hold, if live, plus the nested one that has its turn
}

// A nest is an owner and its holds.
type nest struct {
	owner

	mu          sync.Mutex // guards what follows
	state       termState
	alone       bool          // it does not pass to another goroutine
	uncertain   bool          // a request of unknown outcome may still make it the owner
	err         error         // why it is over
	token       int64         // the fencing token, if it is fenced
	holds       *Hold         // the live ones, linked by Hold.next
	count       int           // holds that are live or being entered
	lapsedHolds int           // so many holds have ended by a window, and count until they are released
	longest     time.Duration // lease that was ever asked for, if longer than length
	stays       stay          // if that is longer than until its release

	keeping
	sharing
	holdCount
}

// keeping is for which holds the watchdog has a lease renewed. It is guarded by
// Term.mu.
type keeping struct {
	watched  int           // how many of the live ones it keeps
	keep     time.Duration // the longest lease that it is to renew one of them for
	renewing time.Duration // the lease for which the clock was told to renew it; 0: it was told not to
}

// keepLess has the other holds kept for no longer than they ask for, and for
// least, now that the hold that asked for most has ended. What Redis has runs down
// by itself.
func (k *keeping) keepLess(least time.Duration, others *Hold) {
	keep := least
	for h := others; h != nil && keep < k.keep; h = h.next {
		keep = max(keep, h.lease)
	}
	k.keep = keep
}

// closed frees the hold's turn among its siblings when it and everything that
// was nested in it, or shares its turn, has been released.
func (n *nesting) closed() {
	for n.joined != nil || n.parent != nil { // the first one of a nest has no siblings
		n.t.mu.Lock()
		n.open--
		over := n.open == 0
		n.t.mu.Unlock()
		switch {
		case !over:
			return
		case n.joined != nil:
			n = &n.joined.nesting
		default:
			n.parent.Siblings().Exit()
			n = &n.parent.nesting
		}
	}
}

// Term returns that of the hold.
func (n *nesting) Term() *Term { return n.t }

// Siblings returns the gate at which callers line up that nest in the hold.
func (n *nesting) Siblings() *gate.Gate[*Term] {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	if n.children == nil {
		n.children = &gate.Gate[*Term]{}
	}
	return n.children
}
