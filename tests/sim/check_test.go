package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// A checker is only as good as what it refuses: each of these histories has one
// line that must not be there, or none.
func TestTheCheckerRefuses(t *testing.T) {
	const s = time.Second
	one := func(process int, id string, weight int, from, to time.Duration) *claim {
		return &claim{
			resource: "a", id: id, weight: weight, process: process, nest: process, call: from, from: from, to: to,
			footing: &footing{asked: from, longest: 2 * s},
		}
	}
	token := func(c *claim, n int64) *claim {
		c.token = n
		return c
	}
	bound := func(c *claim, most time.Duration) *claim {
		c.most = most
		return c
	}
	together := func(c *claim, values ...string) *claim {
		c.values = values
		return c
	}
	for _, test := range []struct {
		name     string
		capacity int
		claims   []*claim
		losses   []*loss
		want     string // nothing: that is right
	}{
		{"one after the other", 1, []*claim{one(1, "x", 1, 0, s), one(2, "y", 1, s, 2*s)}, nil, ""},
		{"two at a time", 1, []*claim{one(1, "x", 1, 0, s), one(2, "y", 1, s-1, 2*s)}, nil, "beside process 1"},
		{"two of one owner", 1, []*claim{one(1, "x", 1, 0, s), one(2, "x", 1, s-1, 2*s)}, nil, "beside process 1"},
		{"a nest", 1, []*claim{one(1, "x", 1, 0, 3*s), one(1, "x", 1, s, 2*s)}, nil, ""},
		{"readers", 10, []*claim{one(1, "x", 1, 0, s), one(2, "y", 1, 0, s)}, nil, ""},
		{"a writer beside a reader", 10, []*claim{one(1, "x", 1, 0, 2*s), one(2, "y", 10, s, 2*s)}, nil, "beside process 1"},
		{"as many permits as there are", 3, []*claim{one(1, "x", 2, 0, s), one(2, "y", 1, 0, s)}, nil, ""},
		{"more permits than there are", 3, []*claim{one(1, "x", 2, 0, s), one(2, "y", 2, 0, s)}, nil, "beside process 1"},
		{
			"a loss, and nobody can know", 1,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: "wipe", from: 2 * s, to: 2 * s}},
			"",
		},
		{
			"a loss of something else", 1,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: "evict", resource: "b", from: 2 * s, to: 2 * s}},
			"beside process 1",
		},
		{
			"a loss, and it is told too late", 1,
			[]*claim{one(1, "x", 1, 0, 5*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: "wipe", from: 2 * s, to: 2 * s}},
			"4.000000 process 1 trusts",
		},
		{
			"a loss before both", 1,
			[]*claim{one(1, "x", 1, 3*s, 5*s), one(2, "y", 1, 4*s, 5*s)},
			[]*loss{{what: "wipe", from: 2 * s, to: 2 * s}},
			"beside process 1",
		},
		{
			"it is forced, and its holder cannot know", 1,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "a", owners: map[string]bool{"x": true}, from: 2 * s, to: 2 * s}},
			"",
		},
		{
			"it is forced, and it is told too late", 1,
			[]*claim{one(1, "x", 1, 0, 5*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "a", owners: map[string]bool{"x": true}, from: 2 * s, to: 2 * s}},
			"4.000000 process 1 trusts",
		},
		{
			"it is forced, and the request may come late", 1,
			[]*claim{one(1, "x", 1, 0, 5*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "a", owners: map[string]bool{"x": true}, late: true, from: 2 * s, to: 2 * s}},
			"",
		},
		{
			"something else is forced", 1,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "b", owners: map[string]bool{"x": true}, from: 2 * s, to: 2 * s}},
			"beside process 1",
		},
		{
			"a value is forced that is held together with it", 1,
			[]*claim{together(one(1, "x", 1, 0, 4*s), "a", "b"), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "b", owners: map[string]bool{"x": true}, from: 2 * s, to: 2 * s}},
			"",
		},
		{
			"somebody else is forced", 10,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 10, 3*s, 5*s)},
			[]*loss{{what: forced, resource: "a", owners: map[string]bool{"z": true}, from: 2 * s, to: 2 * s}},
			"beside process 1",
		},
		{"it lasts as long as MaxHold", 1, []*claim{bound(one(1, "x", 1, 0, s), s)}, nil, ""},
		{"it lasts longer than MaxHold", 1, []*claim{bound(one(1, "x", 1, 0, s+20*time.Millisecond), s)}, nil, "longer than MaxHold"},
		{"it never ends", 1, []*claim{one(1, "x", 1, 0, -1)}, nil, "never ends"},
		{"tokens rise", 1, []*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, s, 2*s), 8)}, nil, ""},
		{"tokens repeat", 1, []*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, s, 2*s), 7)}, nil, "after the token 7"},
		{
			"tokens repeat after a loss", 1,
			[]*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, 2*s, 3*s), 7)},
			[]*loss{{what: "wipe", from: s, to: s}},
			"",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), capacity: test.capacity, claims: test.claims, losses: test.losses}
			h.check()
			got := strings.Join(h.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}

// A latch opens when three have counted it down, each once, whatever its script
// counts.
func TestALatchThatOpensTooEarlyIsNoticed(t *testing.T) {
	executed := func(number, answer int64) driver.Reply {
		return driver.Reply{Kind: driver.ReplyList, List: []driver.Reply{{Kind: driver.ReplyInt, Int: number}, {Kind: driver.ReplyInt, Int: answer}}}
	}
	keys := []string{"a:1", "session"}
	for _, test := range []struct {
		name    string
		numbers []string
		want    string // nothing: that is right
	}{
		{"three count it down", []string{"7", "8", "9"}, ""},
		{"a request is executed twice, and counted twice", []string{"7", "-7", "9"}, "the latch a:1 has opened, and 2 have counted it down"},
		{"it opens too late", []string{"6", "7", "8", "9"}, "the latch a:1 has opened, and 4 have counted it down"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{history: history{start: time.Now()}, nodes: []*node{{}}}
			for i, number := range test.numbers {
				n, err := strconv.ParseInt(strings.TrimPrefix(number, "-"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				last := i == len(test.numbers)-1
				w.nodes[0].latches.down(keys, []string{number, "1000", "channel", "1"}, executed(n, 0), last)
			}
			w.checkOpenings()
			got := strings.Join(w.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}

// Only what goes on without the number of the last token, or with an older one,
// gives a token again.
func TestOnlyALossOfTheNumberExcusesATokenThatDoesNotRise(t *testing.T) {
	const s = time.Second
	one := func(process int, n int64, call, from, to time.Duration) *claim {
		return &claim{
			resource: "a", id: strconv.Itoa(process), weight: 1, process: process, nest: process, token: n, call: call, from: from, to: to,
			footing: &footing{asked: call, longest: 2 * s},
		}
	}
	inTurn := func(n ...int64) (all []*claim) { // from 0 to 1 s, from 2 s to 3 s, and so on
		for i, n := range n {
			at := time.Duration(2*i) * s
			all = append(all, one(i, n, at, at, at+s))
		}
		return all
	}
	at := func(what string, from time.Duration) []*loss {
		return []*loss{{what: what, from: from, to: from + s/2}}
	}
	for _, test := range []struct {
		name   string
		claims []*claim
		losses []*loss
		dated  bool
		steps  []step
		want   string // nothing: that is right
	}{
		{"all is lost", inTurn(7, 1), at(wiped, s), false, nil, ""},
		{"all is lost of another server", inTurn(7, 1), []*loss{{what: wiped, site: 1, from: s, to: s}}, false, nil, "after the token 7"},
		{"all is lost before both", inTurn(0, 7, 1), at(wiped, s), false, nil, "after the token 7"},
		{"a token of before the loss comes again, and again", inTurn(7, 1, 2, 2), at(wiped, s), false, nil, "with the token 2, after the token 2"},
		{"a replica lacks the last token", []*claim{one(1, 7, s, s, 2*s), one(2, 7, 3*s, 3*s, 4*s)}, at("failover", s), false, nil, ""},
		{"a replica has the last token", inTurn(7, 7), at("failover", s/2), false, nil, "after the token 7"},
		{"an older file has the last token", inTurn(7, 7), at("older", s/2), false, nil, "after the token 7"},
		{"the lock is evicted", inTurn(7, 7), at("evict", s/2), false, nil, "after the token 7"},
		{"the clock is set ahead", inTurn(7, 6), at("ahead", s/2), false, nil, "after the token 7"},
		{"it is forced", inTurn(7, 6), at(forced, s/2), false, nil, "after the token 7"},
		{
			"who had it before it was forced is told later",
			[]*claim{one(1, 8, s, s, 2*s), one(2, 7, 0, 2*s, 3*s)},
			at(forced, s/2), false, nil, "",
		},
		{
			"who had it before it was forced is told the same token",
			[]*claim{one(1, 7, s, s, 2*s), one(2, 7, 0, 2*s, 3*s)},
			at(forced, s/2), false, nil, "after the token 7",
		},
		{"a term goes on with the clock", inTurn(7, 1), at(wiped, s), true, nil, "after the token 7"},
		{"a term goes on with a clock that was set back", inTurn(7_000_000, 6_000_000), at(wiped, s), true, []step{{0, s, s}}, ""},
		{"a term is lower than the clock can be", inTurn(7_000_000, 5_000_000), at(wiped, s), true, []step{{0, s, s}}, "after the token 7"},
		{"a clock of another server was set back", inTurn(7_000_000, 6_000_000), at(wiped, s), true, []step{{1, s, s}}, "after the token 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), capacity: 1, claims: test.claims, losses: test.losses, dated: test.dated, steps: test.steps}
			h.check()
			got := strings.Join(h.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}

// Two servers may each give what one of them may give once.
func TestOverlapsAreThoseOfOneServer(t *testing.T) {
	const s = time.Second
	one := func(process, site int, from, to time.Duration) *claim {
		return &claim{
			resource: "a", site: site, weight: 1, process: process, nest: process, from: from, to: to,
			footing: &footing{asked: from, longest: 2 * s},
		}
	}
	for _, test := range []struct {
		name   string
		claims []*claim
		want   time.Duration
	}{
		{"of one server", []*claim{one(1, 0, 0, 4*s), one(2, 0, 3*s, 5*s)}, s},
		{"of two servers", []*claim{one(1, 0, 0, 4*s), one(2, 1, 3*s, 5*s)}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), capacity: 1, claims: test.claims, losses: []*loss{{what: wiped, from: 2 * s, to: 2 * s}}}
			if got := h.overlaps()[wiped]; got != test.want {
				t.Errorf("the longest overlap is %v, want %v", got, test.want)
			}
		})
	}
}

// A fault that does nothing to a type is not to be counted for it.
func TestNobodyForcesPermits(t *testing.T) {
	for _, typ := range Types() {
		plan, err := Standard(0, typ)
		if err != nil {
			t.Fatal(err)
		}
		takes := typ != "permits" && !sharded(typ) && !slices.Contains(counts(), typ)
		if got := slices.Contains(plan.Faults, forced); got != takes {
			t.Errorf("%s: it is forced: %t, want %t", typ, got, takes)
		}
	}
}

// A release that was confirmed is undone only by a server that goes on with what
// it had before, or by a take that had been sent before and comes after it, and
// only for a lease. A server keeps that as long if it is slow or its clock is set
// back, and a permit one second more.
func TestWhatWasReleasedComesBackOnlyAsLongAsALeaseLasts(t *testing.T) {
	const s = time.Second
	older := func(from, to time.Duration) *loss { return &loss{what: "older", from: from, to: to} }
	for _, test := range []struct {
		name   string
		unsure bool // the release was not confirmed
		losses []*loss
		back   []*loss
		takes  map[string]take
		steps  []step
		now    time.Duration
		want   bool
	}{
		{name: "nothing is lost", now: 5 * s},
		{name: "an older file has it", losses: []*loss{older(3*s, 4*s)}, now: 5 * s, want: true},
		{name: "an older file has it, for as long as the lease", losses: []*loss{older(3*s, 4*s)}, now: 8 * s},
		{name: "an older file has it, and the clock was set back", losses: []*loss{older(3*s, 4*s)}, steps: []step{{0, 5 * s, 2 * s}}, now: 8 * s, want: true},
		{name: "an older file has it, and the clock of another server was set back", losses: []*loss{older(3*s, 4*s)}, steps: []step{{1, 5 * s, 2 * s}}, now: 8 * s},
		{name: "an older file has the release, too", losses: []*loss{older(4*s+1, 5*s)}, now: 5 * s},
		{name: "an older file may have the release, which nobody has confirmed", unsure: true, losses: []*loss{older(4*s+1, 5*s)}, now: 5 * s, want: true},
		{name: "an older file was loaded before it was asked for", losses: []*loss{older(0, s/2)}, now: 2 * s},
		{name: "an older file of another server has it", losses: []*loss{{what: "older", site: 1, from: 3 * s, to: 4 * s}}, now: 5 * s},
		{name: "an older file is being loaded", losses: []*loss{older(3*s, forever)}, now: 5 * s, want: true},
		{name: "all is lost", losses: []*loss{{what: wiped, from: 3 * s, to: 4 * s}}, now: 5 * s},
		{name: "it is evicted", losses: []*loss{{what: "evict", from: 3 * s, to: 4 * s}}, now: 5 * s},
		{name: "a replica has it", back: []*loss{{what: "takeover", from: 3 * s, to: 4 * s}}, now: 5 * s, want: true},
		{name: "a replica has the release, too", back: []*loss{{what: "takeover", from: 4*s + 1, to: 5 * s}}, now: 5 * s},
		{name: "a take comes late", takes: map[string]take{"x": {2 * s, 5 * s}}, now: 6 * s, want: true},
		{name: "a take comes late, for as long as the lease", takes: map[string]take{"x": {2 * s, 5 * s}}, now: 9 * s},
		{name: "a take was not late", takes: map[string]take{"x": {2 * s, 3*s - 1}}, now: 5 * s},
		{name: "a take is sent when it was given up", takes: map[string]take{"x": {3*s + 1, 5 * s}}, now: 6 * s},
		{name: "the take of another one comes late", takes: map[string]take{"y": {2 * s, 5 * s}}, now: 6 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), losses: test.losses, back: test.back, takes: test.takes, steps: test.steps}
			c := &claim{resource: "a", id: "x", weight: 1, to: 3 * s, footing: &footing{asked: s, longest: 2 * s, freed: 4 * s, unsure: test.unsure}}
			if got := h.comesBackLocked(c, test.now); got != test.want {
				t.Errorf("it may come back: %t, want %t", got, test.want)
			}
		})
	}
}

// When Shutdown says that all went well, a process owes the server all that it has
// released, and nothing else.
func TestTheCheckerLooksForWhatShutdownLeaves(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name    string
		how     string // it ended
		process int
		over    bool
		takes   map[string]take
		want    string // nothing: that is right
	}{
		{name: "it is released", how: released, want: "the server still has a as x"},
		{name: "it is cut off", how: redlatch.ErrClosed.Error(), want: "still had a as x"},
		{name: "it is lost", how: string(redlatch.LostExpired)},
		{name: "it is lost while others that are held with it are released", how: released, over: true},
		{name: "it is released, and a take comes late", how: released, takes: map[string]take{"x": {s, 4 * s}}},
		{name: "it is another process's", how: released, process: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newNode()
				defer server.mini.Close()
				server.set(func() { server.putLocked(stored{name: "a", kind: "hash", content: []string{"x", "1"}}) })
				c := &claim{resource: "a", id: "x", how: test.how, process: test.process, to: 3 * s, footing: &footing{longest: 8 * s, over: test.over}}
				w := &world{Plan: Plan{Type: "lock"}, sites: []*node{server}, history: history{start: time.Now(), claims: []*claim{c}, takes: test.takes}}
				time.Sleep(5 * s)
				w.nothingLeft(&process{})
				got := strings.Join(w.wrong, "\n")
				if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
					t.Errorf("the checker says %q, want something with %q", got, test.want)
				}
			})
		})
	}
}

// The checker hears when each take was sent, and when it comes to a server, also
// if it comes twice.
func TestTheCheckerHearsWhenATakeComes(t *testing.T) {
	const s = time.Second
	owner, permit := wire.Owner(wire.NewClientID(), 1), strings.Repeat("\xff", 16)
	redissons := "285475da-9152-4c83-822a-67ee2f116a79:7"
	for _, test := range []struct{ script, id, as string }{
		{"lock.take", owner, owner},
		{"redisson.take", redissons, redissons},
		{"expirable.take", permit, strings.Repeat("ff", 16)},
		{"lock.release", owner, ""},
		{"lock.take", "30000", ""},
	} {
		t.Run(test.script+"/"+test.as, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, w := newNode(), &world{history: history{start: time.Now(), takes: map[string]take{}}, releases: map[string]*release{}}
				defer server.mini.Close()
				l, x := w.linkTo(server, newChance(1, 1), weather{}, 1), driver.NewScript(test.script, "return 1")
				comes := func(at time.Duration) {
					t.Helper()
					w.history.mu.Lock()
					defer w.history.mu.Unlock()
					got, ok := w.takes[test.as]
					if len(w.takes) > 1 || ok != (test.as != "") || ok && (got.sent.Round(s) != s || got.came.Round(s) != at) {
						t.Errorf("what was sent after a second comes after %v: %v", at, w.takes)
					}
				}
				time.Sleep(s)
				sent := time.Now()
				server.set(func() { server.paused = sent.Add(5 * s) })
				if _, err := l.Run(bg, x, []string{"a"}, []string{test.id, "1", "c"}); err == nil {
					t.Error("a server that is paused answers")
				}
				time.Sleep(6 * s)
				comes(6 * s)
				l.again(server, 0, sent, 2*s, x, []string{"a"}, []string{test.id, "1", "c"}, false)
				comes(9 * s)
			})
		})
	}
}

// What a hold says, and what an event says, is one thing.
func TestTheCheckerComparesEventsWithHolds(t *testing.T) {
	const s = time.Second
	lost := func(process int, at time.Duration) []tiding { return []tiding{{process, "x", redlatch.LostGone, at}} }
	for _, test := range []struct {
		name            string
		tidings, events []tiding
		to              time.Duration // the end of what process 1 has as x
		want            string        // nothing: that is right
	}{
		{"both say so", lost(1, s), lost(1, s), s, ""},
		{"no event says so", lost(1, s), nil, s, "no event says so"},
		{"only another process has an event", lost(1, s), lost(2, s), s, "no event says so"},
		{"its event has another reason", lost(1, s), []tiding{{1, "x", redlatch.LostExpired, s}}, s, "no event says so"},
		{"the hold lasts beyond its event", nil, lost(1, s), 2 * s, "which it has until"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{
				start: time.Now(), tidings: test.tidings, events: test.events,
				claims: []*claim{{resource: "a", id: "x", process: 1, to: test.to}},
			}
			h.checkEvents()
			got := strings.Join(h.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}

// Shutdown ends the context of a hold, and its worker has it still until the
// client gives it up. All of that counts.
func TestAClaimLastsBeyondTheContextThatShutdownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNode()
		w := &world{Plan: Plan{Type: "lock"}, kind: kindOf("lock"), sites: []*node{s}}
		w.history = history{start: time.Now(), capacity: 1, footings: map[[2]string]*footing{}}
		c, err := redlatch.New(newLink(newChance(1, 1), s, weather{}, &w.history), redlatch.Config{CloseTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p := &process{client: c, clients: []*redlatch.Client{c}, life: t.Context()}
		p.leaves.Store(true)
		h, err := c.Lock("a").Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		all := w.has(p, h, &claim{weight: 1, nest: 1, lease: 30 * time.Second})
		over, cancel := context.WithCancel(bg)
		cancel()
		began := w.now()
		_ = c.Shutdown(over)
		time.Sleep(time.Second)
		w.history.mu.Lock()
		defer w.history.mu.Unlock()
		if got := all[0].to - began; h.Context().Err() == nil || got < 2*time.Second || got > 4*time.Second {
			t.Errorf("the claim ends %v after Shutdown began (%s)", got, all[0].how)
		}
		if len(w.wrong) > 0 {
			t.Error(w.wrong)
		}
		s.mini.Close()
	})
}

// Who asks for something waits as long as it wants to, and else as long as its
// client is to try.
func TestTheCheckerMeasuresWaits(t *testing.T) {
	unavailable := fmt.Errorf("the server: %w", redlatch.ErrUnavailable)
	const outage = 10 * time.Second
	for _, test := range []struct {
		name    string
		ends    time.Duration // the context; 0: never
		wait    time.Duration // negative: for ever
		lasts   time.Duration
		answers time.Duration // how often one comes; 0: none does
		err     error
		want    string // nothing: that is right
	}{
		{"it ends when its wait is over", 0, time.Second, time.Second, time.Second, nil, ""},
		{"it goes on when its wait is over", 0, time.Second, 2 * time.Second, time.Second, nil, "longer than it wants to"},
		{"it goes on when its context has ended", time.Second, -1, 2 * time.Second, time.Second, nil, "longer than it wants to"},
		{"it gives up when its client does", 0, -1, outage, 0, unavailable, ""},
		{"it waits for nobody but the server", 0, 0, outage, 0, unavailable, ""},
		{"it waits for nobody, and gives up before", 0, 0, outage - 1, 0, unavailable, "gives up after"},
		{"it gives up before", 0, -1, outage - 1, 0, unavailable, "gives up after"},
		{"it gives up as it wants to", outage / 2, -1, outage / 2, 0, unavailable, ""},
		{"it goes on without an answer", 0, -1, 3 * outage, 0, unavailable, "though no answer comes"},
		{"it goes on as there are answers", 0, -1, 2 * outage, time.Second, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{history: history{start: time.Now()}}
				l := newLink(newChance(1, 1), nil, weather{}, &w.history)
				p := &process{links: []*link{l}, life: t.Context(), outage: outage}
				ctx := t.Context()
				if test.ends > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ends)
					defer cancel()
				}
				_ = w.waits(ctx, p, "a", test.wait, func() error {
					for end := time.Now().Add(test.lasts); time.Now().Before(end); {
						d := time.Until(end)
						if test.answers > 0 {
							d = min(d, test.answers)
							l.hear(nil)
						}
						time.Sleep(d)
					}
					return test.err
				})
				got := strings.Join(w.wrong, "\n")
				if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
					t.Errorf("the checker says %q, want something with %q", got, test.want)
				}
			})
		})
	}
}

func TestPermitsAreNotLeftWhenTheirTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newNode()
		give := driver.NewScript("test.give", "redis.call('ZADD', KEYS[1], 1, 'early', ARGV[1], 'late')")
		end := time.Now().Add(time.Minute)
		if _, _, err := server.exec(give, []string{"{orders1}:timeout"}, []string{strconv.FormatInt(end.UnixMilli(), 10)}, false); err != nil {
			t.Fatal(err)
		}
		for _, left := range []bool{true, false} {
			w := &world{Plan: Plan{Type: "permits"}, history: history{start: time.Now()}}
			w.left(server)
			if got := len(w.wrong) > 0; got != left {
				t.Errorf("%v before the end of one something is left: %t", time.Until(end), got)
			}
			time.Sleep(time.Until(end))
		}
		server.mini.Close()
	})
}
