package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const costsLegend = `
What holds, waiters, readers and connections cost, on the server that all measurements have, without replicas. Each line
is of processes of its own. *Heap* and *stacks* are the growth of both, in bytes after a garbage collection, for each
hold, waiter or reader. *Goroutines* are beside those of the callers. *Timers* are those that exist, set or not: a
profile of the heap that misses no allocation says where each was made. They are counted with 1,000, in processes that
tell no times. Bytes of the server are the growth of its used_memory. With 1,000, what does not grow with them still
counts. *Lost* are the holds that their library gave up or failed to release. The figures are medians, with the range of
the runs in parentheses. A dash is what was not measured. What was measured on a busy machine
has no times by the clock.
`

const costsOfHoldsLegend = `
CPU times are microseconds for each hold and second. They have been measured over at least six seconds, in which all holds
of a library are renewed equally often. *Ended* is the time until all are released and the client is closed, for redlatch by
Shutdown. A million holds have a WatchdogTimeout of five minutes: with 30 s, their renewals alone take more than half a core
of this machine. Their CPU times were not measured. With 30 s, each would cost what each of 100,000 costs. redsync's million
would need eight cores for the client and four for a server that uses one, by its CPU times. rueidislock needs as many for
100,000. Redisson is asked for 100,000 at most, once. Its CPU times begin when all have been renewed once. Its heap is that of
the JVM. It has threads instead of goroutines. Its stacks and timers are not counted.
`

const costsOfWaitersLegend = `
Ten callers wait for each lock, which another client of the same process keeps. CPU times are microseconds for each
waiter and second. Each caller has a goroutine, whose stack is among the bytes. A client that only asks again has less.
Nobody is asked for a million: with redlatch they would need 11 GB.
`

const costsOfReadersLegend = `
All readers are of one client and read under one read-write lock. In Redis they share one hold.
`

const costsOfLinksLegend = `
The connections are plain ones, and all listen to one channel. The CPU time is the server's for one message to all of them.
A subscription is one more channel of a connection that has 100,000.
`

const costsModelLegend = `
[Production](production.md#ten-thousand-clients) has a model of very many clients. This is what it takes for granted:
`

const costsClusterLegend = `
` + "`cd tests && go test ./scale`" + ` holds 100,000 locks of a cluster with replicas, and has 10,000 callers wait there. It
fails if a hold is lost, if a TTL in Redis is ever below what its holder trusts, if two are inside at once, or if a key, a
subscription or a goroutine is left. With ` + "`-v`" + ` it prints what that costs.
`

// costCounts are how many of something there may be.
var costCounts = []int{fewCosts, crowdCosts, manyCosts, hugeCosts}

// An expenseOf is a figure of an expense.
type expenseOf func(expense) float64

// scale says what all that costs.
func (r record) scale() string {
	var b strings.Builder
	b.WriteString("## Scale\n" + costsLegend)
	holds := table{head: []string{
		"", "holds", "heap B", "stacks B", "goroutines", "timers", "server B", "acquired after s", "ended after s",
		"client CPU µs", "server CPU µs", "lost",
	}}
	opens := table{head: []string{"", "to open a client, µs", "its first acquisition and release, µs"}}
	waiters := table{head: []string{"", "waiters", "heap B", "stacks B", "goroutines", "timers", "server B", "client CPU µs", "server CPU µs"}}
	for _, k := range keepers {
		for _, n := range costCounts {
			c := r.costing(costOfHolds, k.name, n)
			if n == hugeCosts && k.name != keepers[0].name {
				c.why = "cannot" // see the legend
			}
			c.addTo(&holds, heapOf, stacksOf, goroutinesOf, timersOf, serverBytesOf, begunAfter, endedAfter, clientCPUOf, serverCPUOf, lostOf)
			c = r.costing(costOfWaiters, k.name, n)
			c.addTo(&waiters, heapOf, stacksOf, goroutinesOf, timersOf, serverBytesOf, clientCPUOf, serverCPUOf)
		}
		if all := r.timed(k.name); len(all) > 0 {
			opens.add(k.name, spreadOf(all, func(e expense) float64 { return e.Opened }), spreadOf(all, func(e expense) float64 { return e.First }))
		}
	}
	for _, n := range costCounts {
		c := r.costing(costOfHolds, redissonPeer.name, n)
		c.addTo(&holds, heapOf, notCounted, goroutinesOf, notCounted, serverBytesOf, begunAfter, endedAfter, clientCPUOf, serverCPUOf, lostOf)
	}
	readers := table{head: []string{"", "readers", "heap B", "stacks B", "goroutines", "timers", "server B", "acquired after s", "ended after s"}}
	links := table{head: []string{"connections", "B of the server for each", "B for a subscription", "CPU µs for a message to all", "for each of them"}}
	for _, n := range costCounts {
		c := r.costing(costOfReaders, keepers[0].name, n)
		c.addTo(&readers, heapOf, stacksOf, goroutinesOf, timersOf, serverBytesOf, begunAfter, endedAfter)
		if c := r.costing(costOfLinks, serverItself, n); len(c.all) > 0 {
			subscription := "-"
			if n == fewCosts {
				subscription = spreadOf(c.all, func(e expense) float64 { return e.Subscription })
			}
			links.add(thousands(float64(n)), spreadOf(c.all, serverBytesOf), subscription,
				spreadOf(c.all, func(e expense) float64 { return e.Publish }), spreadOf(c.all, func(e expense) float64 { return e.Publish / float64(e.N) }))
		}
	}
	for _, part := range []struct {
		title, legend string
		table
	}{
		{"Holds", costsOfHoldsLegend, holds},
		{"A client", "", opens},
		{"Waiters", costsOfWaitersLegend, waiters},
		{"Readers", costsOfReadersLegend, readers},
		{"Connections and messages", costsOfLinksLegend, links},
		{"What the model has", costsModelLegend, r.assumed()},
	} {
		if text := part.text(); text != "" {
			fmt.Fprintf(&b, "\n### %s\n%s\n%s", part.title, part.legend, text)
		}
	}
	b.WriteString(costsClusterLegend)
	return b.String()
}

// measured are the runs of a row.
type measured struct {
	costing

	all []expense // nil: there are none; those that did not finish are not among them
	why string    // the last one did not finish
}

func (r record) costing(story, who string, n int) measured {
	c := measured{costing: costing{story: story, who: who, n: n}}
	for _, e := range r.Costs {
		switch {
		case e.Story != story || e.Who != who || e.N != n:
		case e.DidNotFinish != "":
			c.why = e.DidNotFinish
		default:
			c.all = append(c.all, e)
		}
	}
	return c
}

// timed are the runs in which a client was opened, and times taken.
func (r record) timed(who string) (all []expense) {
	for _, e := range r.Costs {
		if e.Who == who && e.Story == costOfHolds && e.Timed && e.Opened > 0 && e.DidNotFinish == "" {
			all = append(all, e)
		}
	}
	return all
}

// addTo adds the row of what was measured. A figure that is not a number is
// unknown.
func (c measured) addTo(t *table, figures ...expenseOf) {
	cells := []string{c.who, thousands(float64(c.n))}
	switch {
	case len(c.all) > 0:
		for _, f := range figures {
			cells = append(cells, spreadOf(c.all, f))
		}
	case c.why == "cannot":
		for range figures {
			cells = append(cells, "-")
		}
	case c.why != "":
		cells = append(cells, "did not finish")
	default:
		return
	}
	t.add(cells...)
}

// spreadOf is the median, and all runs from the least to the most: there are few.
func spreadOf(all []expense, f expenseOf) string {
	values := make([]float64, len(all))
	for i, e := range all {
		values[i] = f(e)
		if -0.005 < values[i] && values[i] < 0 { // no minus before nothing
			values[i] = 0
		}
	}
	if first := short(values[0]); !slices.ContainsFunc(values, func(f float64) bool { return short(f) != first }) {
		return first // what is the same each time, or unknown
	}
	return spanOf(values)
}

func heapOf(e expense) float64        { return e.Heap }
func stacksOf(e expense) float64      { return e.Stacks }
func goroutinesOf(e expense) float64  { return e.Goroutines }
func serverBytesOf(e expense) float64 { return e.ServerBytes }
func renewalOf(e expense) float64     { return e.Renewal }
func lostOf(e expense) float64        { return float64(e.Lost) }

func notCounted(expense) float64 { return math.NaN() }
func timersOf(e expense) float64 { return onlyIf(!e.Timed, e.Timers) }

// Whoever counts timers takes no times.
func begunAfter(e expense) float64  { return onlyIf(e.Timed && e.Began > 0, e.Began) }
func endedAfter(e expense) float64  { return onlyIf(e.Timed && e.Ended > 0, e.Ended) }
func clientCPUOf(e expense) float64 { return onlyIf(e.Timed && e.ClientCPU > 0, e.ClientCPU) }
func serverCPUOf(e expense) float64 { return onlyIf(e.Timed && e.ServerCPU > 0, e.ServerCPU) }

func onlyIf(is bool, f float64) float64 {
	if !is {
		return math.NaN()
	}
	return f
}

// assumed puts what the model takes for granted beside this run.
func (r record) assumed() table {
	t := table{head: []string{"", "the model", "this run"}}
	holds := r.costing(costOfHolds, keepers[0].name, manyCosts).all
	few, many := r.costing(costOfLinks, serverItself, fewCosts).all, r.costing(costOfLinks, serverItself, crowdCosts).all
	for _, line := range []struct {
		what  string
		model float64
		all   []expense
		is    expenseOf
	}{
		{"a hold, bytes of the server", measuredCosts.hold, holds, serverBytesOf},
		{"a renewal in a script for a hundred, µs of the server", measuredCosts.renewal, r.costing(costOfRenewals, serverItself, renewedTogether).all, renewalOf},
		{"a renewal in a script of its own, µs of the server", measuredCosts.alone, r.costing(costOfRenewals, serverItself, 1).all, renewalOf},
		{"a connection, bytes of the server", measuredCosts.connection, many, serverBytesOf},
		{"a subscription, bytes of the server", measuredCosts.subscription, few, func(e expense) float64 { return e.Subscription }},
		{"a message to one of very many that listen, µs of the server", measuredCosts.message, many, func(e expense) float64 { return e.Publish / float64(e.N) }},
	} {
		if len(line.all) > 0 {
			t.add(line.what, short(line.model), spreadOf(line.all, line.is))
		}
	}
	for _, m := range r.Results.of(censusOf1000, redlatchRueidis.name) {
		t.add("a client that is asked what it holds, µs of the server", short(measuredCosts.answer), short(m.ServerCPU/1000))
	}
	return t
}
