package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// refuses fails the test unless what is wrong with a history is just what is
// wanted; "": nothing is.
func refuses(t *testing.T, h *history, want string) {
	t.Helper()
	if got := strings.Join(h.wrong, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("the checker says %q, want something with %q", got, want)
	}
}

// Who is asked to let go has done so before it answers, and nobody else is told
// that it was taken from it.
func TestTheCheckerRefusesAForcedReleaseThatItsHolderDoesNotHearOf(t *testing.T) {
	const s = time.Second
	one := func(to time.Duration, detached bool) *claim {
		return &claim{resource: "a", id: "x", weight: 1, process: 1, nest: 1, from: s, to: to, detached: detached, footing: &footing{longest: 9 * s}}
	}
	asked := []summons{{1, "x", 2 * s}}
	taken := func(owner string) []*loss {
		return []*loss{{what: forced, resource: "a", owners: map[string]bool{owner: true}, from: 2 * s, to: 3 * s}}
	}
	for _, test := range []struct {
		name    string
		claim   *claim
		summons []summons
		told    bool
		losses  []*loss
		want    string // nothing: that is right
	}{
		{"it lets go at once", one(2*s, false), asked, false, nil, ""},
		{"it goes on", one(2*s+10*time.Millisecond, false), asked, false, nil, "is taken from it, and has it until"},
		{"another one is asked", one(9*s, false), []summons{{2, "x", 2 * s}, {1, "y", 2 * s}}, false, nil, ""},
		{"it was detached, and cannot be told", one(9*s, true), asked, false, nil, ""},
		{"it is told, and it was taken from it", one(2*s, false), nil, true, taken("x"), ""},
		{"it is told, and it was taken from somebody else", one(2*s, false), nil, true, taken("y"), "and nobody did that"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), capacity: 1, claims: []*claim{test.claim}, summons: test.summons, losses: test.losses}
			if test.told {
				h.revoked = []ending{{test.claim, 2 * s}}
			}
			h.check()
			refuses(t, h, test.want)
		})
	}
}

// Where nothing is lost, a holder is told before its lock is taken from it.
func TestTheCheckerRefusesAHolderThatIsNotAsked(t *testing.T) {
	lost := func(reason redlatch.LossReason) error { return &redlatch.LostError{Reason: reason} }
	for _, test := range []struct {
		name string
		took time.Duration
		was  bool
		err  error
		told error
		want string // nothing: that is right
	}{
		{"it is told", time.Millisecond, true, nil, lost(redlatch.LostRevoked), ""},
		{"it is not told", time.Millisecond, true, nil, nil, "which is not told so before"},
		{"it is told otherwise", time.Millisecond, true, nil, lost(redlatch.LostGone), "which is not told so before"},
		{"it is told too late", toLetGo, true, nil, lost(redlatch.LostRevoked), "and that takes"},
		{"nobody had it", time.Millisecond, false, nil, lost(redlatch.LostRevoked), "cannot be taken"},
		{"it fails", time.Millisecond, true, errors.New("no"), lost(redlatch.LostRevoked), "cannot be taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now()}
			h.takenAway(1, "a", test.took, test.was, test.err, test.told)
			refuses(t, h, test.want)
		})
	}
}

// A process that has shut down has released what its late requests may have taken.
func TestTheCheckerRefusesOrphans(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name    string
		how     string // a claim of it has ended; "": there was none
		release *release
		losses  []*loss
		want    string // nothing: that is right
	}{
		{"it was released at the end", "", &release{10*s - patience, true}, nil, ""},
		{"it was released once more at the end", released, &release{10*s - patience, true}, nil, ""},
		{"it was released when the client began to close", released, &release{10*s - closeTimeout, true}, nil, ""},
		{"it was released before that", released, &release{10*s - closeTimeout - 1, true}, nil, "has not tried to release since"},
		{"no release has come to the server", "", &release{10*s - patience, false}, nil, "has executed no release"},
		{"it was never released", "", nil, nil, "has executed no release"},
		{"its lease ends it", "expired", nil, nil, ""},
		{"the server goes on with what it had", "", nil, []*loss{{what: "older", from: 9 * s, to: 9 * s}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{history: history{start: time.Now(), losses: test.losses}, releases: map[string]*release{}}
			if test.release != nil {
				w.releases["x"] = test.release
			}
			if test.how != "" {
				w.claims = []*claim{{id: "x", how: test.how}}
			}
			w.checkOrphans(1, []string{"x"}, 10*s)
			refuses(t, &w.history, test.want)
		})
	}
}

// A process that passes an object on leaves each other process its turn, in time.
func TestTheCheckerRefusesATurnThatComesTooLate(t *testing.T) {
	const section = 10 * time.Millisecond
	most := turnWithin(2, section)
	if want := 3*(section+longestPause) + time.Second; most != want {
		t.Errorf("two processes wait for %v at most, want %v", most, want)
	}
	for _, test := range []struct {
		name   string
		waited time.Duration
		err    error
		want   string // nothing: that is right
	}{
		{"in time", most, nil, ""},
		{"too late", most + 1, nil, "has waited"},
		{"never", time.Millisecond, errors.New("busy"), "busy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now()}
			h.turn(1, 2, "a", test.waited, most, test.err)
			refuses(t, h, test.want)
		})
	}
}

// Where nothing goes wrong, nobody loses what it holds.
func TestTheCheckerRefusesALossInTheCalm(t *testing.T) {
	for ended, want := range map[error]string{nil: "", &redlatch.LostError{Reason: redlatch.LostExpired}: "loses a"} {
		h := &history{start: time.Now()}
		h.outlasts(1, "a", ended)
		refuses(t, h, want)
	}
}

// Leavers give up when somebody releases, and their calls have to end then.
func TestLeaversGiveUpAtOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		goes time.Duration // on, when it has given up
		want string        // nothing: that is right
	}{
		{"at once", 0, ""},
		{"too late", slack + time.Millisecond, "longer than it wants to"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &process{life: t.Context(), links: []*link{newLink(nil, nil, weather{}, nil)}, outage: time.Hour}
				w := &world{history: history{start: time.Now()}}
				ctx, done := p.leavers.join(t.Context())
				defer done()
				_, others := p.leavers.join(t.Context())
				others()
				time.AfterFunc(time.Second, p.leavers.leave)
				_ = w.waits(ctx, p, "a", -1, func() error {
					<-ctx.Done()
					time.Sleep(test.goes)
					return context.Cause(ctx)
				})
				if w.now() != time.Second+test.goes {
					t.Errorf("it gives up after %v", w.now())
				}
				refuses(t, &w.history, test.want)
			})
		})
	}
}
