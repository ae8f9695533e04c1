package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// costsEnv carries the costJob of a process that measures what it has, and not how
// fast it is.
const costsEnv = "REDLATCH_BENCH_COSTS"

// What is counted, each time in a fresh process.
const (
	costOfHolds    = "holds"    // N locks are held
	costOfWaiters  = "waiters"  // N callers wait, ten for each lock
	costOfReaders  = "readers"  // N callers read under one read-write lock
	costOfLinks    = "links"    // N connections of the server, which listen
	costOfRenewals = "renewals" // of holds, N of which share a script
)

// waitersEach is how many callers wait for one lock.
const waitersEach = 10

// A costJob is what such a process is told.
type costJob struct {
	Story  string `json:"story"`
	Who    string `json:"who"`
	N      int    `json:"n"`
	Timers bool   `json:"timers"` // count them, which makes everything slow: the process tells no times
	Addr   string `json:"addr"`
}

// An expense is what such a process answers. Bytes, goroutines and timers are for
// one hold, waiter, reader or connection, as all that does not say otherwise.
type expense struct {
	Story        string  `json:"story"`
	Who          string  `json:"who"`
	N            int     `json:"n"`
	Run          int     `json:"run"`
	DidNotFinish string  `json:"didNotFinish,omitempty"`
	Timed        bool    `json:"timed"`
	Heap         float64 `json:"heap"`
	Stacks       float64 `json:"stacks"`
	Goroutines   float64 `json:"goroutines"` // beside the callers' own
	Timers       float64 `json:"timers"`     // that are set; only if not Timed
	ServerBytes  float64 `json:"serverBytes"`
	Opened       float64 `json:"opened"`    // microseconds: New
	First        float64 `json:"first"`     // microseconds: the first acquisition and its release
	Began        float64 `json:"began"`     // seconds until all are there
	Ended        float64 `json:"ended"`     // seconds until all have gone, and the client is closed
	ClientCPU    float64 `json:"clientCPU"` // microseconds each second, as ServerCPU
	ServerCPU    float64 `json:"serverCPU"`
	Scripts      float64 `json:"scripts"` // of all, each second
	Lost         int     `json:"lost"`    // of N
	Publish      float64 `json:"publish"` // microseconds of the server for a message to all N
	Subscription float64 `json:"subscription"`
	Renewal      float64 `json:"renewal"` // microseconds of the server for one hold
}

// A costing is a row of the tables.
type costing struct {
	story, who string
	n          int
	timers     bool
}

func (c costing) name() string {
	return fmt.Sprintf("costs-%s-%d/%s", c.story, c.n, c.who)
}

// once says whether one run is enough: of what is counted, and of more than a
// library keeps.
func (c costing) once() bool {
	return c.timers || c.n == hugeCosts || c.who == redissonPeer.name || c.story == costOfHolds && c.n == manyCosts && c.who != keepers[0].name
}

// A few are enough to count goroutines and timers; very many say what one more
// costs.
const (
	fewCosts, manyCosts = 1_000, 100_000
	crowdCosts          = 10_000    // of callers, each of whom needs a goroutine
	hugeCosts           = 1_000_000 // of what needs none
)

// costings are what is measured.
func costings() []costing {
	var all []costing
	for i, k := range keepers {
		all = append(all, costing{costOfHolds, k.name, fewCosts, true}, costing{costOfHolds, k.name, manyCosts, false})
		if i > 0 { // redlatch costs the same with fewer
			all = append(all, costing{costOfHolds, k.name, crowdCosts, false})
		}
	}
	for _, k := range keepers {
		all = append(all, costing{costOfWaiters, k.name, fewCosts, true}, costing{costOfWaiters, k.name, crowdCosts, false})
	}
	for _, n := range []int{fewCosts, manyCosts} {
		all = append(all, costing{costOfHolds, redissonPeer.name, n, false})
	}
	return append(all,
		costing{costOfHolds, keepers[0].name, hugeCosts, false}, costing{costOfReaders, keepers[0].name, hugeCosts, false},
		costing{costOfReaders, keepers[0].name, fewCosts, true}, costing{costOfReaders, keepers[0].name, manyCosts, false},
		costing{costOfLinks, serverItself, fewCosts, false}, costing{costOfLinks, serverItself, crowdCosts, false},
		costing{costOfRenewals, serverItself, 1, false}, costing{costOfRenewals, serverItself, renewedTogether, false},
	)
}

// serverItself is measured with plain connections.
const serverItself = "server"

// costRuns is how often times and bytes are taken. What is counted is the same
// each time.
const costRuns = 3

// costsTake is how long all of them take, in a full run.
func costsTake() (all time.Duration) {
	for _, c := range costings() {
		runs := costRuns
		if c.once() {
			runs = 1
		}
		all += time.Duration(runs) * c.takes()
	}
	return all
}

// takes is how long one run takes: mostly, for how long it looks on.
func (c costing) takes() time.Duration {
	once := 3 * time.Second // to open, fill and end
	k, ok := keeperNamed(c.who)
	switch {
	case c.who == redissonPeer.name:
		once += jvmTime + 2*redissonRenewedEach
	case c.n == hugeCosts && c.story == costOfHolds:
		once = 40 * time.Second
	case ok && !c.timers && c.story == costOfHolds:
		once += k.window()
	case ok && !c.timers && c.story == costOfWaiters:
		once += waitingWindow
	}
	return once
}

// costs measures all of them, in turn.
func (b *bench) costs(ctx context.Context, o options, missing map[string]string) ([]expense, error) {
	var all []expense
	runs := min(o.runs, costRuns)
	if o.quick {
		runs = 1
	}
	for run := range runs {
		order := costings()
		if run%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			switch {
			case ctx.Err() != nil:
				return all, errors.New("interrupted")
			case !o.only.MatchString(c.name()), missing[c.who] != "", run > 0 && c.once():
				continue
			}
			got, err := b.cost(c)
			if err != nil { // of the harness: what all others took half an hour for is kept
				got.DidNotFinish = err.Error()
			}
			got.Run = run
			fmt.Fprintln(os.Stderr, costProgress(got))
			all = append(all, got)
		}
	}
	return all, nil
}

// cost measures one of them. An error is one of the harness.
func (b *bench) cost(c costing) (expense, error) {
	got := expense{Story: c.story, Who: c.who, N: c.n, Timed: !c.timers}
	if err := b.server.clear(); err != nil {
		return got, err
	}
	if c.who == redissonPeer.name {
		if err := b.redissonCost(&got); err != nil {
			got.DidNotFinish = err.Error()
		}
		return got, nil
	}
	text, err := json.Marshal(costJob{c.story, c.who, c.n, c.timers, b.server.addr})
	if err != nil {
		return got, err
	}
	exe, err := os.Executable()
	if err != nil {
		return got, err
	}
	s := &self{cmd: exec.CommandContext(context.Background(), exe)}
	s.cmd.Env = append(os.Environ(), costsEnv+"="+string(text))
	if err := s.start(); err != nil {
		return got, err
	}
	defer s.kill()
	line, err := s.next("result", got.patience())
	if err != nil {
		got.DidNotFinish = err.Error()
		return got, nil
	}
	return got, json.Unmarshal([]byte(line), &got)
}

// patience is several times as long as it takes.
func (e expense) patience() time.Duration {
	if e.N == hugeCosts {
		return 2 * time.Minute
	}
	return 30 * time.Second
}

func costProgress(c expense) string {
	head := fmt.Sprintf("%-20s run %d  %-22s", fmt.Sprintf("costs-%s-%d", c.Story, c.N), c.Run+1, c.Who)
	switch {
	case c.DidNotFinish != "":
		return head + " did not finish: " + c.DidNotFinish
	case c.Story == costOfRenewals:
		return fmt.Sprintf("%s a renewal %s µs of the server", head, short(c.Renewal))
	case c.Story == costOfLinks:
		return fmt.Sprintf("%s a connection %s B, a subscription %s B, a message %s µs of the server", head, short(c.ServerBytes), short(c.Subscription), short(c.Publish))
	}
	text := fmt.Sprintf("%s heap %s B, stacks %s B, goroutines %s, server %s B, CPU µs/s %s, server's %s, there after %s s, lost %d",
		head, short(c.Heap), short(c.Stacks), short(c.Goroutines), short(c.ServerBytes), short(c.ClientCPU), short(c.ServerCPU), short(c.Began), c.Lost)
	if !c.Timed {
		text += ", timers " + short(c.Timers)
	}
	return strings.TrimSpace(text)
}
