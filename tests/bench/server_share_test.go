package main

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/testserver"
)

// shareLimits are how many commands the server runs for a pair and for a hand-off
// of ours at most, the scripts included.
var shareLimits = map[string]struct{ pair, handOff float64 }{
	"plain":                         {7, 12},
	"plain with a fencing token":    {8, 13},
	"election":                      {10, 15},
	"fair":                          {13, 28},
	"read":                          {16, 0},
	"write":                         {12, 19},
	"group, one value":              {13, 20},
	"multi, two locks":              {17, 0},
	"semaphore":                     {11, 16},
	"expirable semaphore":           {21, 30},
	"latch: set to 1, counted down": {14, 0},
	"rate limiter: one take":        {20, 0}, // at times it adds up its records, and drops old ones
	"barrier of two: both arrive":   {25, 0},
}

// What a command costs the server is paid by all its users. Counts need no quiet
// machine.
func TestNoPairAndNoHandOffNeedsMoreCommands(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.Redis)
	if _, err := server.Do("ACL", "SETUSER", "default", "+@all"); err != nil {
		t.Fatal(err)
	}
	s := newShareMeter(server.Addr(), "../../internal/lua")
	defer s.close()
	for _, w := range shareWorks() {
		for _, handOff := range []bool{false, true} {
			if handOff && w.handOff == nil {
				continue
			}
			f, err := s.measure(t.Context(), w, handOff, 20)
			if err != nil {
				t.Fatalf("%s of %s: %v", w.name, w.who, err)
			}
			limits, known := shareLimits[w.name]
			limit := limits.pair
			if handOff {
				limit = limits.handOff
			}
			if w.who == oursToRun && (!known || f.Commands < 2 || f.Commands > limit) {
				t.Errorf("%s, hand-off %v: %v commands, at most %v are allowed", w.name, handOff, f.Commands, limit)
			}
		}
	}
}

func TestTheServersShareIsAPart(t *testing.T) {
	t.Parallel()
	var r record
	for run := range 9 {
		for _, f := range []shareFigure{
			{Work: "plain", Who: setNX, CPU: 2, Commands: 4},
			{Work: "plain", Who: redissonsSame, CPU: 8, Commands: 9},
			{Work: "plain", Who: oursToRun, CPU: 4, Commands: 7},
			{Work: "plain", Who: oursToRun, CPU: 6, Commands: 12, HandOff: true},
			{Work: "plain", Who: redissonsSame, CPU: 2, Commands: 13, HandOff: true},
		} {
			f.Server, f.Run, f.Script = "Redis 7", run, f.CPU-1
			r.Share = append(r.Share, f)
		}
	}
	page := r.page()
	const want = "| plain | redlatch | 3.00 (3.00 to 3.00) | 4.00 (4.00 to 4.00) | 7.00 | 2.00 | 0.50 | 5.00 (5.00 to 5.00) | 6.00 (6.00 to 6.00) | 12.0 | 3.00 |"
	if !strings.Contains(page, want) || !strings.Contains(page, "### On Redis 7") {
		t.Errorf("the page lacks %q", want)
	}
	if page := (record{}).page(); strings.Contains(page, "### On ") {
		t.Error("a page without figures has the table")
	}
}
