package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/sim/linear"
)

// What is known of a call decides what its model refuses: what was told nothing
// must excuse no more than it may have done.
func TestTheOrderOfCallsIsRefused(t *testing.T) {
	const s = time.Second
	late := errors.New("nobody has answered")
	busy := &redlatch.BusyError{}
	broken := func(reason barrier.BreakReason) error { return &barrier.BrokenError{Reason: reason} }
	by := func(process int, what string, from, to time.Duration, n int, err error) *call {
		return &call{process: process, what: what, resource: "a", from: from, to: to, n: n, err: err}
	}
	for _, test := range []struct {
		typ, name string
		calls     []*call
		want      string // nothing: that is right
	}{
		{"semaphore", "three of three", []*call{by(1, linear.Acquire, 0, s, 2, nil), by(2, linear.Acquire, 0, s, 1, nil)}, ""},
		{"semaphore", "four of three", []*call{by(1, linear.Acquire, 0, s, 2, nil), by(2, linear.Refuse, 0, s, 2, nil)}, "acquires 2"},
		{
			"semaphore", "refused, and all are free",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(1, linear.Release, 2*s, 3*s, 2, nil), by(2, linear.Refuse, 4*s, 5*s, 1, busy)},
			"is refused 1",
		},
		{
			"semaphore", "refused, and others wait",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(1, linear.Release, 2*s, 3*s, 2, nil), by(1, linear.Acquire, 4*s, 5*s, 1, nil), by(2, linear.Refuse, 4*s, 5*s, 1, busy)},
			"",
		},
		{
			"semaphore", "refused, and others go first",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(1, linear.Release, 2*s, 3*s, 2, nil), by(2, linear.Refuse, 4*s, 5*s, 1, &redlatch.BusyError{Owed: 1})},
			"",
		},
		{
			"semaphore", "it gave up, and may have taken it",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(2, linear.Refuse, s, 2*s, 1, &redlatch.BusyError{Cause: context.Canceled}), by(1, linear.Look, 3*s, 4*s, 0, nil)},
			"",
		},
		{
			"semaphore", "it is given back to those who wait in the process",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(1, linear.Acquire, 2*s, 9*s, 3, nil), by(1, linear.Release, 2*s, 3*s, 2, nil), by(2, linear.Look, 4*s, 5*s, 1, nil)},
			"",
		},
		{
			"semaphore", "it is given back, and others wait in another process",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(3, linear.Acquire, 2*s, 9*s, 3, nil), by(1, linear.Release, 2*s, 3*s, 2, nil), by(2, linear.Look, 4*s, 5*s, 1, nil)},
			"finds free 1",
		},
		{
			"semaphore", "a look that failed says nothing",
			[]*call{by(1, linear.Acquire, 0, s, 2, nil), by(1, linear.Look, 2*s, 3*s, 0, late)},
			"",
		},
		{"semaphore", "a permit is added", []*call{by(1, linear.Acquire, 0, s, 3, nil), by(2, linear.Add, s, 2*s, 1, nil), by(1, linear.Acquire, s, 3*s, 1, nil)}, ""},
		{"semaphore", "a permit is perhaps added", []*call{by(1, linear.Acquire, 0, s, 3, nil), by(2, linear.Add, s, 2*s, 1, late), by(1, linear.Acquire, s, 3*s, 1, nil)}, ""},
		{"semaphore", "a permit is perhaps added, and two are had", []*call{by(1, linear.Acquire, 0, s, 3, nil), by(2, linear.Add, s, 2*s, 1, late), by(1, linear.Acquire, s, 3*s, 2, nil)}, "acquires 2"},
		{
			"semaphore", "a permit is taken away, and passed on in the process",
			[]*call{by(1, linear.Acquire, 0, s, 3, nil), by(2, linear.Add, s+1, 2*s, -1, nil), by(1, linear.Release, 3*s, 4*s, 1, nil), by(1, linear.Acquire, 3*s, 4*s, 1, nil)},
			"",
		},
		{
			"semaphore", "a permit is taken away, and had in another process",
			[]*call{by(1, linear.Acquire, 0, s, 3, nil), by(2, linear.Add, s+1, 2*s, -1, nil), by(1, linear.Release, 3*s, 4*s, 1, nil), by(2, linear.Acquire, 3*s, 4*s, 1, nil)},
			"acquires 1",
		},
		{"latch", "it is set, and nobody has set it", []*call{by(1, linear.Set, 0, s, 3, errSet)}, "finds it is set"},
		{"latch", "a count-down without an answer", []*call{by(1, linear.Set, 0, s, 1, nil), by(1, linear.Down, s, 2*s, 0, late), by(2, linear.GoesOn, 3*s, 4*s, 0, nil)}, ""},
		{"latch", "none", []*call{by(1, linear.Set, 0, s, 1, nil), by(2, linear.GoesOn, 3*s, 4*s, 0, nil)}, "goes on"},
		{"latch", "a wait that gave up", []*call{by(1, linear.Set, 0, s, 1, nil), by(2, linear.GoesOn, 3*s, 4*s, 0, late)}, ""},
		{"barrier", "all have met", []*call{by(1, linear.Met, 0, s, 2, nil), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s-1, s, 0, nil)}, ""},
		{"barrier", "two have met", []*call{by(1, linear.Met, 0, s, 2, nil), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s+1, 2*s, 0, nil)}, "2 of 3 are there"},
		{"barrier", "the third is told nothing", []*call{by(1, linear.Met, 0, s/4, 2, late), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s-1, s, 0, nil)}, ""},
		{"barrier", "the third has been told nothing, and left long ago", []*call{by(1, linear.Met, 0, s/4, 2, late), by(2, linear.Met, 99*s, 101*s, 1, nil), by(3, linear.Met, 100*s, 101*s, 0, nil)}, "comes when 1 are missing"},
		{"barrier", "the third has forgotten", []*call{by(1, linear.Met, 0, s/4, 2, broken(barrier.BrokenGone)), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s-1, s, 0, nil)}, ""},
		{"barrier", "the third is told that they are not to go on", []*call{by(1, linear.Met, 0, s/4, 2, broken(barrier.BrokenLeft)), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s-1, s, 0, nil)}, "is told that the barrier is broken"},
		{"barrier", "two were the last", []*call{by(1, linear.Met, 0, s, 2, nil), by(2, linear.Met, s/2, s, 0, nil), by(3, linear.Met, s-1, s, 0, nil)}, "1 of 3 are there"},
		{"barrier", "it is reset", []*call{by(1, linear.Met, 0, s, 0, broken(barrier.BrokenReset)), by(2, linear.Reset, s/2, s, 0, nil)}, ""},
		{"barrier", "it is reset, and may be late", []*call{by(1, linear.Met, 2*s, 3*s, 0, broken(barrier.BrokenReset)), by(2, linear.Reset, s/2, s, 0, late)}, ""},
		{"barrier", "it was reset long ago", []*call{by(1, linear.Met, 100*s, 101*s, 0, broken(barrier.BrokenReset)), by(2, linear.Reset, s/2, s, 0, late)}, "was reset"},
		{"barrier", "it was reset before", []*call{by(1, linear.Met, 2*s, 3*s, 0, broken(barrier.BrokenReset)), by(2, linear.Reset, s/2, s, 0, nil)}, "was reset"},
		{"barrier", "it is broken, and all are there", []*call{by(1, linear.Met, 0, 5*s, 0, broken(barrier.BrokenLeft))}, "is told that the barrier is broken"},
		{"barrier", "it never ends", []*call{by(1, linear.Met, 0, -1, 2, nil), by(2, linear.Met, s/2, s, 1, nil), by(3, linear.Met, s-1, s, 0, nil)}, ""},
	} {
		t.Run(test.typ+", "+test.name, func(t *testing.T) {
			w := &world{Plan: Plan{Type: test.typ}, kind: kindOf(test.typ), history: history{start: time.Now()}, calls: calls{all: test.calls}}
			w.checkOrders()
			got := strings.Join(w.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}

// A server may take a process for dead that it has not heard for its watchdog's
// time. A request that comes a second time is no news.
func TestABarrierBreaksWhenAProcessIsNotHeard(t *testing.T) {
	const s = time.Second
	arrives := func(at time.Duration, id string) heard {
		return heard{at, news{script: "barrier.arrive", args: []string{"g", id, "c", "3", "2000", "x"}}}
	}
	polls := func(at time.Duration) heard {
		return heard{at, news{script: "barrier.poll", args: []string{"g", "c", "2000", "x"}}}
	}
	for _, test := range []struct {
		name  string
		heard []heard
		mute  bool
	}{
		{"it is heard", []heard{arrives(s, "a"), polls(2 * s), polls(3 * s), polls(4 * s)}, false},
		{"it is not heard", []heard{arrives(s, "a"), polls(3 * s), polls(4 * s)}, true},
		{"it is not heard any more", []heard{arrives(s, "a"), polls(2 * s)}, true},
		{"it comes twice", []heard{arrives(s, "a"), arrives(2*s, "a"), polls(3 * s), polls(4 * s)}, true},
		{"another one of it comes", []heard{arrives(s, "a"), arrives(2*s, "b"), polls(3 * s), polls(4 * s)}, false},
		{"it is heard too late", []heard{arrives(s, "a"), polls(2 * s), polls(9 * s)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := &calls{lives: map[life][]sign{}, arrived: map[string]bool{}}
			for _, h := range test.heard {
				h.keys, h.reply = wire.BarrierKeys("a", ""), driver.Reply{List: []driver.Reply{{Str: "waits"}}}
				all.atBarrier(1, h.news, h.at)
			}
			if got := all.mute(&call{process: 1, resource: "a", from: s, to: 5 * s}); got != test.mute {
				t.Errorf("it may be taken for dead: %t", got)
			}
			if all.mute(&call{process: 2, resource: "a", from: s, to: 5 * s}) {
				t.Error("so may one that has not come")
			}
		})
	}
}

// A heard is a request that a barrier's server has executed then.
type heard struct {
	at time.Duration
	news
}

// A loss of data excuses a hold in the order as it does in the sweep, and takes
// the tokens with it.
func TestTheOrderOfHoldsIsRefused(t *testing.T) {
	const s = time.Second
	one := func(process, site int, token int64, from, to time.Duration) *claim {
		return &claim{
			resource: "a", id: "x", weight: 1, process: process, nest: process, site: site, token: token, call: from, from: from, to: to,
			footing: &footing{asked: from, longest: 2 * s},
		}
	}
	for _, test := range []struct {
		name   string
		claims []*claim
		losses []*loss
		want   string
	}{
		{"one after the other", []*claim{one(1, 0, 7, 0, s), one(2, 0, 8, s, 2*s)}, nil, ""},
		{"two at a time", []*claim{one(1, 0, 7, 0, 3*s), one(2, 0, 8, s, 2*s)}, nil, "what a has told"},
		{"at two sites", []*claim{one(1, 0, 7, 0, 3*s), one(2, 1, 8, s, 2*s)}, nil, ""},
		{"two at another site", []*claim{one(1, 1, 7, 0, 3*s), one(2, 1, 8, s, 2*s)}, nil, "what a at site 1 has told"},
		{"tokens repeat", []*claim{one(1, 0, 7, 0, s), one(2, 0, 7, s, 2*s)}, nil, "with the token 7"},
		{"a loss", []*claim{one(1, 0, 7, 0, 4*s), one(2, 0, 7, 3*s, 5*s)}, []*loss{{what: "wipe", from: 2 * s, to: 2 * s}}, ""},
		{"a loss, and it is told too late", []*claim{one(1, 0, 7, 0, 5*s), one(2, 0, 8, 3*s, 5*s)}, []*loss{{what: "wipe", from: 2 * s, to: 2 * s}}, "what a has told"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{Plan: Plan{Type: "fenced"}, history: history{start: time.Now(), capacity: 1, claims: test.claims, losses: test.losses}}
			w.checkOrders()
			got := strings.Join(w.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}
