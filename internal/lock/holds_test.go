package lock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/puppet"
)

// leased returns the lock as somebody wants it who gives a lease.
func leased(lock *Spec, lease time.Duration) *Spec {
	other := *lock
	other.Want(term.Wish{Lease: lease, HasLease: true}, nil)
	return &other
}

// An ear notes how a hold has ended, and whether its holder did it.
type ear struct{ told []string }

func (e *ear) Released(how holdctx.End, _ time.Time, _ error) {
	e.told = append(e.told, "released: "+string(how))
}

func (e *ear) Ended(how holdctx.End, _ time.Time, _ error) {
	e.told = append(e.told, "ended: "+string(how))
}

// A lease that is extended lasts from then on, and ends when it is over.
func TestALeaseLastsAsLongAsItIsExtended(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		h := acquire(t.Context(), t, leased(lock, 5*time.Second), term.Params{})
		if h.Kept() {
			t.Error("the watchdog keeps a hold that has a lease")
		}
		time.Sleep(3 * time.Second)
		if err := h.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if left := time.Until(h.Expires()); h.Err() != nil || left <= 0 || left > 2*time.Second {
			t.Errorf("8 s after an extension by 10 it has %v left: %v", left, h.Err())
		}
		time.Sleep(2 * time.Second)
		if err := h.Extend(t.Context(), time.Minute); !errors.Is(err, holdctx.ErrLost) || !h.Expires().IsZero() {
			t.Errorf("the extension of what is over: %v", err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("the release of what is over: %v", err)
		}
	})
}

// A hold that may last for so long at most ends by itself within one that goes on.
func TestAHoldWithABoundEndsAloneWithinAnother(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		outer := acquire(t.Context(), t, lock, term.Params{})
		bounded := *lock
		bounded.Want(term.Wish{MaxHold: 2 * time.Second}, nil)
		inner := acquire(under(outer), t, &bounded, term.Params{})
		time.Sleep(3 * time.Second)
		if !errors.Is(inner.Err(), holdctx.ErrLost) || inner.End().Err() == nil || outer.Err() != nil {
			t.Errorf("after the time of the inner hold: %v, and the outer one: %v", inner.Err(), outer.Err())
		}
		time.Sleep(watchdog)
		if got := p.Owners("x"); !slices.Equal(got, []string{outer.ID()}) || outer.Err() != nil {
			t.Errorf("%v have the lock of %s: %v", got, outer.ID(), outer.Err())
		}
		if err := inner.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("the release of the inner hold: %v", err)
		}
		release(t, outer)
		synctest.Wait()
		if got := p.Owners("x"); len(got) > 0 {
			t.Errorf("%v still have the lock", got)
		}
	})
}

// Whoever observes a hold is told once how it has ended, also if that has come
// before.
func TestTheEndOfAHoldIsToldOnce(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		c := lock.Client()
		for _, test := range []struct {
			end  func(h *term.Hold)
			want string
		}{
			{func(h *term.Hold) { release(t, h) }, "released: released"},
			{func(h *term.Hold) { c.Revoke("x", h.ID()) }, "ended: lost"},
			{func(h *term.Hold) { h.GiveUp() }, "ended: dropped"},
		} {
			h := acquire(t.Context(), t, lock, term.Params{})
			before, late := &ear{}, &ear{}
			h.Observe(before)
			test.end(h)
			synctest.Wait()
			_ = h.Release(t.Context())
			h.Observe(late)
			if !slices.Equal(before.told, []string{test.want}) || len(late.told) != 1 {
				t.Errorf("told %q, want %q; and who comes late %q", before.told, test.want, late.told)
			}
		}
	})
}

// What a user does under a hold ends with it, and a loss that it has not noticed
// is an error of Do.
func TestDoTellsOfALossThatWasNotReturned(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		own := errors.New("of the user")
		h := acquire(t.Context(), t, lock, term.Params{})
		if err := Do(t.Context(), doing{h}, func(ctx context.Context) error { return own }); err != own { //nolint:errorlint // that very one
			t.Errorf("without a loss: %v", err)
		}
		for _, returned := range []bool{false, true} {
			h := acquire(t.Context(), t, lock, term.Params{})
			err := Do(t.Context(), doing{h}, func(ctx context.Context) error {
				lock.Client().Revoke("x", h.ID())
				<-ctx.Done()
				if returned {
					return errors.Join(own, context.Cause(ctx))
				}
				return own
			})
			joined, _ := err.(interface{ Unwrap() []error })
			if !errors.Is(err, own) || !errors.Is(err, holdctx.ErrLost) || len(joined.Unwrap()) != 2 {
				t.Errorf("with a loss that was returned, %v: %v", returned, err)
			}
		}
	})
}

// doing is a hold as Do wants it.
type doing struct{ *term.Hold }

func (d doing) With(context.Context) context.Context { return under(d.Hold) }

// What is held here is known by its owner id, and what is not is nobody's.
func TestAHoldIsKnownByItsOwner(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		c := lock.Client()
		h := acquire(t.Context(), t, lock, term.Params{})
		claim, held := c.Held("x", h.ID())
		if !held || claim.Owner != h.ID() || claim.Name != "x" || !claim.Renewed || claim.Count != 1 {
			t.Errorf("of a hold this is known: %+v, %v", claim, held)
		}
		if got := holdctx.OwnersAbove(under(h)); !slices.Equal(got, []string{h.ID()}) {
			t.Errorf("the context is that of %v", got)
		}
		if err := h.SetNote("a note"); err != nil {
			t.Error(err)
		}
		if claim, _ := c.Held("x", h.ID()); claim.Note != "a note" {
			t.Errorf("the note is %q", claim.Note)
		}
		if h.Name() != "x" || h.Token() != 0 || h.Client() != lock.Env || !h.Of(&lock.Lock) {
			t.Errorf("a hold of another lock: %s, token %d", h.Name(), h.Token())
		}
		release(t, h)
		for _, owner := range []string{h.ID(), puppet.Stranger} {
			if claim, held := c.Held("x", owner); held {
				t.Errorf("%s has a lock that nobody has: %+v", owner, claim)
			}
		}
		if err := h.SetNote("late"); !errors.Is(err, holdctx.ErrNotHeld) {
			t.Errorf("a note on what is released: %v", err)
		}
	})
}

// Locks exclude each other by what they want of a name.
func TestWhichLocksAreTheSame(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		plain, other, read, write := c.Plain("x"), c.Plain("y"), c.Read("x"), c.Write("x")
		ab, bc, cd := c.Group("x", []string{"a", "b"}), c.Group("x", []string{"b", "c"}), c.Group("x", []string{"c", "d"})
		for _, test := range []struct {
			a, b *Spec
			same bool
		}{{&plain, &plain, true}, {&plain, &other, false}, {&read, &write, true}, {&ab, &bc, true}, {&ab, &cd, false}, {&bc, &cd, true}, {&ab, &plain, true}} {
			if Same(test.a, test.b) != test.same || Same(test.b, test.a) != test.same {
				t.Errorf("%s and %s: want %v", test.a.Entry.Name, test.b.Entry.Name, test.same)
			}
		}
		if Compare(&plain, &other) >= 0 || Compare(&other, &plain) <= 0 || Compare(&read, &write) != 0 {
			t.Error("locks have no order")
		}
	})
}

// A reader that waits beside others is sent away when its time is over, and not
// before.
func TestAReaderWaitsForItsTime(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		p.Give("x", puppet.Stranger)
		read := c.Read("x")
		start := time.Now()
		ended := make(chan time.Duration, 3)
		for _, wait := range []time.Duration{3 * time.Second, 8 * time.Second} {
			go func() {
				_, err := read.Enter(t.Context(), term.Params{Until: start.Add(wait)})
				var busy fact.Busy
				if !errors.As(err, &busy) {
					t.Errorf("a reader that waits for %v: %v", wait, err)
				}
				ended <- time.Since(start) - wait
			}()
		}
		had := acquireLater(t, &read)
		for range 2 {
			if late := <-ended; late < 0 || late > time.Second {
				t.Errorf("a reader gives up %v after its time", late)
			}
		}
		p.Give("x")
		release(t, <-had)
	})
}

// A reader that only tried was refused by what a reader had heard that was just
// leaving, although the lock had been released since. Who is first, the worker or
// the reader that tries, is left to chance.
func TestAReaderIsNotRefusedByWhatOneHeardThatLeaves(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		read := c.Read("x")
		for range 300 {
			p.Give("x", puppet.Stranger)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				if _, err := read.Enter(ctx, term.Params{}); !errors.Is(err, context.Canceled) {
					t.Errorf("a reader that leaves: %v", err)
				}
			}()
			synctest.Wait()
			p.Give("x")
			leave()
			<-left
			release(t, acquire(t.Context(), t, &read, term.Params{Try: true}))
		}
	})
}

// A process that reads all the time asks whether others wait, and lets nobody in
// for as long as they do.
func TestReadersAskWhetherOthersWait(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		read := c.Read("x")
		first := acquire(t.Context(), t, &read, term.Params{})
		for range 20 {
			time.Sleep(10 * time.Millisecond)
			next := acquire(t.Context(), t, &read, term.Params{})
			if next.ID() != first.ID() {
				t.Fatalf("a reader is %s beside %s, although nobody else waits", next.ID(), first.ID())
			}
			release(t, first)
			first = next
		}
		p.Others(1)
		var late <-chan *term.Hold
		for range 20 { // with one of the next ones the question is sent
			time.Sleep(10 * time.Millisecond)
			if late = acquireLater(t, &read); len(late) == 0 {
				break
			}
			release(t, <-late)
		}
		time.Sleep(time.Second)
		if len(late) > 0 {
			t.Error("readers are let in, although another process waits")
		}
		release(t, first)
		p.Others(0)
		release(t, <-late)
	})
}
