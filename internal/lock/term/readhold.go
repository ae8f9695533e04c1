package term

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
)

// EnterShared makes a hold of the caller's place in a term that has readers.
// turn is the hold whose turn among its siblings the new one shares, in which it
// has been counted; nil if there is none. It fails with ErrRejoin if the term
// is over. passed says that nobody had to ask the server for the place.
func (t *Term) EnterShared(ctx context.Context, turn *Hold, want *Params, passed bool) (*Hold, error) {
	h := &Hold{Reads: true, origin: origin{passed: passed}, nesting: nesting{t: t, joined: turn, open: 1}}
	need := want.Lease / 2
	if want.HasLease {
		need = want.trust() - want.Lease/8
	}
	var err error
	if t.Lease.Left(time.Now()) < need { // it ends too soon for this reader
		err = t.extend(ctx, t.Env.Server.Done, want.Until, want.Lease)
	}
	if err != nil {
		t.GiveBack(true)
		h.closed()
		if !t.Live() {
			err = ErrRejoin
		}
		return nil, err
	}
	now := time.Now()
	left := t.Lease.Left(now)
	if left <= 0 {
		t.Lose(holdctx.Expired)
	}
	h.own = want.endAlone(h, now, left)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != termLive {
		return nil, ErrRejoin
	}
	t.addLocked(ctx, h, want, now)
	t.watchLocked()
	return h, nil
}

// trust returns for how long a hold with these Params is to be trusted.
func (want *Params) trust() time.Duration {
	if !want.HasLease {
		return renew.MaxLease
	}
	return want.Lease - renew.Margin(want.Lease)
}

// An ownEnd is an end that only one hold of its term has: of one that reads with a
// Lease, and so shares its term with others; and of one that the watchdog keeps
// for so long at most. Nobody is asked about it: its term is.
type ownEnd struct {
	renew.Lease
	h *Hold
}

// endAlone returns the end of a hold with these Params that reads in a term with
// so much left; nil if they have no Lease.
func (want *Params) endAlone(h *Hold, now time.Time, left time.Duration) *ownEnd {
	if !want.HasLease {
		return nil
	}
	return endAlone(h, now.Add(min(0, left-want.trust())), want.Lease)
}

// endAlone returns an end for h, as if a request that was sent then had been
// confirmed for so long.
func endAlone(h *Hold, sent time.Time, lease time.Duration) *ownEnd {
	own := &ownEnd{h: h}
	own.Holder = own
	own.Confirm(sent, lease)
	return own
}

// over returns how the hold's own time has ended; "" if it has not, or there is
// none.
func (own *ownEnd) over(now time.Time) holdctx.Reason {
	switch {
	case own == nil:
	case own.Left(now) <= 0:
		return holdctx.Lease
	case !own.Until.IsZero() && !now.Before(own.Until):
		return holdctx.MaxHold
	}
	return ""
}

// within returns when a hold ends whose term ends then.
func (own *ownEnd) within(end time.Time) time.Time {
	if own == nil {
		return end
	}
	if own := own.Trusted(); own.Before(end) {
		return own
	}
	return end
}

// Node implements renew.Holder.
func (own *ownEnd) Node() string { return "" }

// Expired implements renew.Holder.
func (own *ownEnd) Expired() {
	if after := own.expire(time.Now()); after != nil {
		own.h.t.Env.lossWork.Add(after)
	}
}

// Gone implements renew.Holder. It is never called.
func (own *ownEnd) Gone() {}

// expire ends a hold whose own time is over, and returns what has to happen then.
// It counts until its holder releases it, or the term ends.
func (own *ownEnd) expire(now time.Time) (after func()) {
	h, t := own.h, own.h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	reason := own.over(now)
	switch {
	case h.life.Why != nil:
		return nil
	case reason == "": // extended at the last moment
		t.Env.Clock.Add(&own.Lease, false)
		return nil
	case t.count == t.lapsedHolds+1:
		_, after = t.loseLocked(reason) // with its last hold
		return after
	}
	err := t.lostError(reason)
	t.removeLocked(h, err)
	h.lapsed = true
	t.lapsedHolds++
	t.watchLocked()
	return func() {
		h.lost(err, now)
	}
}

// stoppedLocked notes that the holder of a lapsed hold says that it has stopped,
// and returns what has to happen then.
func (h *Hold) stoppedLocked() (after func()) {
	t := h.t
	if !h.lapsed {
		return func() {}
	}
	h.lapsed = false
	t.lapsedHolds--
	switch {
	case t.state == termLive:
		left := t.dropLocked(h.Reads)
		return func() {
			h.closed()
			t.dropped(left)
		}
	case t.lapsedHolds == 0:
		return func() { t.Env.Server.Go(t.freeLapsed) }
	}
	return func() {}
}

// GiveBack gives up a place in a term that no hold was made of.
func (t *Term) GiveBack(reads bool) {
	t.mu.Lock()
	if t.state != termLive {
		t.mu.Unlock()
		return
	}
	left := t.dropLocked(reads)
	t.mu.Unlock()
	t.dropped(left)
}

// remains is what the end of a hold leaves of its term.
type remains uint8

const (
	others  remains = iota // holds
	readers                // holds that only read now: others may read, too
	nobody                 // it is to be finished
)

// dropLocked counts one hold less.
func (t *Term) dropLocked(reads bool) remains {
	t.count--
	if reads {
		t.reads--
	}
	if t.count == 0 {
		t.inside = false
		return nobody
	}
	t.watchLocked()
	switch {
	case t.count == t.reads && !t.shared:
		now := time.Now()
		t.shareLocked(now, t.Home.Pace(now))
		t.Home.Retain()
		t.Env.Server.Go(func() {
			t.Home.Readmit()
			t.Home.Put()
		})
		return readers
	case !reads:
		t.wrong = true
		t.correctLocked()
	}
	return others
}

// Drop gives up a live term that nobody has.
func (t *Term) Drop() { t.dropped(nobody) }

// dropped does what follows from dropLocked, for holds that nobody releases.
func (t *Term) dropped(left remains) {
	switch left {
	case others:
	case readers:
		t.Env.Server.Go(func() { _ = t.downgrade() })
	case nobody:
		t.Env.Server.Go(func() {
			t.mu.Lock()
			passable := t.passableLocked(time.Now())
			t.mu.Unlock()
			_ = t.Finish(context.Background(), nil, time.Time{}, passable)
		})
	}
}

// JoinNested nests a hold of l in one that reads, which is of the same owner: it
// costs nothing, and several may overlap. What writes cannot nest there.
func (h *Hold) JoinNested(ctx context.Context, l *Lock, want *Params) (*Hold, error) {
	if l.Kind.Stops {
		return nil, writeInRead(l.Name())
	}
	t, turn := h.t, h
	if h.joined != nil {
		turn = h.joined
	}
	t.mu.Lock()
	err := h.life.Why
	if err == nil {
		t.count++
		t.reads++
		turn.open++
	}
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return t.EnterShared(ctx, turn, want, false)
}
