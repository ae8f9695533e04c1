package sim

import (
	"strings"
	"testing"
	"time"
)

// A checker is only as good as what it refuses: each of these histories has one line that must not be there, or none.
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
			[]*loss{{"wipe", "", 2 * s, 2 * s}},
			"",
		},
		{
			"a loss of something else", 1,
			[]*claim{one(1, "x", 1, 0, 4*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{"evict", "b", 2 * s, 2 * s}},
			"beside process 1",
		},
		{
			"a loss, and it is told too late", 1,
			[]*claim{one(1, "x", 1, 0, 5*s), one(2, "y", 1, 3*s, 5*s)},
			[]*loss{{"wipe", "", 2 * s, 2 * s}},
			"4.000000 process 1 trusts",
		},
		{
			"a loss before both", 1,
			[]*claim{one(1, "x", 1, 3*s, 5*s), one(2, "y", 1, 4*s, 5*s)},
			[]*loss{{"wipe", "", 2 * s, 2 * s}},
			"beside process 1",
		},
		{"it never ends", 1, []*claim{one(1, "x", 1, 0, -1)}, nil, "never ends"},
		{"tokens rise", 1, []*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, s, 2*s), 8)}, nil, ""},
		{"tokens repeat", 1, []*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, s, 2*s), 7)}, nil, "after the token 7"},
		{
			"tokens repeat after a loss", 1,
			[]*claim{token(one(1, "x", 1, 0, s), 7), token(one(2, "y", 1, 2*s, 3*s), 7)},
			[]*loss{{"wipe", "", s, s}},
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
