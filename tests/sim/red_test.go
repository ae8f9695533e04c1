package sim

import (
	"strings"
	"testing"
	"time"
)

// A majority that has one vote in common with another one, or none, excuses
// nothing by itself: only a loss of that vote does.
func TestTheCheckerRefusesTwoMajorities(t *testing.T) {
	const s = time.Second
	one := func(process int, from, to time.Duration, sites ...int) *whole {
		x := &whole{claim: &claim{resource: "a", site: -1, process: process, nest: process, from: from, to: to, footing: &footing{}}}
		for _, site := range sites {
			x.votes = append(x.votes, &vote{claim: &claim{
				resource: "a", site: site, process: process, nest: process, weight: 1, from: from, to: to,
				footing: &footing{asked: from, longest: 2 * s},
			}})
		}
		return x
	}
	without := func(x *whole, from time.Duration) *whole { // its first vote
		x.votes[0].to = from
		return x
	}
	for _, test := range []struct {
		name   string
		wholes []*whole
		losses []*loss
		want   string // nothing: that is right
	}{
		{"one after the other", []*whole{one(1, 0, s, 0, 1), one(2, s, 2*s, 1, 2)}, nil, ""},
		{"two at a time", []*whole{one(1, 0, s, 0, 1), one(2, s-1, 2*s, 1, 2)}, nil, "beside process 1"},
		{"two minorities", []*whole{one(1, 0, 4*s, 0), one(2, 3*s, 5*s, 1)}, []*loss{{site: 0, from: 2 * s, to: 2 * s}}, "beside process 1"},
		{"the vote of both is lost", []*whole{one(1, 0, 4*s, 0, 1), one(2, 3*s, 5*s, 1, 2)}, []*loss{{site: 1, from: 2 * s, to: 2 * s}}, ""},
		{"the vote of one is lost", []*whole{one(1, 0, 4*s, 0, 1), one(2, 3*s, 5*s, 1, 2)}, []*loss{{site: 0, from: 2 * s, to: 2 * s}}, "beside process 1"},
		{
			"a vote of both is lost, and it is told too late",
			[]*whole{one(1, 0, 5*s, 0, 1), one(2, 3*s, 5*s, 1, 2)},
			[]*loss{{site: 1, from: 2 * s, to: 2 * s}},
			"beside process 1",
		},
		{"a nest", []*whole{one(1, 0, 5*s, 0, 1), one(1, s, 2*s, 0, 1)}, nil, ""},
		{"a minority", []*whole{one(1, 0, s, 0)}, nil, "with 1 of 3 votes"},
		{"it outlives a vote that it needs", []*whole{without(one(1, 0, 4*s, 0, 1), s)}, nil, "1.000000 process 1 trusts the RedLock a"},
		{
			"it outlives a vote that was lost, and is told so",
			[]*whole{without(one(1, 0, 4*s, 0, 1), s)},
			[]*loss{{site: 0, from: s / 2, to: s / 2}},
			"with 1 of 3 votes",
		},
		{"it outlives a vote that it does not need", []*whole{without(one(1, 0, 4*s, 0, 1, 2), s)}, nil, ""},
		{"it is over without the vote that it needs", []*whole{without(one(1, 0, s, 0, 1), s)}, nil, ""},
		{"it never ends", []*whole{one(1, 0, -1, 0, 1)}, nil, "never ends"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &history{start: time.Now(), capacity: 1, losses: test.losses}
			h.checkMost(test.wholes, 3)
			got := strings.Join(h.wrong, "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("the checker says %q, want something with %q", got, test.want)
			}
		})
	}
}
