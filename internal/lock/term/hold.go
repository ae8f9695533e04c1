package term

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Hold is what the library keeps of a Hold. It must not refer to the Hold, or
// a dropped one would never be noticed.
type Hold struct {
	scope    *Scope
	watchdog bool    // the watchdog keeps it
	Reads    bool    // it shares its term with others that read
	token    int64   // the fencing token; 0: it has none. It is set once, before anybody has the hold
	own      *ownEnd // nil: it ends with its term

	origin
	lease time.Duration // that the watchdog is to keep it for

	// Guarded by t.mu.
	phase
	nesting
	note *string      // what the holder says that it is for; nil: nothing
	life holdctx.Life // whether it is over, and who hears of that
}

// A phase is how far a hold has come. It is guarded by Term.mu.
type phase struct {
	forming bool // one of several that are not all there yet: nobody works under it
	lapsed  bool // it ended by a window, and counts until it is released
}

// An origin is how a hold was acquired.
type origin struct {
	several bool // as one of several, which others of its term need not be
	passed  bool // without a request, from another goroutine of the process
	at      callsite.Site
	since   time.Time
}

// addLocked adds a hold to the live ones, that was asked for so.
func (t *nest) addLocked(ctx context.Context, h *Hold, want *Params, now time.Time) {
	h.life.Under(ctx)
	h.scope, h.watchdog, h.several, h.forming, h.at, h.since = want.scope, !want.HasLease, want.Member, want.Member, want.At, now
	if want.Note != "" {
		note := want.Note // so that a hold without one allocates nothing
		h.note = &note
	}
	h.next = t.holds
	if t.holds != nil {
		t.holds.prev = h
	}
	t.holds = h
	if want.Fenced {
		h.token = t.token
	}
	if h.watchdog {
		t.watched++
		h.lease, t.keep = want.Lease, max(t.keep, want.Lease)
		if d := cmp.Or(want.MaxHold, t.Env.MaxHold); d > 0 {
			h.own = endAlone(h, now, renew.MaxLease)
			h.own.Until = now.Add(d)
		}
	}
	if h.own != nil {
		t.Env.Clock.Add(&h.own.Lease, false)
	}
	if want.AtLeast > 0 {
		t.stays.atLeast(now.Add(want.AtLeast))
	}
	if t.Env.Server.Calm.Over() {
		h.life.CutLocked(request.ErrClosed)
	}
}

// removeLocked ends h with err, and its context; with nil h only leaves t. It does
// so under the lock, which is safe because that runs no code of users.
func (t *nest) removeLocked(h *Hold, err error) {
	if h.prev == nil {
		t.holds = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.prev, h.next = nil, nil
	if h.watchdog {
		t.watched--
		if h.lease == t.keep && h.lease != t.Length && t.state == termLive {
			least := t.Length
			if !t.Watch {
				least = 0
			}
			if t.keepLess(least, t.holds); t.watched > 0 {
				t.watchLocked()
			}
		}
	}
	if h.own != nil {
		t.Env.Clock.Remove(&h.own.Lease)
	}
	h.life.EndLocked(err)
}

// Begin notes that somebody may work under holds that are some of several.
func Begin(holds ...*Hold) {
	for _, h := range holds {
		h.t.mu.Lock()
		h.forming = false
		h.t.mu.Unlock()
	}
}

// Dropped notes a hold that its user lost.
func (h *Hold) Dropped() { h.t.Env.Dropped.Add(h.GiveUp) }

// GiveUp reports and releases a hold that was dropped.
func (h *Hold) GiveUp() {
	h.t.mu.Lock()
	over := h.life.Why != nil
	var observer holdctx.Observer
	if !over {
		observer = h.life.ObserverLocked()
	}
	h.t.mu.Unlock()
	if over { // lost: nobody says that its section has stopped
		if h.scope != nil {
			h.scope.released(h.t.Lock)
		}
		return
	}
	h.t.Env.Events.Dropped(h.t.Lock.Name(), h.at)
	holdctx.Tell(observer, holdctx.EndDropped, nil)
	h.t.Env.Server.Go(func() { _ = h.Release(context.Background()) })
}

// Err looks at the clock itself.
func (h *Hold) Err() error {
	h.lock(time.Now())
	defer h.t.mu.Unlock()
	return h.life.Why
}

// lock locks the term. If a window is over, the hold has ended as lost.
func (h *Hold) lock(now time.Time) {
	t := h.t
	t.mu.Lock()
	if h.life.Why != nil || (t.Lease.Left(now) > 0 && h.own.over(now) == "") {
		return
	}
	t.mu.Unlock()
	if t.Lease.Left(now) <= 0 {
		t.Lose(holdctx.Expired)
	} else if h.own != nil { // nil: the term has been renewed since the first look
		if after := h.own.expire(now); after != nil {
			after()
		}
	}
	t.mu.Lock()
}

// Value implements holdctx.Held: it answers which hold of a lock a context
// descends from, and looks after the lock if it is in doubt.
func (h *Hold) Value(key any) any {
	asked := false
	switch k := key.(type) {
	case nearest:
		asked = k.l.Entry == h.t.Lock.Entry
	case member:
		asked = h.Of(k.l)
	case overlap:
		asked = k.with(h)
	case *holdctx.Owners:
		owned(h, k)
	case holdctx.Doubt:
		live := h.t.Live()
		if live {
			h.t.Env.Clock.Check(&h.t.Lease)
		}
		return live
	}
	if !asked {
		return nil
	}
	return h
}

// End returns the context that the hold's end ends.
func (h *Hold) End() context.Context {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.life.ContextLocked()
}

// The context keys of the nearest hold of a lock, or of both sides of a read-write
// lock; member is that of one client's, where locks of several have one name. They
// are pointers, so that to ask for a hold allocates nothing.
type (
	nearest struct{ l *Lock }
	member  struct{ l *Lock }
)

// Release ends the hold, and the term if it was the last one.
func (h *Hold) Release(ctx context.Context) error {
	t, now := h.t, time.Now()
	if h.scope != nil {
		defer h.scope.released(t.Lock)
	}
	h.lock(now)
	live := h.life.Why == nil
	_, why := h.life.ReleaseLocked()
	switch {
	case !live:
		after := h.stoppedLocked()
		t.mu.Unlock()
		after()
		return why
	case h.life.Detached:
		t.mu.Unlock()
		return t.releaseApart(ctx)
	}
	t.removeLocked(h, why)
	left, passable, observer := t.dropLocked(h.Reads), t.passableLocked(now), h.life.ObserverLocked()
	t.mu.Unlock()
	h.closed()
	var err error
	switch left {
	case nobody:
		err = t.Finish(ctx, h, now, passable)
	case readers:
		err = t.Env.Server.Finish(ctx, t.Length, func() error { return found(h, now, t.downgrade()) })
	case others:
	}
	if observer != nil {
		observer.Released(holdctx.EndOfRelease(err), now, err)
	}
	return err
}

// found returns what came of the release of a hold that ended then. If that has
// found a loss, of which nobody has heard before, it tells of it: the caller may
// have left. With nil there was no hold.
func found(h *Hold, ended time.Time, err error) error {
	if h != nil && errors.Is(err, holdctx.ErrLost) {
		h.lost(err, ended)
	}
	return err
}

// extend asks the server to raise the lease. It waits for that until then, if that
// is not zero, or until stop is closed.
func (t *Term) extend(ctx context.Context, stop <-chan struct{}, until time.Time, d time.Duration) error {
	t.mu.Lock()
	t.alone = t.alone || d > t.Length // if this process dies, the next holder's lock must not last so long
	t.mu.Unlock()
	call := t.raising(wire.Millis(d), unchanged)
	call.Stop, call.Until = stop, until
	return t.prolong(ctx, &call, d)
}

// Observe has o told of the hold's end, at once if it has ended already.
func (h *Hold) Observe(o holdctx.Observer) {
	h.t.mu.Lock()
	err := h.life.ObserveLocked(o)
	h.t.mu.Unlock()
	if err != nil {
		holdctx.Tell(o, holdctx.EndOf(err), err)
	}
}

// Acquired returns how the hold was acquired: without a request, from another
// goroutine of this process, or inside of another hold of the same owner; and the
// hold count that Redis shows.
func (h *Hold) Acquired() (passed, reentered bool, count int) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.passed, h.parent != nil || h.joined != nil, countLocked(h)
}

// countLocked returns the hold count that Redis shows for a hold: reads inside of
// a write are counted apart. Holding t.mu.
func countLocked(h *Hold) int {
	if h.Reads {
		return 1
	}
	return h.t.count - h.t.reads
}

// Name returns the name of the lock.
func (h *Hold) Name() string { return h.t.Lock.Name() }

// Token returns the fencing token; 0 if the hold has none.
func (h *Hold) Token() int64 { return h.token }

// Expires returns until when the hold can be trusted: the zero Time if it is over.
func (h *Hold) Expires() time.Time {
	t := h.t
	h.lock(time.Now())
	defer t.mu.Unlock()
	if h.life.Why != nil {
		return time.Time{}
	}
	return h.own.within(t.Lease.End())
}

// ID returns the owner field that Redis shows, by which others know the hold.
func (h *Hold) ID() string { return h.t.ID }

// Kept says whether the watchdog keeps the hold.
func (h *Hold) Kept() bool { return h.watchdog }

// Extend raises the lease of a live hold that has one.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	err := h.Unenterable()
	if err == nil {
		err = h.ExtendUntil(ctx, time.Time{}, d)
	}
	switch {
	case !errors.Is(err, holdctx.ErrDetached): // before, or meanwhile
		return err
	case h.t.Env.Server.Left():
		return request.ErrClosed
	}
	return h.t.Lock.ExtendAs(ctx, h.t.ID, d)
}

// ExtendUntil is Extend, and waits for the server until then, if that is not zero.
func (h *Hold) ExtendUntil(ctx context.Context, until time.Time, d time.Duration) error {
	sent := time.Now()
	if err := h.t.extend(ctx, h.t.Env.Server.Quit, until, d); err != nil {
		return err
	}
	if own := h.own; own != nil && own.Left(time.Now()) > 0 {
		own.Confirm(sent, d)
	}
	return h.Err()
}

// SetNote says what a live hold is for, from now on. Nobody is told of it: those
// who want to know it ask.
func (h *Hold) SetNote(text string) error {
	h.lock(time.Now())
	defer h.t.mu.Unlock()
	err := h.life.MineLocked()
	if err == nil {
		h.note = &text
	}
	return err
}

// Client returns what the hold's lock has in common with all of its client.
func (h *Hold) Client() *Env { return h.t.Env }

// Of says whether it is a hold of this lock, or of the other side of it.
func (h *Hold) Of(l *Lock) bool { return h.t.Lock.Entry == l.Entry && h.t.Env == l.Env }
