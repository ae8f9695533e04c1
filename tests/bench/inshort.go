package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// inShort is the first screen of the page: what a user feels, in words and
// pictures.
func (r record) inShort(b *strings.Builder) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString(inShortLegend)
	r.alone(b)
	r.clients(b)
	r.wanted(b)
	r.between(b)
	if lines := r.rank(false); len(lines[behind]) > 0 {
		b.WriteString("* **Where others are better.** Each figure is redlatch's as a multiple of the other's.\n")
		for _, l := range lines[behind] {
			fmt.Fprintf(b, "    * %s: %s\n", l.what, l.text)
		}
	}
	b.WriteString(r.shown("performance-rueidis.svg") + r.shown("performance-goredis.svg"))
	if rates := r.ratesByWidth([]implementation{
		redlatchRueidis, floorRueidis, redlatchGoredis, redlatchShared, floorGoredis, redislockDefault, redsyncDefault, rueidislockOneKey,
	}); len(rates) > 0 {
		t := table{head: []string{"pairs/s, round trips " + ms(withinZone) + " longer, by goroutines"}}
		for _, n := range allWidths {
			t.head = append(t.head, fmt.Sprint(n))
		}
		for _, l := range rates {
			cells := []string{l.name}
			for _, v := range l.values {
				cells = append(cells, short(v))
			}
			t.add(cells...)
		}
		b.WriteString("\n" + t.String())
	}
	b.WriteString(r.shown("performance-handoff.svg"))
	if groups := r.handOffBars(); len(groups) > 0 {
		t := table{head: []string{"hand-off between processes, p50 ms"}}
		cells := map[string][]string{}
		var names []string
		for n, g := range groups {
			t.head = append(t.head, g.title)
			for _, bar := range g.bars {
				if cells[bar.name] == nil {
					names, cells[bar.name] = append(names, bar.name), []string{bar.name}
				}
				for len(cells[bar.name]) <= n {
					cells[bar.name] = append(cells[bar.name], "-")
				}
				cells[bar.name] = append(cells[bar.name], short(bar.ms))
			}
		}
		for _, name := range names {
			t.add(cells[name]...)
		}
		b.WriteString("\n" + t.String())
	}
	b.WriteString("\n")
}

const inShortLegend = `## In short

What a user feels. Clients and server share one machine. A proxy makes round trips longer, as a network does.

`

// ms prints a delay as "0.3 ms".
func ms(d time.Duration) string { return fmt.Sprintf("%g ms", float64(d.Microseconds())/1000) }

// millis prints microseconds as milliseconds.
func millis(us float64) string { return short(us/1000) + " ms" }

// span says what was measured of some, and of which: "0.97 to 0.98 ms", or one
// figure if they do not differ.
func (r record) span(scenario string, f metric, who ...implementation) (times string, names []string) {
	var all []float64
	for _, i := range who {
		if v := r.Results.median(scenario, i.name, f); known(v) {
			all = append(all, v)
			name, _, _ := strings.Cut(i.name, ",") // how it is set up stands in the tables
			names = append(names, name)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	least, most := millis(slices.Min(all)), millis(slices.Max(all))
	if least == most {
		return least, slices.Compact(names)
	}
	return strings.TrimSuffix(least, " ms") + " to " + most, slices.Compact(names)
}

// others says in a sentence how long others take.
func (r record) others(b *strings.Builder, scenario string, f metric, verb string, who ...implementation) {
	times, names := r.span(scenario, f, who...)
	switch last := len(names) - 1; {
	case last < 0:
	case last == 0:
		fmt.Fprintf(b, " %s %ss %s.", names[0], verb, times)
	default:
		fmt.Fprintf(b, "\n  %s and %s %s %s.", strings.Join(names[:last], ", "), names[last], verb, times)
	}
}

func pairP50(m measurement) float64 { return m.PairP50 }

// alone is about locks that nobody else wants.
func (r record) alone(b *strings.Builder) {
	const one = 1
	ours, _ := r.span(zone(one), pairP50, redlatchRueidis, redlatchGoredis)
	if ours == "" {
		return
	}
	fmt.Fprintf(b, "* **A lock that nobody else wants.** A round trip takes %s longer than over loopback, as within a zone. There an acquire and\n"+
		"  a release take %s.", ms(withinZone), ours)
	if floor, _ := r.span(zone(one), pairP50, floorRueidis, floorGoredis); floor != "" {
		fmt.Fprintf(b, " Two requests alone, the floor, take %s.", floor)
	}
	r.others(b, zone(one), pairP50, "take", redislockDefault, redsyncDefault, rueidislockOneKey)
	b.WriteString("\n")
}

// clients is about which client library to take.
func (r record) clients(b *strings.Builder) {
	const many = 64
	by := func(i implementation) float64 { return r.Results.median(zone(many), i.name, rate) }
	rueidis, shared, plain := by(redlatchRueidis), by(redlatchShared), by(redlatchGoredis)
	if !known(rueidis) || !known(shared) || !known(plain) {
		return
	}
	fmt.Fprintf(b, "* **Many at once, and which client library.** %d goroutines want a lock each, at the same distance. On rueidis they get %s locks\n"+
		"  a second, on go-redis %s, and on go-redis with shared pipelines %s.\n", many, short(rueidis), short(plain), short(shared))
}

// wanted is about a lock that many goroutines of one process want.
func (r record) wanted(b *strings.Builder) {
	const many = "contended-16"
	ours, best := r.Results.median(many, redlatchRueidis.name, rate), r.Results.bestPeer(many)
	if !known(ours) || best == "" {
		return
	}
	fmt.Fprintf(b, "* **One lock that 16 goroutines of a process want.** They do nothing with it. They get it %s times a second, and the next one has it after %s µs.\n"+
		"  The quickest of the others, %s, gets it %s times a second.\n",
		short(ours), short(r.Results.median(many, redlatchRueidis.name, handOffP50)), best, short(r.Results.median(many, best, rate)))
}

// between is about a lock that processes pass on to each other.
func (r record) between(b *strings.Builder) {
	for _, d := range distances {
		fair, plain := r.Results.median(farFair(d), redlatchRueidis.name, handOffP50), r.Results.median(far(d), redlatchRueidis.name, handOffP50)
		if !known(fair) || !known(plain) {
			continue
		}
		fmt.Fprintf(b, "* **From process to process, round trips %s longer.** After a release the next process has the lock in %s with FairLock,\n"+
			"  and in %s with Lock.", ms(d), millis(fair), millis(plain))
		r.others(b, far(d), handOffP50, "need", redislockDefault, redislockFast, rueidislockOneKey, redissonPeer, etcdMutex)
		b.WriteString(r.confirmedText(d) + "\n")
	}
}

// confirmedText is about the same with a replica.
func (r record) confirmedText(d time.Duration) string {
	fair, plain := r.Results.median(confirmed(farFair(d)), redlatchRueidis.name, handOffP50), r.Results.median(confirmed(far(d)), redlatchRueidis.name, handOffP50)
	if !known(fair) || !known(plain) {
		return ""
	}
	return fmt.Sprintf(" If a replica has to confirm, FairLock needs %s, and Lock %s.", millis(fair), millis(plain))
}
