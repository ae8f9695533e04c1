package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
)

// notes are written by hand and belong to every page.
//
//go:embed notes.md
var notes string

// waits is what go test ./interop -run TestRedissonsWaits -update writes.
//
//go:embed waits.md
var waits string

// scale is what go test ./scale has printed, which this program does not run.
//
//go:embed scale.md
var scale string

// A record is a whole run, as -json writes it and -from reads it.
type record struct {
	Command   string            `json:"command"`
	Machine   machine           `json:"machine"`
	Runs      int               `json:"runs"`
	Durations string            `json:"durations"`
	Took      string            `json:"took"`
	Missing   map[string]string `json:"missing"` // implementation to why it was not measured
	Results   results           `json:"results"`
}

// unavailable are libraries that belong into the comparison and that the build
// cannot have.
var unavailable = []struct{ name, why string }{
	{"goRedisson", "github.com/me-cs/goRedisson (v1.1.2): the Go module proxy refuses this module, so it cannot be a dependency of a reproducible benchmark. Not measured."},
}

// page renders docs/performance.md.
func (r record) page() string {
	var b strings.Builder
	r.intro(&b)
	r.settings(&b)
	b.WriteString("\n## Uncontended\n\n" + uncontendedLegend)
	r.widths(&b)
	r.sections(&b, func(s scenario) bool { return !s.Contended && slices.Contains(fewWidths, s.Goroutines) }, r.uncontended)
	b.WriteString("\n## Contended, one process\n\n" + contendedLegend)
	r.sections(&b, func(s scenario) bool { return s.Contended && s.Processes == 1 && s.Lock == plainLock }, r.contended)
	b.WriteString("\n## Contended, four processes\n\n" + processesLegend)
	r.sections(&b, func(s scenario) bool {
		return s.Processes == 4 && s.Lock == plainLock && s.Delay == 0
	}, r.contended)
	b.WriteString("\n## Longer ways\n\n" + farLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == plainLock && s.Delay > 0 }, r.contended)
	b.WriteString("\n## Very many wait\n\n" + crowdLegend)
	r.sections(&b, func(s scenario) bool { return s.Name == crowdPasses || s.Name == crowdWaits }, r.crowd)
	b.WriteString("\n## Fair locks\n\n" + fairLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == fairLock }, r.contended)
	b.WriteString("\n## Read-write locks\n\n" + readWriteLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == readWrite }, r.contended)
	b.WriteString("\n## Semaphores\n\n" + semaphoreLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == semaphore }, r.contended)
	b.WriteString("\n## Latches\n\n" + latchLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == latch }, r.fanOut)
	b.WriteString("\n## Asking all clients\n\n" + censusLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == attendance }, r.census)
	r.targets(&b)
	b.WriteString("\n" + notes + "\n" + waits + "\n" + scale)
	r.failures(&b)
	return b.String()
}

func (r record) intro(b *strings.Builder) {
	fmt.Fprintf(b, `# Performance

Written by `+"`%s`"+`; do not edit. `+"`make bench`"+` writes it anew.

`, r.Command)
	r.inShort(b)
	fmt.Fprintf(b, `**What these figures do not show.** Clients and server share %d cores and talk over loopback, where a round trip takes
some 50 µs. A real network has round trips of 300 to 500 µs: what is counted in round trips (hand-off) weighs more
there, what is counted in CPU time less; [longer ways](#longer-ways) shows some of it. At 64 goroutines and more the client's own CPU time is taken from the server's,
which flatters the client that needs least. There is no replica, no failover and no TLS here. Absolute figures are a
floor for better machines; only ratios within one table say something, and only those well outside of the ranges in
parentheses.

| | |
|---|---|
| machine | %s, %d cores, %s, %s |
| software | %s, %s |
| date | %s |
| method | %s; the implementations take turns (A, B, C, C, B, A), each measurement in fresh processes, %s; %s; %s; %s in all |

`, r.Machine.Cores, r.Machine.CPU, r.Machine.Cores, r.Machine.Memory, r.Machine.Kernel, r.Machine.Go, r.Machine.Server,
		r.Machine.Date, plural(r.Runs, "alternating run")+takenBy(r.Runs), r.Durations, spanTitle(r.Runs), r.Results.stolenText(), r.Took)
}

// takenBy says who does not take part in all alternations.
func takenBy(runs int) string {
	crowd, _ := scenarioNamed(crowdPasses)
	return fmt.Sprintf(", of which what decides no target takes part in %d, Redisson in %d at most and very many that wait in %d",
		(runs+2)/3, min(runs, redissonPeer.mostRuns), min(runs, crowd.MostRuns))
}

func (r record) settings(b *strings.Builder) {
	b.WriteString("## Who takes part\n\n")
	t := table{head: []string{"name", "what it is and how it is set"}}
	for _, i := range implementations {
		text := i.settings
		if why := r.Missing[i.name]; why != "" {
			text += ". Not measured: " + why
		}
		t.add(i.name, text)
	}
	for _, u := range unavailable {
		t.add(u.name, u.why)
	}
	b.WriteString(t.String())
	b.WriteString(floorLegend)
}

func (r record) sections(b *strings.Builder, wanted func(scenario) bool, render func(scenario) string) {
	for _, s := range scenarios {
		if !wanted(s) {
			continue
		}
		if text := render(s); text != "" {
			fmt.Fprintf(b, "\n### %s\n\n%s", s.Title, text)
		}
	}
}

const floorLegend = `
The floor excludes nobody and knows no trust window, no context of a hold and no watchdog: it is what two plain script
calls cost. Unless it says *no cancel*, each goroutine passes contexts of its own that can be cancelled, as those of
real callers can. That costs rueidis its shortest path. On go-redis it costs redlatch two changes of goroutines for each
request, because a caller of redlatch returns when its context ends, and go-redis does not; *callers stay* is without that.
`

const uncontendedLegend = `A pair is one acquire and one release. The first tables put redlatch beside the floor on the same client library, by the
number of goroutines. *No cancel* puts both beside each other with contexts that cannot be cancelled. Each ratio and each
difference is taken within an alternation. In the tables after these, *redlatch is ... times*: the rate of redlatch on
rueidis divided by this one's, run by run, median; a ~ behind it says that the rates do not differ clearly (Mann-Whitney U
test, p over 0.05), which takes four runs to say. CPU time, allocations, scripts, commands (those that scripts call
included) and bytes on the network are per pair.
`

// widths has a table for each client library, a line for each number of goroutines.
func (r record) widths(b *strings.Builder) {
	for _, c := range []struct {
		client             string
		us, base           implementation
		endless, endlessly implementation
	}{
		{"rueidis", redlatchRueidis, floorRueidis, redlatchEndless, floorEndless},
		{"go-redis", redlatchGoredis, floorGoredis, redlatchGoredisEndless, floorGoredisEndless},
		{"go-redis, whose callers stay", redlatchStay, floorGoredis, implementation{}, implementation{}},
		{"go-redis with shared pipelines", redlatchShared, floorGoredis, implementation{}, implementation{}},
		{"valkey-go", redlatchValkeygo, floorValkeygo, implementation{}, implementation{}},
	} {
		t := table{head: []string{
			"goroutines", "pairs/s", "rate: part of the floor's", "client CPU µs beyond the floor's", "allocations beyond the floor's",
			"times redislock", "no cancel: part of the floor's rate", "client CPU µs beyond the floor's",
		}}
		for _, n := range allWidths {
			of := func(a, b implementation, compare comparing) string {
				return spanOf(r.Results.paired(row{uncontended(n), a.name}, row{uncontended(n), b.name}, compare))
			}
			if len(finished(r.Results.of(uncontended(n), c.us.name))) == 0 {
				continue
			}
			t.add(
				fmt.Sprint(n), short(r.Results.median(uncontended(n), c.us.name, rate)),
				of(c.us, c.base, ratioOf(rate, rate)), of(c.us, c.base, lessOf(clientCPU)), of(c.us, c.base, lessOf(allocs)),
				of(c.us, redislockDefault, ratioOf(rate, rate)),
				of(c.endless, c.endlessly, ratioOf(rate, rate)), of(c.endless, c.endlessly, lessOf(clientCPU)),
			)
		}
		if text := t.text(); text != "" {
			fmt.Fprintf(b, "\n### redlatch on %s, by goroutines\n\n%s", c.client, text)
		}
	}
}

func (r record) uncontended(s scenario) string {
	t := table{head: []string{
		"", "pairs/s", "redlatch is ... times", "pair p50 µs", "p99 µs", "client CPU µs", "server CPU µs",
		"allocations", "allocated B", "scripts", "commands", "network B",
	}}
	for _, i := range implementations {
		row := r.Results.of(s.Name, i.name)
		if !t.started(i, row) {
			continue
		}
		m := medians(row)
		java := i.open == nil
		t.add(
			i.name+r.unfinished(row), spanOf(figures(row, rate)), r.relative(s, i),
			unless(java, m.PairP50), unless(java, m.PairP99), short(m.ClientCPU), short(m.ServerCPU),
			unless(java, m.Allocs), unless(java, m.AllocBytes), short(m.Scripts), short(m.Commands), short(m.NetBytes),
		)
	}
	return t.text()
}

const contendedLegend = `*Hand-off* is the time from the start of an unlock to the return of the lock in another goroutine; *passed on* is the
part of the acquisitions that came about so, the rest went to the same goroutine again. A high rate with little passed
on is one goroutine that locks and unlocks while the others starve: look at Jain's index (1: all goroutines get the
same; 1/n: one gets all) and at the least and most that a goroutine got, where 1 is its fair share. An *overlap* is two
holders inside at once, counted outside of Redis.
`

const processesLegend = `As above; goroutines are those of all processes. *Process share* is the least and the most that any of the four got in
any run. Redlatch runs longer than the others here, so that turns between processes show.
`

const farLegend = `A plain lock, and one goroutine in each process, so that every hand-off is one to another process. A proxy holds back all
that clients send, that of etcd included. *One EVALSHA* is the floor's, alone and at the same pace: a round trip, which is
the least that a hand-off between processes can take, since the release must reach the server before the next holder can
be told. Of redislock, which polls, only those hand-offs count that went to another process, not how long the lock was free
of everybody for.
`

const crowdLegend = `100 processes with 100 goroutines each on one key: 10,000 callers wait. *To another process* is the part of the acquisitions
that followed another process's. If all processes asked at each release, it would take 100 scripts to hand the lock to another
one. It is measured when the turns go round, 10 s after the start. The second table has somebody else keep the lock all the
time. What it says is the price of waiting, for each second and all 10,000 callers; commands are those that scripts call and
the PING by which a client looks after an idle connection.
`

// crowd is a table of very many that wait.
func (r record) crowd(s scenario) string {
	t := table{head: []string{
		"", "acquisitions/s", "hand-off p50 µs", "p99 µs", "to another process", "scripts", "commands",
		"scripts for each hand-off to another process", "commands", "client CPU µs", "server CPU µs", "overlaps",
	}}
	if s.Held {
		t.head = []string{"", "scripts/s", "commands/s", "network B/s", "client CPU ms/s", "server CPU ms/s", "acquired nevertheless"}
	}
	for _, i := range implementations {
		row := r.Results.of(s.Name, i.name)
		if !t.started(i, row) {
			continue
		}
		m := medians(row)
		if s.Held {
			t.add(i.name+r.unfinished(row), spanOf(figures(row, scriptsOf)), spanOf(figures(row, commandsOf)), short(m.NetBytes),
				short(m.ClientCPU/1000), short(m.ServerCPU/1000), overlaps(row))
			continue
		}
		t.add(i.name+r.unfinished(row), spanOf(figures(row, rate)), short(m.HandOffP50), short(m.HandOffP99), percent(m.Crossed),
			short(m.Scripts), short(m.Commands), spanOf(figures(row, perCrossing(scriptsOf))), spanOf(figures(row, perCrossing(commandsOf))),
			short(m.ClientCPU), short(m.ServerCPU), overlaps(row))
	}
	return t.text()
}

const fairLegend = `As above, but the lock passes through Redis each time, in the order in which callers asked for it. With one goroutine in
each process every hand-off is one to another process; the pause after it keeps the last holder's next request out of
its way. *One EVALSHA* is what hand-offs are measured by: half of what the floor needs for the two scripts of a fair lock
over the same link, alone and at the same pace. Where round trips take longer a proxy holds back all that clients send.
rueidislock is not fair: a caller of the same process may come first, which is quicker.
`

const readWriteLegend = `As above; an *overlap* is a writer inside beside anybody else. An acquisition is a reader's or a writer's. Readers
who need not wait go on until Go's scheduler lets the next goroutine run, so their shares say little.
`

const semaphoreLegend = `As above, but several hold a permit at once; an *overlap* is one holder more than there are permits, counted outside of
Redis. With an empty section there are hardly ever as many inside; where the section sleeps it would show. Permits of
redlatch pass from goroutine to goroutine without a request, like its locks.
`

const latchLegend = `*Fan-out* is the time from the call that counts down to 0 to the return of the last of all that wait. It begins when all
of them have called and the process has come to rest: 100 ms in which it used 10 ms of CPU time at most. Those who wait
and who counts down have one client. CPU time, scripts, commands and bytes are per round: setting the count, 1,000 that
come, the count-down, 1,000 that return. *Too early* is who returned before the count-down.
`

// fanOut is a table of rounds.
func (r record) fanOut(s scenario) string {
	t := table{head: []string{
		"", "fan-out p50 µs", "redlatch needs ... of that", "p99 µs", "rounds", "client CPU µs", "server CPU µs",
		"allocations", "scripts", "commands", "network B", "too early",
	}}
	for _, i := range implementations {
		row := r.Results.of(s.Name, i.name)
		if !t.started(i, row) {
			continue
		}
		m := medians(row)
		part := short(median(paired(r.Results.of(s.Name, redlatchRueidis.name), row, ratioOf(handOffP50, handOffP50))))
		var rounds int64
		for _, m := range row {
			rounds += m.Acquisitions
		}
		t.add(
			i.name+r.unfinished(row), spanOf(figures(row, handOffP50)), part, short(m.HandOffP99), fmt.Sprint(rounds),
			short(m.ClientCPU), short(m.ServerCPU), unless(i.open == nil, m.Allocs), short(m.Scripts), short(m.Commands),
			short(m.NetBytes), overlaps(row),
		)
	}
	return t.text()
}

const censusLegend = `Each client has connections of its own and holds a lock; one in ten waits for another one. Somebody calls Client.Participants, which asks all of
them and then looks up in Redis what they say. What the server does meanwhile is measured by windows with a question and
windows without one, in turn; the difference is for one question. *Part of a core* is what it comes to if somebody asks that often.
`

// census is a table of questions.
func (r record) census(s scenario) string {
	t := table{head: []string{"", "part of a core of the server", "server CPU ms", "scripts", "commands", "network B", "answer after ms"}}
	for _, i := range implementations {
		row := r.Results.of(s.Name, i.name)
		if !t.started(i, row) {
			continue
		}
		m := medians(row)
		t.add(i.name+r.unfinished(row), spanOf(figures(row, coreShare))+" %", short(m.ServerCPU/1000), short(m.Scripts), short(m.Commands),
			short(m.NetBytes), short(median(figures(row, opP50))/1000))
	}
	return t.text()
}

func (r record) contended(s scenario) string {
	t := table{head: []string{
		"", "acquisitions/s", "redlatch is ... times", "hand-off p50 µs", "p99 µs", "passed on", "Jain", "least / most",
		"client CPU µs", "server CPU µs", "allocations", "scripts", "commands", "network B", "overlaps",
	}}
	if s.Processes > 1 {
		t.head = slices.Insert(t.head, 8, "process share")
	}
	link := ""
	for _, i := range implementations {
		row := r.Results.of(s.Name, i.name)
		if i.kind == floor {
			if len(finished(row)) > 0 {
				link = fmt.Sprintf("\nOne EVALSHA: p50 %s µs.\n", spanOf(figures(row, oneScript)))
			}
			continue
		}
		if !t.started(i, row) {
			continue
		}
		m := medians(row)
		java := i.open == nil
		cells := []string{
			i.name + r.unfinished(row), spanOf(figures(row, rate)), r.relative(s, i),
			unless(m.HandOffP50 == 0, m.HandOffP50), unless(m.HandOffP99 == 0, m.HandOffP99), passedOn(s, m), short(m.Jain),
			short(m.LeastShare) + " / " + short(m.MostShare),
			short(m.ClientCPU), unless(!i.counted(), m.ServerCPU), unless(java, m.Allocs), unless(!i.counted(), m.Scripts),
			unless(!i.counted(), m.Commands), unless(!i.counted(), m.NetBytes), overlaps(row),
		}
		if s.Processes > 1 {
			cells = slices.Insert(cells, 8, processShares(row))
		}
		t.add(cells...)
	}
	return t.text() + link
}

// started adds a row for what did not finish in any run, and reports whether
// there is something to show.
func (t *table) started(i implementation, row []measurement) bool {
	if len(row) == 0 {
		return false
	}
	if len(finished(row)) == 0 {
		t.add(i.name, "did not finish")
		return false
	}
	return true
}

// text is empty if nothing was measured.
func (t *table) text() string {
	if len(t.rows) == 0 {
		return ""
	}
	return t.String()
}

func (r record) unfinished(row []measurement) string {
	if n := len(row) - len(finished(row)); n > 0 {
		return fmt.Sprintf(" (%d of %d runs did not finish)", n, len(row))
	}
	return ""
}

func (r record) relative(s scenario, i implementation) string {
	if i.name == redlatchRueidis.name {
		return "1"
	}
	ours, theirs := r.Results.of(s.Name, redlatchRueidis.name), r.Results.of(s.Name, i.name)
	return short(median(paired(ours, theirs, ratioOf(rate, rate)))) + alike(figures(ours, rate), figures(theirs, rate))
}

// medians takes the median of each figure by itself.
func medians(row []measurement) measurement {
	of := func(f metric) float64 { return median(figures(row, f)) }
	return measurement{
		PairP50: of(func(m measurement) float64 { return m.PairP50 }), PairP99: of(func(m measurement) float64 { return m.PairP99 }),
		HandOffP50: of(handOffP50), HandOffP99: of(func(m measurement) float64 { return m.HandOffP99 }),
		HandedOn: of(func(m measurement) float64 { return m.HandedOn }), Crossed: of(func(m measurement) float64 { return m.Crossed }), Jain: of(jainIndex),
		LeastShare: of(func(m measurement) float64 { return m.LeastShare }), MostShare: of(func(m measurement) float64 { return m.MostShare }),
		Scripts: of(func(m measurement) float64 { return m.Scripts }), Commands: of(func(m measurement) float64 { return m.Commands }),
		NetBytes: of(func(m measurement) float64 { return m.NetBytes }), Allocs: of(allocs),
		AllocBytes: of(func(m measurement) float64 { return m.AllocBytes }), ClientCPU: of(func(m measurement) float64 { return m.ClientCPU }),
		ServerCPU: of(func(m measurement) float64 { return m.ServerCPU }),
	}
}

func unless(unknown bool, f float64) string {
	if unknown || math.IsNaN(f) {
		return "-"
	}
	return short(f)
}

func passedOn(s scenario, m measurement) string {
	if s.Lock == readWrite || s.Lock == semaphore {
		return "-"
	}
	return percent(m.HandedOn)
}

func overlaps(row []measurement) string {
	var n int64
	for _, m := range row {
		n += m.Violations
	}
	return fmt.Sprint(n)
}

func processShares(row []measurement) string {
	var all []float64
	for _, m := range finished(row) {
		all = append(all, m.ProcessShares...)
	}
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s to %s", percent(slices.Min(all)), percent(slices.Max(all)))
}

func (r record) targets(b *strings.Builder) {
	b.WriteString("\n## What redlatch set out to reach\n\nFor redlatch on rueidis unless it says otherwise. Ratios are taken within each alternation; their median decides, its\nrange is in parentheses, as above. Shares and overlaps are strict: the worst run decides.\n\n")
	t := table{head: []string{"", "target", "this run", ""}}
	for _, v := range r.Results.verdicts() {
		figure := v.Figure
		if figure == "" {
			figure = "-"
		}
		t.add(v.Claim, v.Target, figure, v.Met)
	}
	b.WriteString(t.String())
}

// failures lists what did not finish or failed, once for each text.
func (r record) failures(b *strings.Builder) {
	t := table{head: []string{"scenario", "who", "runs", "what happened"}}
	type failure struct{ scenario, who, text string }
	count := map[failure]int{}
	var order []failure
	for _, m := range r.Results {
		f := failure{m.Scenario, m.Implementation, ""}
		switch {
		case m.DidNotFinish != "":
			f.text = "did not finish: " + m.DidNotFinish
		case m.Errors > 0:
			f.text = "errors, the first: " + m.FirstError
		default:
			continue
		}
		if count[f] == 0 {
			order = append(order, f)
		}
		count[f]++
	}
	for _, f := range order {
		t.add(f.scenario, f.who, fmt.Sprint(count[f]), strings.ReplaceAll(strings.ReplaceAll(f.text, "\n", " "), "|", "\\|"))
	}
	if text := t.text(); text != "" {
		b.WriteString("\n## Errors and hangs\n\n" + text)
	}
}
