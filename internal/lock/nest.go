package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/gate"
)

// A nesting is a hold's place in the nest of its term. Those that are nested in the same
// hold are siblings, and take turns. It is guarded by term.mu.
type nesting struct {
	prev, next *Hold             // of the live holds of the term
	parent     *Hold             // the hold that this one is nested in; nil for the first
	children   *gate.Gate[*term] // at which those line up that nest in this hold
	joined     *Hold             // the first hold of the same scope, whose turn this one shares
	open       int               // this hold, if live, plus the nested one that has its turn
}

// A nest is what a term knows of its holds. It is guarded by term.mu.
type nest struct {
	holds       *Hold         // the live ones, linked by Hold.next
	count       int           // holds that are live or being entered
	watched     int           // of the live ones, how many the watchdog keeps
	keep        time.Duration // the longest lease that it is to renew one of them for
	lapsedHolds int           // so many holds have ended by a window, and count until they are released
}

// keepLess has the others kept for no longer than they ask for, and for least, now that the hold that asked for most has
// ended. What Redis has runs down by itself.
func (n *nest) keepLess(least time.Duration) {
	keep := least
	for h := n.holds; h != nil && keep < n.keep; h = h.next {
		keep = max(keep, h.lease)
	}
	n.keep = keep
}

// liveOfLocked returns a live hold of a scope.
func (t *term) liveOfLocked(sc *scope) *Hold {
	for h := t.holds; h != nil; h = h.next {
		if h.scope == sc {
			return h
		}
	}
	return nil
}

// firstOfLocked returns the hold whose turn the live holds of a scope share.
func (t *term) firstOfLocked(sc *scope) *Hold {
	h := t.liveOfLocked(sc)
	if h != nil && h.joined != nil {
		return h.joined
	}
	return h
}

// closed frees the hold's turn among its siblings when it and everything that
// was nested in it, or shares its turn, has been released.
func (h *Hold) closed() {
	for h.joined != nil || h.parent != nil { // the first one of a nest has no siblings
		h.t.mu.Lock()
		h.open--
		over := h.open == 0
		h.t.mu.Unlock()
		switch {
		case !over:
			return
		case h.joined != nil:
			h = h.joined
		default:
			h.parent.siblings().Exit()
			h = h.parent
		}
	}
}

// siblings returns the gate at which callers line up that nest in h.
func (h *Hold) siblings() *gate.Gate[*term] {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.children == nil {
		h.children = &gate.Gate[*term]{}
	}
	return h.children
}
