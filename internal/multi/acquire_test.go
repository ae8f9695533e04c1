package multi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/request"
)

func TestMembersAreTakenInOrderAndReleasedInReverse(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, l *log) {
		m := all(t, members("x", cs...)...)
		g := acquire(t.Context(), t, m)
		o := make(listener, 10)
		g.Observe(o)
		if got, want := l.take(), "lock.take A[x], lock.take B[x], lock.take C[x]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		had(t, g, "x", 3, cs...)
		if g.Name() != "all" || g.ID() != "" || g.Token() != 0 || !g.Kept() || g.Err() != nil || !g.Expires().After(time.Now()) {
			t.Errorf("the hold is %q, kept %v, over %v, until %v", g.Name(), g.Kept(), g.Err(), g.Expires())
		}
		if ids := holdctx.OwnersAbove(under(g)); len(ids) != 3 {
			t.Errorf("a context of it descends from %v", ids)
		}
		time.Sleep(2 * watchdog) // renewed meanwhile
		end := g.End()
		l.take()
		release(t, g)
		free(t, "x", cs...)
		if got := l.take(); strings.Index(got, " C[") > strings.Index(got, " B[") || strings.Index(got, " B[") > strings.Index(got, " A[") || strings.Count(got, "[x]") != 3 {
			t.Errorf("released by %s", got)
		}
		if err := g.Release(t.Context()); !errors.Is(err, holdctx.ErrReleased) || !errors.Is(context.Cause(end), holdctx.ErrReleased) || !g.Expires().IsZero() {
			t.Errorf("a second release: %v; the context ended for %v", err, context.Cause(end))
		}
		o.want(t, holdctx.EndReleased)
	})
}

func TestMembersOfOneClientAreTakenWithOneRequest(t *testing.T) {
	world(t, 1, func(t *testing.T, cs []*client, l *log) {
		c := cs[0]
		m := all(t, members("x", c)[0], members("y", c)[0], members("z", c)[0])
		g := acquire(t.Context(), t, m)
		if got, want := l.take(), "multilock.take A[x y z]"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		inner := acquire(under(g), t, m) // a nest asks nobody
		if got := l.take(); got != "" {
			t.Errorf("a nested hold sends %s", got)
		}
		release(t, inner)
		if len(c.Owners("y")) != 1 || g.Err() != nil {
			t.Errorf("the inner release ends the outer hold: %v", g.Err())
		}
		release(t, g)
		free(t, "x", c)

		// One is taken: the caller waits for it with nothing in hand, then takes the rest.
		c.Give("y", puppet.Stranger)
		l.take()
		time.AfterFunc(time.Minute, func() { c.Give("y") })
		time.AfterFunc(time.Minute-time.Second, func() {
			if len(c.Owners("x"))+len(c.Owners("z")) != 0 {
				t.Error("a caller keeps from others what it cannot use")
			}
		})
		g = acquire(t.Context(), t, m)
		if got, want := l.take(), "multilock.take A[x z]"; !strings.HasSuffix(got, want) {
			t.Errorf("sent %s, want %s in the end", got, want)
		}
		release(t, g)
		free(t, "y", c)
	})
}

func TestABusyMemberGivesBackTheOthers(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, l *log) {
		m := all(t, members("x", cs...)...)
		cs[2].Give("x", puppet.Stranger)
		start := time.Now()
		_, err := m.Acquire(t.Context(), term.Params{Try: true})
		busyWith(t, err, "x")
		if took := time.Since(start); took > time.Second {
			t.Errorf("a try took %v", took)
		}
		free(t, "x", cs[:2]...)

		start = time.Now()
		_, err = m.Acquire(t.Context(), term.Params{Until: start.Add(5 * time.Second)})
		busyWith(t, err, "x")
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("a wait of 5 s took %v", took)
		}
		free(t, "x", cs[:2]...)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = m.Acquire(ctx, term.Params{})
		if busyWith(t, err, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of a context: %v", err)
		}
		free(t, "x", cs[:2]...)
	})
}

// The first round has two members and gives them back after half a second. The
// next one begins with the missing one: meanwhile others can have the rest.
func TestTheMissingMemberIsWaitedForFirst(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, l *log) {
		cs[2].Give("x", puppet.Stranger)
		time.AfterFunc(100*time.Millisecond, func() { had := len(cs[0].Owners("x")) + len(cs[1].Owners("x")); want(t, had, 2) })
		time.AfterFunc(memberPatience+longestRest+100*time.Millisecond, func() {
			free := len(cs[0].Owners("x")) + len(cs[1].Owners("x"))
			want(t, free, 0)
			l.take()
		})
		time.AfterFunc(time.Minute, func() { cs[2].Give("x") })
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		if got, want := l.take(), "lock.take C[x], lock.take A[x], lock.take B[x]"; !strings.HasSuffix(got, want) {
			t.Errorf("sent %s, want %s in the end", got, want)
		}
		release(t, g)
		free(t, "x", cs...)
	})
}

func want(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%d of the others are held, want %d", got, want)
	}
}

// Two callers of two processes that want the same in opposite orders both get it.
func TestOppositeOrdersDoNotWaitForEver(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		one, two := all(t, members("x", cs[0], cs[1])...), all(t, members("x", cs[1], cs[0])...)
		done := make(chan error, 2)
		for _, m := range []*Spec{one, two} {
			go func() {
				for range 10 {
					g, err := m.Acquire(t.Context(), term.Params{Until: time.Now().Add(time.Hour)})
					if err == nil {
						time.Sleep(10 * time.Millisecond)
						err = g.Release(t.Context())
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 2 {
			if err := got(t, done); err != nil {
				t.Error(err)
			}
		}
		free(t, "x", cs...)
	})
}

func TestTheLossOfAMemberEndsAll(t *testing.T) {
	world(t, 3, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		o := make(listener, 10)
		g.Observe(o)
		lost := make(chan time.Time, 1)
		context.AfterFunc(g.End(), func() { lost <- time.Now() })
		cs[1].Give("x", puppet.Stranger)
		given := time.Now()
		if took := got(t, lost).Sub(given); took > watchdog {
			t.Errorf("the hold ended after %v", took)
		}
		if !errors.Is(g.Err(), holdctx.ErrLost) || !errors.Is(context.Cause(g.End()), holdctx.ErrLost) {
			t.Errorf("%v, %v", g.Err(), context.Cause(g.End()))
		}
		if err := g.SetNote("late"); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("a note for a lost hold: %v", err)
		}
		if err := g.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("the release of a lost hold: %v", err)
		}
		free(t, "x", cs[0], cs[2])
		if got := cs[1].Owners("x"); len(got) != 1 || got[0] != puppet.Stranger {
			t.Errorf("%v have what a stranger has", got)
		}
		o.want(t, holdctx.EndLost)
	})
}

func TestTheReleaseOfAMemberEndsAll(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		end := g.End()
		if err := g.Holds()[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !errors.Is(g.Err(), holdctx.ErrReleased) || end.Err() == nil {
			t.Errorf("%v, %v", g.Err(), end.Err())
		}
		_ = g.Release(t.Context())
		free(t, "x", cs...)
	})
}

func TestAClosedClientEndsTheWaitForAMemberOfAnother(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		cs[0].Give("x", puppet.Stranger)
		m := all(t, members("x", cs...)...)
		start := time.Now()
		time.AfterFunc(time.Minute, cs[1].leave)
		if _, err := m.Acquire(t.Context(), term.Params{Until: start.Add(time.Hour)}); !errors.Is(err, request.ErrClosed) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("the wait ends with %v", err)
		}
		if took := time.Since(start); took > time.Minute+time.Second {
			t.Errorf("the wait ended after %v", took)
		}
		if _, err := m.Acquire(t.Context(), term.Params{}); !errors.Is(err, request.ErrClosed) {
			t.Errorf("a call after that: %v", err)
		}
		cs[0].Give("x")
	})
}

// A client that shuts down ends the context of the whole, which can still be
// released, or lost.
func TestAShutdownEndsTheContextOnly(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		o := make(listener, 10)
		g.Observe(o)
		end := g.End()
		for _, h := range cs[0].clock.Holders() {
			h.(interface{ EndContext() }).EndContext()
		}
		synctest.Wait()
		if end.Err() == nil || g.Err() != nil {
			t.Errorf("the context: %v; the hold: %v", end.Err(), g.Err())
		}
		o.want(t)
		release(t, g)
		o.want(t, holdctx.EndReleased)
		free(t, "x", cs...)
	})
}

// The members are to end together: what was acquired long before the others is
// extended.
func TestSlowMembersDoNotShortenTheLease(t *testing.T) {
	world(t, 5, func(t *testing.T, cs []*client, _ *log) {
		const lease = 2 * time.Second
		for _, c := range cs[1:] {
			c.slow(150 * time.Millisecond)
		}
		m := all(t, leased(lease, members("x", cs...))...)
		g := acquire(t.Context(), t, m)
		if left := time.Until(g.Expires()); g.Kept() || left < lease/2 || left > lease {
			t.Errorf("the hold lasts for %v, kept: %v", left, g.Kept())
		}
		if left := time.Until(g.Holds()[0].Expires()); left < lease*3/4 {
			t.Errorf("the first member lasts for %v", left)
		}
		if err := g.Extend(t.Context(), time.Minute); err != nil || time.Until(g.Expires()) < 50*time.Second {
			t.Errorf("extended until %v: %v", time.Until(g.Expires()), err)
		}
		cs[2].Give("x", puppet.Stranger)
		if err := g.Extend(t.Context(), time.Minute); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("extended although a stranger has a member: %v", err)
		}
		_ = g.Release(t.Context())
		time.Sleep(time.Second)
		free(t, "x", cs[0], cs[1], cs[3], cs[4])
	})
}

func TestANoteIsEveryMembers(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		if err := g.SetNote("nightly"); err != nil {
			t.Fatal(err)
		}
		noted(t, g, "nightly", cs...)
		release(t, g)
	})
}

// noted fails the test unless the members at these clients have the note.
func noted(t *testing.T, g *Hold, note string, cs ...*client) {
	t.Helper()
	var got []string
	for _, c := range cs {
		for _, h := range g.Holds() {
			if claim, has := c.Held(h.Name(), h.ID()); has {
				got = append(got, claim.Note)
			}
		}
	}
	if !slices.Equal(got, slices.Repeat([]string{note}, len(cs))) {
		t.Errorf("the notes are %q, want %q for each of %d", got, note, len(cs))
	}
}

func TestADroppedHoldIsReleased(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		g := acquire(t.Context(), t, all(t, members("x", cs...)...))
		o := make(listener, 10)
		g.Observe(o)
		g.Dropped()
		cs[1].dropped.GiveUp()
		cs[0].dropped.GiveUp() // once is enough
		free(t, "x", cs...)
		o.want(t, holdctx.EndDropped)
	})
}

func TestOneLockIsNoTwoMembers(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		x := members("x", cs[0])[0]
		if _, err := All("all", []*lock.Spec{x, members("x", cs[0])[0]}); !errors.Is(err, invalid.Err) {
			t.Errorf("a lock given twice: %v", err)
		}
		if _, err := Majority("red", []*lock.Spec{x, members("y", cs[0])[0]}); !errors.Is(err, invalid.Err) {
			t.Errorf("two members of one client: %v", err)
		}
		other := connect(t, 7, cs[0].server) // of the same server
		defer other.leave()
		twice := members("x", cs[0], other)
		if _, err := all(t, twice...).Acquire(t.Context(), term.Params{}); !errors.Is(err, term.ErrReentry) {
			t.Errorf("one lock of two clients: %v", err)
		}
		cs[1].Give("x", puppet.Stranger) // else that one and one of the two are a majority
		if _, err := majority(t, append(twice, members("x", cs[1])...)...).Acquire(t.Context(), term.Params{}); !errors.Is(err, term.ErrReentry) {
			t.Errorf("one lock of two clients in a majority: %v", err)
		}
	})
}

func TestEachNamesTheMembersThatFail(t *testing.T) {
	world(t, 2, func(t *testing.T, cs []*client, _ *log) {
		bad := errors.New("bad")
		err := all(t, members("x", cs[0])[0], members("y", cs[1])[0]).Each(func(i int) error {
			if i == 1 {
				return bad
			}
			return nil
		})
		if !errors.Is(err, bad) || !strings.Contains(err.Error(), `"y"`) || strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%v", err)
		}
	})
}
