package term

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Reenter adds a hold to a live term. If it is to nest in outer the caller
// has the turn for that, and loses it on failure. It fails with ErrNotNested if
// outer, or every hold of the scope, has ended.
//
// It asks the server once, whether the lock still stands. Whatever becomes of
// that request, it cannot make an owner, and a number that it leaves is corrected.
func (t *Term) Reenter(ctx context.Context, outer *Hold, l *Lock, want *Params) (*Hold, error) {
	h := &Hold{nesting: nesting{t: t, open: 1}}
	count, err := t.reserve(h, outer, l, want)
	if err != nil {
		if outer != nil {
			outer.Siblings().Exit()
		}
		return nil, err
	}
	call := t.raising(wire.Millis(want.Lease), count)
	if h.Reads {
		call = t.Op(lua.ReadWriteReadReenter, []string{t.ID, wire.Millis(want.Lease)})
		t.mu.Lock()
		call.Keys = t.keysLocked()
		t.mu.Unlock()
	}
	call.Stop, call.Until, call.Since, call.Acks, call.Refusals = t.Env.Server.Done, want.Until, want.Since, t.Env.Server.Acks.Holds, want.Asks
	err = t.prolong(ctx, &call, want.Lease)
	if err != nil {
		t.mu.Lock()
		t.alone = t.alone || want.Lease > t.Length // Redis may keep the lock for longer than the next holder should
		t.mu.Unlock()
		t.GiveBack(h.Reads)
		t.Env.Server.Go(func() {
			_, _ = call.Outcome() // what is in flight must not overtake what corrects it
			t.shown(count)
		})
		h.closed()
		return nil, err
	}
	t.shown(count)
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != termLive {
		return nil, t.err
	}
	if h.Reads {
		t.proves = true
		h.own = want.endAlone(h, now, t.Lease.Left(now))
	}
	t.addLocked(ctx, h, want, now)
	t.watchLocked()
	return h, nil
}

// prolong runs a request that raises the lease of a live term to d, and believes
// the answer only in time.
func (t *Term) prolong(ctx context.Context, call *request.Call, d time.Duration) error {
	t.mu.Lock()
	t.longest = max(t.longest, d)
	t.mu.Unlock()
	switch is, err := call.Extend(ctx); {
	case err != nil:
		return err
	case !is:
		t.Lose(holdctx.Gone)
	case t.Lease.Left(time.Now()) <= 0:
		t.Lose(holdctx.Expired) // a late reply never revives a hold
	default:
		t.Lease.Confirm(call.Sent, d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != termLive {
		return t.err
	}
	return nil
}

// reserve counts a hold that is about to be entered, so that neither the term
// nor its siblings' turn is given up meanwhile. It returns the count that the
// request is to show.
func (t *nest) reserve(h, outer *Hold, l *Lock, want *Params) (count string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := outer
	if outer == nil {
		turn = want.scope.turnInLocked(t)
	}
	switch {
	case t.state != termLive, t.count == 0, turn == nil, outer != nil && outer.life.Why != nil:
		return "", ErrNotNested
	case l.Kind.Stops && t.shared:
		return "", writeInRead(l.Name())
	case want.AtLeast > 0 && t.Lock.Kind.Keep == nil:
		return "", errNotKept // whatever type the caller takes it for
	case want.Fenced && t.token == 0:
		return "", fmt.Errorf("%w: the hold of lock %q that is to be re-entered has no fencing token; acquire that one with Fenced too", ErrReentry, l.Name())
	case outer == nil && l.Wish.NonReentrant:
		return "", hasItAlready(l)
	case outer == nil:
		h.joined = turn
	default:
		h.parent = outer
	}
	turn.open++
	t.alone = t.alone || want.Member
	t.count++
	if l.Kind.Shared {
		h.Reads, t.alone = true, true // what Redis stores of the read hold lasts until the id ends
		t.reads++
		return unchanged, nil
	}
	t.nested = true
	return t.showLocked(t.count - t.reads), nil
}

// holdCount is what a term knows of the hold count that Redis shows: of an
// exclusive lock its holds, of a read-write lock those that write. Nobody decides
// by that number, so nothing waits for it: requests that set it may overtake each
// other, and when all have ended one more follows, if the number has changed
// meanwhile. It is guarded by Term.mu.
type holdCount struct {
	nested  bool // it was ever more than one: renewals carry it
	updates int  // requests in flight that carry it
	wrong   bool // Redis may show another number when they have ended
}

// unchanged tells a script to leave the count as it is.
const unchanged = "0"

// showLocked returns n for a request that shows it, or unchanged. After
// the request the caller calls shown. A reader counts once, whatever happens.
func (count *holdCount) showLocked(n int) string {
	if !count.nested || n == 0 {
		count.wrong = count.nested // on its way to the next holder
		return unchanged
	}
	count.updates++
	return strconv.Itoa(n)
}

// shown notes that a request that carried count has ended, however. If that is not
// the number any more, the clock sends another when no such request is in flight.
func (t *nest) shown(count string) {
	if count == unchanged {
		return
	}
	t.mu.Lock()
	t.updates--
	t.wrong = t.wrong || count != strconv.Itoa(t.count-t.reads)
	t.correctLocked()
	t.mu.Unlock()
}

// correctLocked has the clock ask about the lock, and show the count with that, if
// Redis may show another one.
func (t *nest) correctLocked() {
	if t.wrong && t.updates == 0 {
		t.wrong = false
		t.Env.Clock.Check(&t.Lease)
	}
}

// downgrade has Redis let others read beside a term that only reads from now on.
// It is sent until it is answered, or the term is over: it may be refused.
//
// A read-write lock only moves forward: none, write, write and read, read, none.
// Counts of both sides that a late request sets could remove a read hold that
// somebody trusts. So a re-entry to read makes the field of the reader, and only a
// release, a yield or a transfer removes it. Only this request ends the writing,
// and a renewal changes neither.
func (t *Term) downgrade() error {
	call := t.Op(lua.ReadWriteDowngrade, []string{t.ID, t.Lock.Channel})
	call.Keys = []string{t.Lock.Key, wire.ReadTimeout(t.Lock.Key, t.ID, 1)}
	reply, err := call.Run(context.Background())
	gone := err == nil && reply.Int != 1 && t.Lose(holdctx.Gone)
	t.mu.Lock()
	t.proves = t.proves || err == nil
	live, over := t.state == termLive, t.err
	t.mu.Unlock()
	switch {
	case gone:
		return over
	case !live && errors.Is(over, holdctx.ErrNotHeld):
		return nil // released by the last reader
	case !live && errors.Is(over, holdctx.ErrLost):
		return err // the readers have lost it since: that is no loss of the writer's
	case !live:
		return over
	case err != nil:
		t.Env.Events.ReleaseFailed(t.Lock.Name(), t.ID, err)
		if driver.Failure(err).Permanent() {
			break // that is an answer
		}
		t.Env.Server.Go(func() {
			if _, over := request.Pause(context.Background(), t.Env.Server.Quit, nil, time.Time{}, time.Second); over == nil && t.Live() {
				_ = t.downgrade()
			}
		})
	}
	return err
}
