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

// A record is a whole run, as -json writes it and -from reads it.
type record struct {
	Command   string            `json:"command"`
	Machine   machine           `json:"machine"`
	Runs      int               `json:"runs"`
	Durations string            `json:"durations"`
	Took      string            `json:"took"`
	Missing   map[string]string `json:"missing"` // implementation to why it was not measured
	Results   results           `json:"results"`
	Costs     []expense         `json:"costs"`
	Share     []shareFigure     `json:"serverShare,omitempty"`
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
	b.WriteString("\n## At the distance of a zone\n\n" + zoneLegend)
	r.zones(&b)
	r.proxy(&b)
	b.WriteString("\n## Uncontended\n\n" + uncontendedLegend)
	r.widths(&b)
	r.sections(&b, func(s scenario) bool {
		return !s.Contended && s.Delay == 0 && !s.Proxied && slices.Contains(fewWidths, s.Goroutines)
	}, r.uncontended)
	b.WriteString("\n## Contended, one process\n\n" + contendedLegend)
	r.sections(&b, func(s scenario) bool { return s.Contended && s.Processes == 1 && s.Lock == plainLock }, r.contended)
	b.WriteString("\n## Contended, four processes\n\n" + processesLegend)
	r.sections(&b, func(s scenario) bool {
		return s.Processes == 4 && s.Lock == plainLock && s.Delay == 0
	}, r.contended)
	b.WriteString("\n## Longer ways\n\n" + farLegend)
	r.sections(&b, func(s scenario) bool { return s.Contended && s.Lock == plainLock && s.Delay > 0 }, r.contended)
	b.WriteString("\n## Very many wait\n\n" + crowdLegend)
	r.sections(&b, func(s scenario) bool { return s.Name == crowdPasses || s.Name == crowdWaits }, r.crowd)
	b.WriteString("\n## Fair locks\n\n" + fairLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == fairLock }, r.contended)
	b.WriteString("\n## Read-write locks\n\n" + readWriteLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == readWrite }, r.contended)
	b.WriteString("\n## Semaphores\n\n" + semaphoreLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == semaphoreType }, r.contended)
	b.WriteString("\n## Latches\n\n" + latchLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == countDown }, r.fanOut)
	b.WriteString("\n## Asking all clients\n\n" + censusLegend)
	r.sections(&b, func(s scenario) bool { return s.Lock == attendance }, r.census)
	r.serverShare(&b)
	r.targets(&b)
	b.WriteString("\n" + notes + "\n" + waits + "\n" + r.scale())
	r.failures(&b)
	return b.String()
}

func (r record) intro(b *strings.Builder) {
	fmt.Fprintf(b, `# Performance

Written by `+"`%s`"+`; do not edit. `+"`make bench`"+` writes it anew.

`, r.Command)
	r.inShort(b)
	r.beside(b)
	fmt.Fprintf(b, `**What these figures do not show.** Clients and server share %d cores and talk over loopback, where a round trip takes
some 50 µs. A real network has round trips of 300 to 500 µs. There, round trips (as in a hand-off) weigh more, and CPU
time weighs less. [At the distance of a zone](#at-the-distance-of-a-zone) and [Longer ways](#longer-ways) show this. With
64 goroutines and more, the client takes its CPU time from the server, which favours the client that needs least. There
is no failover and no TLS here, and a replica only where a title says so.
Better machines reach at least these absolute figures. Only ratios within one table say something, and only those that
are well outside of the ranges in parentheses.

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
	return fmt.Sprintf("; measurements that decide no target take part in %d of them, Redisson in %d at most, and *very many wait* in %d",
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
The floor is what two plain script calls cost. It excludes nobody, and it has no trust window, no context of a hold and
no watchdog. Unless a name says *no cancel*, each goroutine passes contexts of its own that can be cancelled, as those
of real callers can. With such contexts rueidis cannot use its shortest path. On go-redis they cost redlatch a second
goroutine for a request, unless the server answers promptly: go-redis does not return when a context ends.
`

const uncontendedLegend = `A pair is one acquire and one release. The first tables compare redlatch with the floor on the same client library, by
the number of goroutines. Each ratio and each difference is taken within an alternation. In the tables after these, *redlatch is ... times* is the rate of redlatch on
rueidis divided by the rate of the row: it is taken run by run, and the median counts. A ~ behind it says that the rates
do not differ clearly (Mann-Whitney U test, p over 0.05). It takes at least four runs to say that. CPU time,
allocations, scripts, commands (with those that scripts call) and bytes on the network are per pair.
`

const zoneLegend = `A proxy delays all that clients send, so that a round trip takes 300 µs longer than over loopback: that is what it takes
within a zone of a cloud. A pair is one acquire and one release, so two round trips. Each ratio is taken within an
alternation. Of the other libraries, those that decide a target take part in each alternation. The proxy shares the
processors with clients and server. From the width on at which they are busy, it takes a part of what all of them reach.
`

// byClient has redlatch and its floor on each client library.
var byClient = []struct {
	client   string
	us, base implementation
}{
	{"rueidis", redlatchRueidis, floorRueidis},
	{"go-redis", redlatchGoredis, floorGoredis},
	{"go-redis with shared pipelines", redlatchShared, floorGoredis},
	{"valkey-go", redlatchValkeygo, floorValkeygo},
}

// zones has a table for each client library that is measured there, a line for
// each number of goroutines.
func (r record) zones(b *strings.Builder) {
	for _, c := range byClient {
		t := table{head: []string{
			"goroutines", "pairs/s", "pair p50 µs", "part of the floor's rate", "times redislock", "times redsync", "times rueidislock, 1 key", "client CPU µs beyond the floor's",
		}}
		for _, n := range allWidths {
			of := func(other implementation, compare comparing) string {
				return spanOf(r.Results.paired(row{zone(n), c.us.name}, row{zone(n), other.name}, compare))
			}
			if len(finished(r.Results.of(zone(n), c.us.name))) == 0 {
				continue
			}
			t.add(
				fmt.Sprint(n), short(r.Results.median(zone(n), c.us.name, rate)), short(r.Results.median(zone(n), c.us.name, pairP50)),
				of(c.base, ratioOf(rate, rate)), of(redislockDefault, ratioOf(rate, rate)), of(redsyncDefault, ratioOf(rate, rate)),
				of(rueidislockOneKey, ratioOf(rate, rate)), of(c.base, lessOf(clientCPU)),
			)
		}
		if text := t.text(); text != "" {
			fmt.Fprintf(b, "\n### redlatch on %s, round trips %v longer\n\n%s", c.client, withinZone, text)
		}
	}
}

// proxy is a table of what the way through the proxy costs the floors.
func (r record) proxy(b *strings.Builder) {
	t := table{head: []string{"", "goroutines", "pairs/s over loopback", "through the proxy, no delay", "pair p50 µs over loopback", "through the proxy, no delay"}}
	for _, i := range []implementation{floorRueidis, floorGoredis} {
		for _, n := range fewWidths {
			if len(finished(r.Results.of(proxied(n), i.name))) == 0 {
				continue
			}
			of := func(s string, f metric) string { return spanOf(figures(r.Results.of(s, i.name), f)) }
			t.add(i.name, fmt.Sprint(n), of(uncontended(n), rate), of(proxied(n), rate), of(uncontended(n), pairP50), of(proxied(n), pairP50))
		}
	}
	if text := t.text(); text != "" {
		b.WriteString("\n### What the proxy costs\n\n" + text)
	}
}

// widths has a table for each client library, a line for each number of
// goroutines.
func (r record) widths(b *strings.Builder) {
	for _, c := range byClient {
		t := table{head: []string{
			"goroutines", "pairs/s", "rate: part of the floor's", "client CPU µs beyond the floor's", "allocations beyond the floor's",
			"times redislock",
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

const contendedLegend = `*Hand-off* is the time from when a goroutine begins to unlock until another goroutine returns with the lock. *Passed on*
is the part of the acquisitions that came about in this way. The rest went to the same goroutine again. A high rate with
little passed on means that one goroutine locks and unlocks while the others starve. Two columns show this: Jain's index
(1: all goroutines get the same; 1/n: one gets all), and the least and the most that a goroutine got, where 1 is its
fair share. An *overlap* is two holders inside at once, counted outside of Redis.
`

const processesLegend = `As above. The goroutines are those of all processes. *Process share* is the least and the most that any of the four
processes got in any run. Redlatch runs longer than the others here, so that turns between processes show.
`

const farLegend = `A plain lock with one goroutine in each process, so that every hand-off goes to another process. [Fair locks](#fair-locks)
have the same with FairLock. A proxy delays all that clients send, also what the client of etcd sends. *One EVALSHA* is the floor's, alone and at the same pace. It is one
round trip, which is the least that a hand-off between processes can take: the release must reach the server before the
next holder can hear of it. redislock polls. Of its hand-offs only those count that went to another process. How long
the lock was free for everybody does not count. Where a replica confirms, the next holder waits for that too, so it is
told of its turn and not given it. The replica is on the same machine, and the server reaches it without the proxy.
`

const crowdLegend = `100 processes with 100 goroutines each want one key, so 10,000 callers wait. *To another process* is the part of the
acquisitions that followed an acquisition of another process. If all processes asked at each release, it would take 100
scripts to hand the lock to another process. The measurement begins 10 s after the start, when the turns go round. In
the second table somebody else keeps the lock all the time. It shows the price of waiting, for each second and all
10,000 callers. Commands are those that scripts call, and the PING by which a client checks an idle connection.
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
each process, every hand-off goes to another process. The pause after a hand-off keeps the next request of the last
holder out of its way. Hand-offs are compared with *one EVALSHA*: half of the time that the floor needs for the two
scripts of a fair lock over the same link, alone and at the same pace. Where round trips take longer, a proxy delays all
that clients send. rueidislock and redislock are not fair: a caller of the same process may come first, which is quicker.
`

const readWriteLegend = `As above. An *overlap* is a writer inside together with anybody else. An acquisition is a reader's or a writer's.
Readers that need not wait go on until Go's scheduler runs the next goroutine, so their shares say little.
`

const semaphoreLegend = `As above, but several goroutines hold a permit at once. An *overlap* is one holder more than there are permits, counted
outside of Redis. With an empty section there are hardly ever so many inside. Where the section sleeps, an overlap would
show. Permits of redlatch pass from goroutine to goroutine without a request, like its locks.
`

const latchLegend = `*Fan-out* is the time from the call that counts down to 0 until the last waiter has returned. That call is made when all
waiters have called and the process has come to rest, which is 100 ms in which it used 10 ms of CPU time at most. The
waiters and the goroutine that counts down share one client. CPU time, scripts, commands and bytes are per round:
setting the count, 1,000 waiters that come, the count-down, 1,000 waiters that return. *Too early* counts the waiters
that returned before the count-down.
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

const censusLegend = `Each client has connections of its own and holds a lock. One client in ten also waits for the lock of another one.
Somebody calls Participants of package admin, which asks all clients and then looks up in Redis what they say. The work of the
server is measured in windows with a question and in windows without one, in turn. The difference is the cost of one
question. *Part of a core* is that cost if somebody asks as often as the title says.
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
	if s.Lock == readWrite || s.Lock == semaphoreType {
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
	b.WriteString("\n## What redlatch set out to reach\n\nThe targets are for redlatch on rueidis, unless a line says otherwise. Ratios are taken within each alternation. The\ninterval of their median, in parentheses as above, decides: a target that it spans is *not decided*. For shares and overlaps\nthe worst run decides.\n\n")
	t := table{head: []string{"", "target", "this run", ""}}
	for _, v := range r.verdicts() {
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
