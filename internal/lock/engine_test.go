package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// The engine on a server in memory, in a time of its own. What the scripts do is
// tested in tests/, with servers.

const (
	self     = "0f8fad5b-d9cb-869f-a165-70867728950e"
	watchdog = 30 * time.Second
)

// world runs f with the locks of a client of a puppet, which is closed then and
// has to have let go of everything.
func world(t *testing.T, f func(t *testing.T, c *Locks, p *puppet.Puppet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := puppet.New()
		s, err := request.New(request.Options{Driver: p, Outage: 10 * time.Second, Length: watchdog, Classic: true, RenewFailed: func(int, error) {}, Public: func(fact error) error { return fact }})
		if err != nil {
			t.Fatal(err)
		}
		var dropped holdctx.Dropped
		clock := renew.NewClock(s.Go, dropped.GiveUp)
		s.Answered = clock.Answered
		c := New(term.Options{
			Server: s, Clock: clock, Unseen: &handoff.UnseenPauses{Server: s}, Dropped: &dropped, Twins: &nameclash.Names{},
			ID: self, Watchdog: watchdog, SlowWait: time.Second, HandOff: true,
			Agreed: term.Agreed{Codec: "StringCodec"},
			Events: term.Events{
				Lost: func(claim.Loss) {}, ReleaseFailed: func(_, owner string, err error) { t.Errorf("%s: %v", owner, err) },
				SlowWait: func(string, time.Duration, callsite.Site, callsite.Site) {}, Requeued: func(string, string, time.Duration) {},
				Dropped: func(string, callsite.Site) {}, Refused: func(string) {}, Inquire: func(string, string) {}, First: func() {},
			},
		})
		defer func() {
			if !t.Failed() {
				ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
				defer end()
				if err := c.AwaitReleases(ctx); err != nil {
					t.Errorf("a place is left behind: %v", err)
				}
			}
			s.Leave()
			c.Drain(time.Second)
			for _, h := range clock.Close() {
				t.Errorf("%v is left to be renewed", h)
			}
			c.Close()
			s.Orphans.Close()
			s.End(time.Second)
		}()
		f(t, c, p)
	})
}

var specs = map[string]func(c *Locks) Spec{
	"plain": func(c *Locks) Spec { return c.Plain("x") },
	"spin":  func(c *Locks) Spec { return c.Spin("x", func(int) time.Duration { return time.Millisecond }) },
	"fair":  func(c *Locks) Spec { return c.Fair("x") },
	"read":  func(c *Locks) Spec { return c.Read("x") },
	"write": func(c *Locks) Spec { return c.Write("x") },
	"group": func(c *Locks) Spec { return c.Group("x", []string{"a"}) },
}

// each runs f with a lock of each kind, in a world of its own.
func each(t *testing.T, f func(t *testing.T, lock *Spec, p *puppet.Puppet)) {
	t.Helper()
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
				lock := spec(c)
				f(t, &lock, p)
			})
		})
	}
}

func acquire(ctx context.Context, t *testing.T, lock *Spec, want term.Params) *term.Hold {
	t.Helper()
	h, err := lock.Enter(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// enter is acquire for goroutines other than the test's: on failure it says so,
// and returns nil, which release skips.
func enter(ctx context.Context, t *testing.T, lock *Spec, want term.Params) *term.Hold {
	t.Helper()
	h, err := lock.Enter(ctx, want)
	if err != nil {
		t.Error(err)
		return nil
	}
	return h
}

func release(t *testing.T, holds ...*term.Hold) {
	t.Helper()
	for _, h := range holds {
		if h == nil { // enter has failed
			continue
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func under(h *term.Hold) context.Context { return holdctx.New(h.End(), h, nil) }

func TestANestIsOneOwnerAndItsLastReleaseFreesTheLock(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		h := acquire(t.Context(), t, lock, term.Params{})
		inner := acquire(under(h), t, lock, term.Params{})
		if _, reentered, _ := inner.Acquired(); !reentered || inner.ID() != h.ID() {
			t.Errorf("%s nests as %s in %s", lock.Name(), inner.ID(), h.ID())
		}
		release(t, inner)
		if got := p.Owners("x"); len(got) != 1 || got[0] != h.ID() || h.Err() != nil {
			t.Errorf("after the inner release %v have the lock: %v", got, h.Err())
		}
		release(t, h)
		if got := p.Owners("x"); len(got) != 0 {
			t.Errorf("after the last release %v have the lock", got)
		}
		if err := h.Release(t.Context()); !errors.Is(err, holdctx.ErrReleased) || !errors.Is(context.Cause(h.End()), holdctx.ErrReleased) {
			t.Errorf("a second release: %v", err)
		}
	})
}

// However callers ask, no two of them have the lock at a time, unless both read;
// those do read together.
func TestCallersOfOneProcessTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		var inside, most, had atomic.Int32
		var wg sync.WaitGroup
		for i := range 24 {
			want := []term.Params{{}, {}, {Until: time.Now().Add(time.Hour)}, {Member: true}}[i%4]
			each := *lock
			if i%3 == 2 { // not passed on as it is
				each.Want(term.Wish{Lease: time.Minute, HasLease: true}, nil)
			}
			wg.Go(func() {
				h := enter(t.Context(), t, &each, want)
				if h == nil {
					return
				}
				n := inside.Add(1)
				for at := most.Load(); n > at; at = most.Load() {
					most.CompareAndSwap(at, n)
				}
				time.Sleep(20 * time.Millisecond)
				inside.Add(-1)
				had.Add(1)
				release(t, h)
			})
		}
		wg.Wait()
		if had.Load() != 24 || lock.Exclusive() != (most.Load() == 1) {
			t.Errorf("%d had the lock, %d at a time", had.Load(), most.Load())
		}
	})
}

func TestWhoCannotHaveTheLockIsToldWhoHasIt(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		p.Give("x", puppet.Stranger)
		start := time.Now()
		var busy fact.Busy
		if _, err := lock.Enter(t.Context(), term.Params{Try: true}); !errors.As(err, &busy) || busy.Owner != puppet.Stranger || time.Since(start) > time.Second {
			t.Errorf("a try after %v: %v, %+v", time.Since(start), err, busy)
		}
		start = time.Now()
		if _, err := lock.Enter(t.Context(), term.Params{Until: start.Add(5 * time.Second)}); !errors.As(err, &busy) || busy.Owner != puppet.Stranger {
			t.Errorf("a wait: %v, %+v", err, busy)
		}
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("a wait of 5 s took %v", took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errors.New("enough")) })
		if _, err := lock.Enter(ctx, term.Params{}); !errors.As(err, &busy) || !errors.Is(err, context.Canceled) || busy.Owner != puppet.Stranger {
			t.Errorf("the end of a context: %v, %+v", err, busy)
		}
		time.AfterFunc(7*time.Second, func() { p.Give("x") })
		release(t, acquire(t.Context(), t, lock, term.Params{}))
	})
}

// The contexts of a nest end by the clock, with the reason as their cause, and the
// lock is free when its holders have said that they have stopped.
func TestALossEndsTheWholeNestInTime(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		h := acquire(t.Context(), t, lock, term.Params{})
		inner := acquire(under(h), t, lock, term.Params{})
		lost := make(chan time.Time, 1)
		context.AfterFunc(h.End(), func() { lost <- time.Now() })
		time.Sleep(2 * watchdog) // renewed meanwhile
		if h.Err() != nil || !h.Expires().After(time.Now()) {
			t.Fatal(h.Err())
		}
		p.Silence(true)
		silent := time.Now()
		if took := (<-lost).Sub(silent); took <= 0 || took > watchdog {
			t.Errorf("lost after %v", took)
		}
		for _, h := range []*term.Hold{inner, h} {
			if !errors.Is(context.Cause(h.End()), holdctx.ErrLost) || !errors.Is(h.Err(), holdctx.ErrLost) || !h.Expires().IsZero() {
				t.Errorf("%v, %v", context.Cause(h.End()), h.Err())
			}
			if err := h.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
				t.Errorf("the release of a lost hold: %v", err)
			}
		}
		synctest.Wait()
		p.Silence(false)
		if got := p.Owners("x"); len(got) != 0 {
			t.Errorf("%v have the lock although all its holders have stopped", got)
		}
		release(t, acquire(t.Context(), t, lock, term.Params{}))
	})
}

// A stranger has the lock although a hold of it lives, as after a loss of data.
// The next renewal is told so, which ends the hold, and no request of it takes the
// lock from the stranger.
func TestAHoldEndsWhenAStrangerHasTheLock(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		h := acquire(t.Context(), t, lock, term.Params{})
		lost := make(chan time.Time, 1)
		context.AfterFunc(h.End(), func() { lost <- time.Now() })
		time.Sleep(watchdog) // renewed meanwhile
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		p.Give("x", puppet.Stranger)
		given := time.Now()
		select {
		case at := <-lost:
			if took := at.Sub(given); took > watchdog/2 {
				t.Errorf("the hold ended after %v: not by the next renewal", took)
			}
		case <-time.After(5 * time.Minute):
			t.Fatal("the hold goes on although a stranger has the lock")
		}
		if !errors.Is(context.Cause(h.End()), holdctx.ErrLost) || !errors.Is(h.Err(), holdctx.ErrLost) || !strings.Contains(h.Err().Error(), string(holdctx.Gone)) {
			t.Errorf("%v, %v", context.Cause(h.End()), h.Err())
		}
		if err := h.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("the release of a lost hold: %v", err)
		}
		time.Sleep(5 * time.Minute) // until late requests of the id are over, too
		if got := p.Owners("x"); len(got) != 1 || got[0] != puppet.Stranger {
			t.Errorf("%v have the lock that a stranger has", got)
		}
		p.Give("x")
		release(t, acquire(t.Context(), t, lock, term.Params{}))
	})
}

// Its caller does not wait for the answer, so that nothing but an event tells of
// it.
func TestALossIsToldThatAReleaseFindsAfterItsContext(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		told := make(chan claim.Loss, 2)
		lock.Client().Events.Lost = func(loss claim.Loss) { told <- loss }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h := acquire(t.Context(), t, lock, term.Params{})
		released := time.Now()
		if err := h.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the release: %v", err)
		}
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("told of a loss of what was released: %v", (<-told).Err)
		}

		h = acquire(t.Context(), t, lock, term.Params{})
		p.Give("x", puppet.Stranger)
		if err := h.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the release of a lost hold: %v", err)
		}
		synctest.Wait()
		if len(told) != 1 {
			t.Fatalf("told %d times of a loss", len(told))
		}
		if loss := <-told; loss.Owner != h.ID() || !errors.Is(loss.Err, holdctx.ErrLost) || !loss.At.Equal(released) {
			t.Errorf("told of %s at %v: %v; want %s at %v", loss.Owner, loss.At, loss.Err, h.ID(), released)
		}
		p.Give("x")
	})
}

func TestARevokedHoldEndsAtOnceAndTheNextCallerGetsTheLock(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		h := acquire(t.Context(), t, lock, term.Params{})
		c := lock.Client()
		if has, _ := c.Has("x", h.ID()); !has || c.Revoke("x", puppet.Stranger) || !c.Revoke("x", h.ID()) {
			t.Error("the client does not know its hold")
		}
		if !errors.Is(h.Err(), holdctx.ErrLost) || h.End().Err() == nil {
			t.Errorf("a revoked hold: %v", h.Err())
		}
		next := acquire(t.Context(), t, lock, term.Params{})
		if next.ID() == h.ID() {
			t.Error("the next caller has the id of the revoked hold")
		}
		release(t, next)
	})
}

func TestCallersOfAScopeAreOneOwner(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		ctx := term.WithOwner(t.Context())
		var wg sync.WaitGroup
		holds := make([]*term.Hold, 3)
		for i := range holds {
			wg.Go(func() { holds[i] = enter(ctx, t, lock, term.Params{}) })
		}
		wg.Wait()
		if t.Failed() {
			release(t, holds...)
			return
		}
		other := acquireLater(t, lock)
		if got := p.Owners("x"); lock.Exclusive() && (len(got) != 1 || got[0] != holds[0].ID()) {
			t.Errorf("%v have the lock", got)
		}
		for _, h := range holds {
			if h.ID() != holds[0].ID() {
				t.Errorf("owners %s and %s in one scope", h.ID(), holds[0].ID())
			}
		}
		release(t, holds...)
		release(t, <-other)
	})
}

// acquireLater waits for a lock beside the caller.
func acquireLater(t *testing.T, lock *Spec) <-chan *term.Hold {
	t.Helper()
	had := make(chan *term.Hold, 1)
	go func() {
		h, err := lock.Enter(t.Context(), term.Params{})
		if err != nil {
			t.Error(err)
		}
		had <- h
	}()
	synctest.Wait()
	return had
}

// A writer goes on to read, readers join it, and a writer of this process gets its
// turn although readers keep coming.
func TestReadersLetAWriterThrough(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		write, read := c.Write("x"), c.Read("x")
		w := acquire(t.Context(), t, &write, term.Params{})
		r := acquire(under(w), t, &read, term.Params{})
		release(t, w)
		synctest.Wait()
		joined := acquire(t.Context(), t, &read, term.Params{})
		if joined.ID() != r.ID() {
			t.Errorf("a reader is %s beside %s", joined.ID(), r.ID())
		}
		if _, err := write.Enter(under(joined), term.Params{}); !errors.Is(err, term.ErrReentry) {
			t.Errorf("to write within a read: %v", err)
		}
		next := acquireLater(t, &write)
		release(t, r, joined)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for i := range 4 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				for {
					select {
					case <-stop:
						return
					default:
					}
					h := enter(t.Context(), t, &read, term.Params{})
					if h == nil {
						return
					}
					time.Sleep(12 * time.Millisecond)
					release(t, h)
				}
			})
		}
		select {
		case h := <-next:
			release(t, h)
		case <-time.After(time.Minute):
			t.Error("readers keep a writer of their process out")
		}
		close(stop)
		wg.Wait()
	})
}

func TestClaimsTellWhoHoldsAndWhoWaits(t *testing.T) {
	each(t, func(t *testing.T, lock *Spec, p *puppet.Puppet) {
		if !lock.Exclusive() {
			p.Give("x", puppet.Stranger)
		}
		var h *term.Hold
		if lock.Exclusive() {
			h = acquire(t.Context(), t, lock, term.Params{})
			if err := h.SetNote("works"); err != nil {
				t.Error(err)
			}
		}
		next := acquireLater(t, lock)
		holds, waits := 0, 0
		lock.Client().Claims(func(x claim.Claim, _ context.Context) bool {
			if x.Waits {
				waits++
			} else if holds++; x.Owner != h.ID() || x.Note != "works" {
				t.Errorf("%+v", x)
			}
			return true
		})
		if want := map[bool]int{true: 1}[lock.Exclusive()]; holds != want || waits != 1 {
			t.Errorf("%d holds and %d waits are told of", holds, waits)
		}
		if h != nil {
			release(t, h)
		} else {
			p.Give("x")
		}
		release(t, <-next)
	})
}

func TestJointLocksAreTakenAllOrNone(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		x, y := c.Plain("x"), c.Plain("y")
		locks := Joint(t.Context(), []*Spec{&x, &y})
		if len(locks) != 2 {
			t.Fatal("two plain locks of one client cannot be joined")
		}
		holds, _, err := Together(t.Context(), locks, &term.Params{Member: true})
		if err != nil || len(holds) != 2 || len(p.Owners("x")) != 1 || len(p.Owners("y")) != 1 {
			t.Fatalf("%d holds: %v", len(holds), err)
		}
		term.Begin(holds...)
		release(t, holds...)
		p.Give("y", puppet.Stranger)
		holds, missing, err := Together(t.Context(), locks, &term.Params{Member: true})
		var busy fact.Busy
		if len(holds) != 0 || missing != &y || !errors.As(err, &busy) || busy.Owner != puppet.Stranger || len(p.Owners("x")) != 0 {
			t.Errorf("%d holds, %v is missing: %v", len(holds), missing, err)
		}
	})
}

// A lock that is to stay is nobody's, and who would wait less long is told so at
// once.
func TestALockStaysForItsTime(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		lock := c.Plain("x")
		lock.Want(term.Wish{AtLeast: time.Minute}, nil)
		release(t, acquire(t.Context(), t, &lock, term.Params{}))
		if got := p.Owners("x"); len(got) != 1 || !wire.Kept(got[0]) {
			t.Fatalf("%v have a lock that is to stay", got)
		}
		start := time.Now()
		var busy fact.Busy
		if _, err := lock.Enter(t.Context(), term.Params{Until: start.Add(10 * time.Second)}); !errors.As(err, &busy) || busy.After <= 0 || time.Since(start) > time.Second {
			t.Errorf("after %v: %v, %+v", time.Since(start), err, busy)
		}
		p.Give("x")
	})
}

// The term ends here, and whoever has the id ends the hold.
func TestADetachedHoldIsReleasedByItsID(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, p *puppet.Puppet) {
		lock := c.Plain("x")
		h := acquire(t.Context(), t, &lock, term.Params{})
		if err := lock.ReleaseOwner(t.Context(), h.ID()); err == nil {
			t.Error("a hold of this client was released by its id")
		}
		if err := h.Detach(); err != nil {
			t.Fatal(err)
		}
		if has, detached := c.Has("x", h.ID()); has || !detached {
			t.Errorf("after Detach: has %v, detached %v", has, detached)
		}
		if err := lock.ExtendOwner(t.Context(), h.ID(), time.Minute); err != nil {
			t.Error(err)
		}
		if err := lock.ReleaseOwner(t.Context(), h.ID()); err != nil || len(p.Owners("x")) != 0 {
			t.Errorf("%v; %v have the lock", err, p.Owners("x"))
		}
		release(t, acquire(t.Context(), t, &lock, term.Params{}))
	})
}

func TestCallersOfAQueueAreLetInOneByOne(t *testing.T) {
	world(t, func(t *testing.T, c *Locks, _ *puppet.Puppet) {
		lock := c.Plain("x")
		queue := c.Queue("x and y", &lock.Lock, func() error { return nil })
		first, waited, err := queue.Enter(t.Context(), &term.Params{})
		if err != nil || waited {
			t.Fatal(waited, err)
		}
		h := acquire(t.Context(), t, &lock, term.Params{})
		first.Show(h)
		var busy fact.Busy
		if _, _, err := queue.Enter(t.Context(), &term.Params{Until: time.Now().Add(time.Second)}); !errors.As(err, &busy) || busy.Owner != h.ID() {
			t.Errorf("behind a holder: %v, %+v", err, busy)
		}
		in := make(chan struct{})
		go func() {
			defer close(in)
			second, waited, err := queue.Enter(t.Context(), &term.Params{})
			if err != nil || !waited {
				t.Error(waited, err)
				return
			}
			second.Leave()
		}()
		synctest.Wait()
		select {
		case <-in:
			t.Error("two callers are in")
		default:
		}
		first.Leave()
		<-in
		release(t, h)
	})
}
