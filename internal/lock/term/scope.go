package term

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/request"
)

// Contexts tell who owns a hold, never goroutines. A context that descends from a
// live hold nests in it; holds nested in the same hold take turns, so the hold
// count that Redis shows is the depth of the nest. WithOwner is the exception on
// purpose.

// WithOwner returns a context under which everything is one owner.
func WithOwner(ctx context.Context) context.Context {
	return &scopeContext{ctx, &Scope{nests: make(map[nestKey]*ScopeNest)}}
}

// A scopeContext is a context of a scope.
type scopeContext struct {
	context.Context //nolint:containedctx // this is a context
	scope           *Scope
}

type scopeKey struct{}

// Value answers which scope a context is in, who owns what that has, and whether
// some of that is in the way of a lock.
func (sc *scopeContext) Value(key any) any {
	switch k := key.(type) {
	case scopeKey:
		return sc.scope
	case *holdctx.Owners:
		sc.scope.owners(k)
	case overlap:
		if h := sc.scope.overlapping(k); h != nil {
			return h
		}
	}
	return sc.Context.Value(key)
}

// owners adds the owner ids of the scope.
func (scope *Scope) owners(o *holdctx.Owners) {
	for _, h := range scope.holds() {
		o.Add(h.t.ID)
	}
}

// overlapping returns a hold of the scope that has some of a group's values, but
// not the same ones; nil if there is none.
func (scope *Scope) overlapping(o overlap) *Hold {
	for _, h := range scope.holds() {
		if h.t.Lock.Entry != o.l.Entry && o.with(h) {
			return h
		}
	}
	return nil
}

// holds returns a live hold of each lock that the scope has.
func (scope *Scope) holds() (holds []*Hold) {
	scope.mu.Lock()
	var ts []*Term
	for _, nest := range scope.nests {
		ts = append(ts, nest.t.Load())
	}
	scope.mu.Unlock()
	for _, t := range ts {
		if h := scope.holdIn(t); h != nil {
			holds = append(holds, h)
		}
	}
	return holds
}

// A Scope is what WithOwner makes.
type Scope struct {
	mu    sync.Mutex             // guards nests
	nests map[nestKey]*ScopeNest // of locks that are held, or being acquired
}

type nestKey struct {
	c    *Env
	lock EntryKey
}

// A ScopeNest is a scope's term of one lock.
type ScopeNest struct {
	Slot     chan struct{}        // has one value, unless an acquisition of the scope has it
	Refusals request.Refusals     // of whoever has the slot
	scope    *Scope               // whose it is
	t        atomic.Pointer[Term] // set by who has the slot; may be over
	callers  int                  // who have the slot, or want it; guarded by scope.mu
}

// Enter returns the scope's nest of a lock, and has want be of the scope. A caller
// that enters has to leave.
func (scope *Scope) Enter(l *Lock, want *Params) *ScopeNest {
	scope.mu.Lock()
	defer scope.mu.Unlock()
	k := nestKey{l.Env, l.Entry}
	nest := scope.nests[k]
	if nest == nil {
		nest = &ScopeNest{Slot: make(chan struct{}, 1), scope: scope}
		nest.Slot <- struct{}{}
		scope.nests[k] = nest
	}
	nest.callers++
	want.scope, want.Asks = scope, &nest.Refusals
	return nest
}

// Leave is the end of Enter.
func (nest *ScopeNest) Leave(l *Lock) {
	scope := nest.scope
	scope.mu.Lock()
	defer scope.mu.Unlock()
	nest.callers--
	scope.forgetLocked(l)
}

// Note notes the latest hold of the scope. The caller has the slot.
func (nest *ScopeNest) Note(h *Hold) { nest.t.Store(h.t) }

// released lets the scope forget a lock that it may not have any more.
func (scope *Scope) released(l *Lock) {
	scope.mu.Lock()
	defer scope.mu.Unlock()
	scope.forgetLocked(l)
}

func (scope *Scope) forgetLocked(l *Lock) {
	k := nestKey{l.Env, l.Entry}
	if nest := scope.nests[k]; nest != nil && nest.callers == 0 && scope.holdIn(nest.t.Load()) == nil {
		delete(scope.nests, k)
	}
}

// holdIn returns a live hold of the scope in a term, if there is a term and such a
// hold.
func (scope *Scope) holdIn(t *Term) *Hold {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return scope.inLocked(&t.nest)
}

// inLocked is holdIn for those who have locked t.
func (scope *Scope) inLocked(t *nest) *Hold {
	for h := t.holds; h != nil; h = h.next {
		if h.scope == scope {
			return h
		}
	}
	return nil
}

// turnInLocked returns the hold whose turn the live holds of the scope share.
func (scope *Scope) turnInLocked(t *nest) *Hold {
	h := scope.inLocked(t)
	if h != nil && h.joined != nil {
		return h.joined
	}
	return h
}

// ErrNotNested says that a caller cannot nest any more, and may come to the lock
// anew.
var ErrNotNested = errors.New("the outer hold has ended")

// hasItAlready refuses the scope what it has.
func hasItAlready(l *Lock) error {
	return fmt.Errorf("%w: lock %q is non-reentrant and this owner has it; use its hold, or another owner", ErrReentry, l.Name())
}

// Enclosing returns the live hold of this lock that ctx descends from, and the
// scope it is in, if there are any. It fails if ctx descends from a hold that
// is over, or from one that would make the caller wait for itself.
func (l *Lock) Enclosing(ctx context.Context) (*Hold, *Scope, error) {
	scope, _ := ctx.Value(scopeKey{}).(*Scope)
	h, _ := ctx.Value(nearest{l}).(*Hold)
	if h == nil {
		if l.Kind.Part {
			o := overlap{l}
			if other, _ := ctx.Value(o).(*Hold); other != nil {
				return nil, nil, o.refuse(other)
			}
		}
		return nil, scope, nil
	}
	if h.t.Env != l.Env {
		h, _ = ctx.Value(member{l}).(*Hold) // of several clients' as one
	}
	if h == nil {
		return nil, nil, fmt.Errorf("%w: the context descends from a hold of lock %q of another client, which cannot be re-entered from this one; acquire with a context that does not descend from it", ErrReentry, l.Name())
	}
	if err := h.Unenterable(); err != nil {
		return nil, nil, err
	}
	if l.Wish.NonReentrant {
		return nil, nil, fmt.Errorf("%w: lock %q is non-reentrant and the context descends from a hold of it; use that hold, or a context that does not descend from it", ErrReentry, l.Name())
	}
	return h, scope, nil
}

// Join adds a hold to those that the scope has. It fails with ErrNotNested if none
// of them lives. The caller has the slot.
func (nest *ScopeNest) Join(ctx context.Context, l *Lock, want *Params) (*Hold, error) {
	scope, t := nest.scope, nest.t.Load()
	if t == nil {
		return nil, ErrNotNested
	}
	writes, reads := false, false
	t.mu.Lock()
	for h := t.holds; h != nil; h = h.next {
		if h.scope == scope {
			reads = reads || h.Reads
			writes = writes || !h.Reads
		}
	}
	join := l.Kind.Shared && reads && !l.Wish.NonReentrant
	var first *Hold
	if join {
		first = scope.turnInLocked(&t.nest)
		t.count++
		t.reads++
		first.open++
	}
	t.mu.Unlock()
	switch {
	case join:
		h, err := t.EnterShared(ctx, first, want, false)
		if errors.Is(err, ErrRejoin) {
			err = ErrNotNested
		}
		return h, err
	case l.Wish.NonReentrant && (reads || writes):
		return nil, hasItAlready(l)
	case l.Kind.Stops && reads && !writes:
		return nil, writeInRead(l.Name())
	}
	return t.Reenter(ctx, nil, l, want)
}
