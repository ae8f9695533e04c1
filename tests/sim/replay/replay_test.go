package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/tests/sim"
	"github.com/redlatch/redlatch/tests/sim/linear"
	"github.com/redlatch/redlatch/tests/sim/mutants"
	"github.com/redlatch/redlatch/tests/sim/results"
)

// playerOf builds and loads the simulation, for a test.
func playerOf(t *testing.T, more ...string) *player {
	t.Helper()
	dir := t.TempDir()
	file, err := build(dir, more...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := load(t.Context(), dir, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// A play that never ends would keep all others from being played.
func TestAPlayEndsWithItsContext(t *testing.T) {
	plan, err := sim.Standard(5, sim.Types()[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := playerOf(t).play(ctx, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("the play ends with %v", err)
	}
}

// A violation that comes back only now and then cannot be understood.
func TestASeedIsPlayedTheSameWayEachTime(t *testing.T) {
	p := playerOf(t)
	for _, typ := range sim.Types() {
		plan, err := sim.Standard(5, typ)
		if err != nil {
			t.Fatal(err)
		}
		plan.Traced = true
		var first *sim.Report
		for range 2 {
			r, err := p.play(t.Context(), plan)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Err(); err != nil {
				t.Errorf("%v\nto replay it: make sim SEED=%d TYPE=%s", err, plan.Seed, typ)
			}
			if len(r.Log) < 500 {
				t.Errorf("%s: a trace of %d lines only", typ, len(r.Log))
			}
			if first == nil {
				first = r
				continue
			}
			if !slices.Equal(first.Log, r.Log) {
				t.Errorf("%s: two runs of a seed differ", typ)
			}
		}
	}
}

// What goes wrong needs few faults, and they have to be found.
func TestShrinkLeavesOutWhatIsNotNeeded(t *testing.T) {
	m := mutants.All[0]
	p := playerOf(t, "-overlay", overlay(t, m))
	plan := find(t, m, p)
	r, err := p.play(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	less, err := shrink(t.Context(), p, plan, &out)
	if err != nil {
		t.Fatal(err)
	}
	if len(less.Skip) == 0 || len(less.Skip) > len(r.Numbers) || !strings.HasPrefix(out.String(), "it needs the faults ") {
		t.Errorf("of the faults %v these are left out: %v, and %q is said", r.Numbers, less.Skip, out.String())
	}
	if r, err = p.play(t.Context(), less); err != nil || r.Err() == nil {
		t.Errorf("nothing goes wrong any more: %v", err)
	}
}

// Who finds in the morning that a night of random seeds went wrong has to find
// what went wrong, too.
func TestASeedThatGoesWrongLeavesItsPlanItsTraceAndItsHistory(t *testing.T) {
	plan, err := sim.Standard(7, "fair")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := campaign{keep: filepath.Join(t.TempDir(), "wrong"), out: &out}
	take := linear.Op{What: linear.Acquire, Process: 3, N: 1, From: time.Second, To: 2 * time.Second}
	r := &sim.Report{
		Wrong: []string{"two at a time"}, Log: []string{"first", "second"}, Struck: map[string]int{"cut": 2},
		Histories: []linear.History{{Model: "holds", Name: "orders1", Capacity: 1, Ops: []linear.Op{take}}},
		Marks:     []linear.Mark{{Row: "faults", From: 0, To: time.Second, Text: "a cut"}},
		At:        2 * time.Second,
	}
	if !c.note(plan, r, nil) || len(c.wrong) != 1 || c.figures.Plays[0].Wrong != 1 || c.figures.Plays[0].Faults["cut"] != 2 {
		t.Errorf("%d went wrong, and the figures are %+v", len(c.wrong), c.figures.Plays)
	}
	if !strings.Contains(out.String(), "make sim SEED=7 TYPE=fair, to shrink it: make sim SHRINK=7 TYPE=fair") {
		t.Errorf("it says %s", out.String())
	}
	if plan, err = sim.Standard(7, "red"); err != nil {
		t.Fatal(err)
	}
	if c.note(plan, &sim.Report{}, nil); !slices.ContainsFunc(c.figures.Plays, func(p *results.Played) bool { return p.Type == "red" && p.Topology == sim.Independent }) {
		t.Errorf("a RedLock was played, and the figures are %+v", c.figures.Plays)
	}
	if !strings.Contains(out.String(), filepath.Join(c.keep, "fair-7.html")) {
		t.Errorf("it does not say where the history is: %s", out.String())
	}
	for end, want := range map[string]string{".txt": "first\nsecond\n", ".json": `"Seed": 7`, ".html": "orders1: process 3 acquires 1"} {
		if text, err := os.ReadFile(filepath.Join(c.keep, "fair-7"+end)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v, and what is kept is %q", err, text)
		}
	}
}
