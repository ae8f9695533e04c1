package main

import (
	"fmt"
	"strings"
	"time"
)

// inShort is the first screen of the page: what a user feels, in words and pictures.
func (r record) inShort(b *strings.Builder) {
	if len(r.Results) == 0 {
		return
	}
	b.WriteString(inShortLegend)
	r.alone(b)
	r.wanted(b)
	r.between(b)
	r.clients(b)
	if lines := r.rank(false); len(lines[behind]) > 0 {
		b.WriteString("* **Where others are better.** Each figure is redlatch's as a multiple of the other's.\n")
		for _, l := range lines[behind] {
			fmt.Fprintf(b, "  * %s: %s\n", l.what, l.text)
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

// told lists what was measured of each, as in "redislock (0.75 ms)".
func (r record) told(scenario string, f metric, text func(float64) string, who ...implementation) string {
	var all []string
	for _, i := range who {
		if v := r.Results.median(scenario, i.name, f); known(v) {
			all = append(all, i.name+" ("+text(v)+")")
		}
	}
	return strings.Join(all, ", ")
}

func pairP50(m measurement) float64 { return m.PairP50 }

// alone is about locks that nobody else wants.
func (r record) alone(b *strings.Builder) {
	times := r.told(zone(1), pairP50, millis, redlatchRueidis, redlatchGoredis, redislockDefault, redsyncDefault, rueidislockOneKey, floorRueidis, floorGoredis)
	if times == "" {
		return
	}
	fmt.Fprintf(b, "* **A lock that nobody else wants,** where a round trip takes %s longer than over loopback, as within a zone. An\n"+
		"  acquire and a release together take: %s. The floor is the two requests alone.\n", ms(withinZone), times)
}

// wanted is about a lock that many goroutines of one process want.
func (r record) wanted(b *strings.Builder) {
	const many = "contended-16"
	ours, best := r.Results.median(many, redlatchRueidis.name, rate), r.Results.bestPeer(many)
	if !known(ours) || best == "" {
		return
	}
	fmt.Fprintf(b, "* **A lock that 16 goroutines of one process want,** and do nothing with: they get it %s times a second, and the next one has it\n"+
		"  after %s µs. The quickest of the others, %s, gets it %s times a second.\n",
		short(ours), short(r.Results.median(many, redlatchRueidis.name, handOffP50)), best, short(r.Results.median(many, best, rate)))
}

// between is about a lock that processes pass on to each other.
func (r record) between(b *strings.Builder) {
	for _, d := range distances {
		fair, plain := r.Results.median(farFair(d), redlatchRueidis.name, handOffP50), r.Results.median(far(d), redlatchRueidis.name, handOffP50)
		if !known(fair) || !known(plain) {
			continue
		}
		text := fmt.Sprintf("* **A lock that goes from process to process,** where a round trip takes %s longer. After the release began, the next\n"+
			"  process has it in %s with FairLock, and in %s with Lock.", ms(d), millis(fair), millis(plain))
		if others := r.told(far(d), handOffP50, millis, redislockDefault, redislockFast, rueidislockOneKey, redissonPeer, etcdMutex); others != "" {
			text += " The others: " + others + "."
		}
		b.WriteString(text + r.confirmedText(d) + "\n")
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

// clients is about which client library to take.
func (r record) clients(b *strings.Builder) {
	var all []string
	for _, n := range fewWidths {
		if rates := r.told(zone(n), rate, short, redlatchRueidis, redlatchGoredis, redlatchShared); rates != "" {
			all = append(all, fmt.Sprintf("with %s, %s", plural(n, "goroutine"), rates))
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(b, "* **Which client.** Pairs of acquire and release a second, where a round trip takes %s longer: %s.\n", ms(withinZone), strings.Join(all, "; "))
	}
}
