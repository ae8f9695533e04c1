package multi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/request"
)

func TestAMajorityIsEnough(t *testing.T) {
	world(t, 5, func(t *testing.T, cs []*client, _ *log) {
		m := majority(t, members("x", cs...)...)
		g := acquire(t.Context(), t, m)
		had(t, g, "x", 5, cs...)
		release(t, g)
		free(t, "x", cs...)

		cs[1].Give("x", puppet.Stranger)
		cs[3].Give("x", puppet.Stranger)
		g = acquire(t.Context(), t, m)
		had(t, g, "x", 3, cs...)
		release(t, g)
		free(t, "x", cs[0], cs[2], cs[4])

		cs[4].Give("x", puppet.Stranger)
		start := time.Now()
		_, err := m.Acquire(t.Context(), term.Params{Try: true})
		busyWith(t, err, "x")
		_, err = m.Acquire(t.Context(), term.Params{Until: start.Add(5 * time.Second)})
		busyWith(t, err, "x")
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("a wait of 5 s took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = m.Acquire(ctx, term.Params{})
		if busyWith(t, err, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of a context: %v", err)
		}
		free(t, "x", cs[0], cs[2]) // what a failed round had is given back

		time.AfterFunc(time.Minute, func() { cs[4].Give("x") })
		g = acquire(t.Context(), t, m)
		had(t, g, "x", 3, cs...)
		release(t, g)
	})
}

// A caller does not wait for the slow one, which joins the hold when it answers,
// and has the note that was set before.
func TestASlowMemberJoinsLater(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		cs[2].slow(time.Second)
		m := majority(t, members("x", cs...)...)
		start := time.Now()
		g := acquire(t.Context(), t, m)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("a majority took %v", took)
		}
		if err := g.SetNote("early"); err != nil {
			t.Error(err)
		}
		if n := len(g.Holds()); n != 2 {
			t.Errorf("%d members are there at once", n)
		}
		time.Sleep(2 * time.Second)
		had(t, g, "x", 3, cs...)
		noted(t, g, "early", cs...)
		time.Sleep(2 * watchdog)
		if g.Err() != nil || len(g.Holds()) != 3 {
			t.Errorf("%d members, %v", len(g.Holds()), g.Err())
		}

		cs[2].slow(4 * time.Second)
		start = time.Now()
		release(t, g) // waits for no slow one either
		if took := time.Since(start); took > bound(m)+100*time.Millisecond {
			t.Errorf("the release took %v", took)
		}
		time.Sleep(time.Minute)
		free(t, "x", cs...)
	})
}

func bound(m *Spec) time.Duration { return (&acquisition{m: m}).bound() }

// A release while a member is still to answer: that member does not join what is
// over, and is given back whenever it answers.
func TestALateMemberOfWhatIsOverIsGivenBack(t *testing.T) {
	for _, late := range []time.Duration{200 * time.Millisecond, 3 * time.Second} { // within its time, and after that
		world(t, 3, func(t *testing.T, cs []*client, _ *log) {
			cs[2].slow(late)
			g := acquire(t.Context(), t, majority(t, members("x", cs...)...))
			release(t, g)
			if n := len(g.Holds()); n != 2 {
				t.Errorf("%d members", n)
			}
			time.Sleep(10 * time.Second)
			cs[2].slow(0)
			time.Sleep(5 * time.Minute) // until the late request is cleared up
			free(t, "x", cs...)
		})
	}
}

// Those that do not answer within a twentieth of the lease count as silent.
func TestASilentMajorityIsAnOutage(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		m := majority(t, members("x", cs...)...)
		cs[1].slow(4 * time.Second)
		cs[2].slow(4 * time.Second)
		start := time.Now()
		_, err := m.Acquire(t.Context(), term.Params{Try: true})
		if took := time.Since(start); !errors.Is(err, request.ErrUnavailable) || took < bound(m) || took > bound(m)+time.Second {
			t.Errorf("a try, after %v: %v", took, err)
		}
		start = time.Now()
		_, err = m.Acquire(t.Context(), term.Params{})
		if took := time.Since(start); !errors.Is(err, request.ErrUnavailable) || took < 8*time.Second || took > 20*time.Second {
			t.Errorf("a wait, after %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err = m.Acquire(ctx, term.Params{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of a context: %v", err)
		}
		free(t, "x", cs[0])

		cs[1].slow(0)
		g := acquire(t.Context(), t, m)
		had(t, g, "x", 2, cs...)
		release(t, g)
		cs[2].slow(0)
		time.Sleep(10 * time.Minute) // what was asked then is executed, and cleared up
		free(t, "x", cs...)
	})
}

// Two callers that have one member each, and both wait for a third one that is
// silent, give theirs back soon.
func TestWhoIsContestedDoesNotWaitForASilentMember(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		cs[1].Give("x", puppet.Stranger)
		cs[2].slow(time.Second)
		start := time.Now()
		_, err := majority(t, members("x", cs...)...).Acquire(t.Context(), term.Params{Try: true})
		busyWith(t, err, "x")
		if took := time.Since(start); took > 10*leastGrace {
			t.Errorf("it keeps its member for %v", took)
		}
		time.Sleep(time.Minute)
		free(t, "x", cs[0], cs[2])
	})
}

func TestAHoldLivesAsLongAsAMajorityDoes(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, majority(t, members("x", cs...)...))
		synctest.Wait()
		o := make(listener, 10)
		g.Observe(o)
		lost := make(chan time.Time, 1)
		context.AfterFunc(g.End(), func() { lost <- time.Now() })
		cs[0].Give("x", puppet.Stranger)
		time.Sleep(2 * watchdog)
		if err := g.Err(); err != nil || g.End().Err() != nil || !g.Expires().After(time.Now()) {
			t.Fatalf("one member of three is lost: %v", err)
		}
		if err := g.SetNote("two are left"); err != nil {
			t.Error(err)
		}
		o.want(t)
		cs[1].Give("x", puppet.Stranger)
		given := time.Now()
		if took := got(t, lost).Sub(given); took > watchdog {
			t.Errorf("the hold ended after %v", took)
		}
		if err := g.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("the release of a lost hold: %v", err)
		}
		o.want(t, holdctx.EndLost)
		free(t, "x", cs[2])
	})
}

// Callers of one process are one voter: they wait for each other in the order in
// which they came, and none of them asks a server meanwhile.
func TestCallersOfOneProcessTakeTurns(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, l *log) {
		m := majority(t, members("x", cs...)...)
		g := acquire(t.Context(), t, m)
		synctest.Wait()
		l.take()
		var busy fact.Busy
		if _, err := m.Acquire(t.Context(), term.Params{Try: true}); !errors.As(err, &busy) {
			t.Errorf("a try beside a hold of the process: %v", err)
		}
		inner := acquire(under(g), t, m) // but a nest does not wait for itself
		release(t, inner)
		var inside, turn atomic.Int32
		done := make(chan error)
		for i := range int32(3) {
			go func() {
				g, err := m.Acquire(t.Context(), term.Params{})
				if err == nil {
					if n := inside.Add(1); n != 1 || turn.Add(1) != i+1 {
						t.Errorf("%d callers have it at a time, or not in turn: %d", n, i)
					}
					time.Sleep(time.Second)
					inside.Add(-1)
					err = g.Release(t.Context())
				}
				done <- err
			}()
			synctest.Wait()
		}
		l.take()
		time.Sleep(10 * time.Second)
		if got := l.take(); strings.Contains(got, "take") {
			t.Errorf("those who wait for this process sent %s", got)
		}
		release(t, g)
		for range 3 {
			if err := got(t, done); err != nil {
				t.Error(err)
			}
		}
		free(t, "x", cs...)
	})
}

// The loss of a hold lets the next caller of the process in, before its holder has
// released it.
func TestALossLetsTheNextCallerIn(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		m := majority(t, members("x", cs...)...)
		g := acquire(t.Context(), t, m)
		synctest.Wait()
		next := make(chan *Hold)
		go func() {
			g, err := m.Acquire(t.Context(), term.Params{})
			if err != nil {
				t.Error(err)
			}
			next <- g
		}()
		time.Sleep(time.Second)
		for _, c := range cs {
			c.Give("x")
		}
		second := got(t, next)
		if !errors.Is(g.Err(), holdctx.ErrLost) {
			t.Errorf("two callers have it: %v", g.Err())
		}
		if second != nil {
			_ = g.Release(t.Context())
			had(t, second, "x", 3, cs...)
			release(t, second)
		}
		free(t, "x", cs...)
	})
}

func TestClosedClientsEndAMajority(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		m := majority(t, members("x", cs...)...)
		cs[0].leave() // it keeps the queue
		g := acquire(t.Context(), t, m)
		had(t, g, "x", 2, cs...)
		release(t, g)
		for _, c := range cs[1:] {
			c.Give("x", puppet.Stranger)
		}
		start := time.Now()
		time.AfterFunc(time.Minute, cs[1].leave)
		if _, err := m.Acquire(t.Context(), term.Params{Until: start.Add(time.Hour)}); !errors.Is(err, request.ErrClosed) {
			t.Errorf("the wait ends with %v", err)
		}
		if took := time.Since(start); took > time.Minute+2*time.Second {
			t.Errorf("the wait ended after %v", took)
		}
	})
}

func TestADroppedMajorityIsReleased(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		m := majority(t, members("x", cs...)...)
		cs[2].slow(time.Second)
		g := acquire(t.Context(), t, m)
		g.Dropped()
		cs[0].dropped.GiveUp()
		cs[2].slow(0)
		release(t, acquire(t.Context(), t, m)) // the process is let in
		time.Sleep(10 * time.Minute)
		free(t, "x", cs...)
	})
}
