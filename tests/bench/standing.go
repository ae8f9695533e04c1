package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A contest has redlatch do the same as somebody else, to be told in words.
type contest struct {
	what  string
	than  func(results) string
	times func(results) []float64 // redlatch's figure divided by the other's, run by run
	less  bool                    // is better: it is a time
}

// The words for how redlatch stands.
const (
	ahead  = "Ahead"
	even   = "Level"
	behind = "Behind"
)

// standing finds the word for ratios of redlatch's figures to another's. A
// difference counts if it is more than tolerated and the interval is clear of 1.
// Of nothing there is no word.
func standing(ratios []float64, less bool) string {
	more, fewer := ahead, behind
	if less {
		more, fewer = behind, ahead
	}
	s := summarize(ratios)
	switch {
	case math.IsNaN(s.Center):
		return ""
	case s.Center > tolerated && s.Lo > 1:
		return more
	case s.Center < 1/tolerated && s.Hi < 1:
		return fewer
	default:
		return even
	}
}

func contests() []contest {
	us := redlatchRueidis.name
	var all []contest
	means := func(what string, us, other implementation) {
		all = append(all, contest{what, called(other.name), func(r results) []float64 { return r.meansOfWidths(us, other) }, false})
	}
	rates := func(what, scenario, us string, others ...string) {
		for _, other := range others {
			all = append(all, contest{what, called(other), func(r results) []float64 {
				return r.paired(row{scenario, us}, row{scenario, other}, ratioOf(rate, rate))
			}, false})
		}
	}
	best := func(what, scenario string) {
		all = append(all, contest{what + ", beside the quickest library", func(r results) string { return r.bestPeer(scenario) }, func(r results) []float64 {
			return r.paired(row{scenario, us}, row{scenario, r.bestPeer(scenario)}, ratioOf(rate, rate))
		}, false})
	}
	handOffs := func(what, scenario string, others ...string) {
		for _, other := range others {
			all = append(all, contest{what, called(other), func(r results) []float64 {
				return r.paired(row{scenario, us}, row{scenario, other}, ratioOf(handOffP50, handOffP50))
			}, true})
		}
	}
	limits := func(what, scenario string) {
		all = append(all, contest{what, called("one round trip, the limit"), func(r results) []float64 {
			return r.paired(row{scenario, us}, row{scenario, floorRueidis.name}, ratioOf(handOffP50, oneScript))
		}, true})
	}

	for _, n := range fewWidths {
		what := fmt.Sprintf("a key each, round trips %v longer, %s", withinZone, plural(n, "goroutine"))
		rates(what, zone(n), us, floorRueidis.name, redislockDefault.name, redsyncDefault.name, rueidislockOneKey.name)
		rates(what+", on go-redis", zone(n), redlatchGoredis.name, floorGoredis.name, redislockDefault.name)
	}
	means("a key each, mean of 1 to 512 goroutines", redlatchRueidis, floorRueidis)
	means("a key each, mean of 1 to 512 goroutines, on go-redis", redlatchGoredis, floorGoredis)
	means("a key each, mean of 1 to 512 goroutines, on go-redis", redlatchGoredis, redislockDefault)
	rates("a key each, 64 goroutines", uncontended(64), us,
		redislockDefault.name, redsyncDefault.name, rueidislockDefault.name, rueidislockOneKey.name, redissonPeer.name)
	rates("a key each, 64 goroutines, on go-redis with shared pipelines", uncontended(64), redlatchShared.name, redlatchGoredis.name, redislockDefault.name)
	best("one key, 16 goroutines", "contended-16")
	rates("one key, 16 goroutines", "contended-16", us, weighted.name)
	best("one key, 4 processes of 16 goroutines", "processes-4x16")
	for _, delay := range distances {
		what := fmt.Sprintf("one key, 4 processes, round trips %v longer", delay)
		rates(what, far(delay), us, redislockDefault.name, redislockFast.name, redissonPeer.name, etcdMutex.name)
		limits(what+", time of a hand-off", far(delay))
	}
	handOffs("fair lock, 4 processes, time of a hand-off", fairHandOff, rueidislockOneKey.name, redissonPeer.name, etcdMutex.name)
	limits("fair lock, 4 processes, time of a hand-off", fairHandOff)
	for _, delay := range distances {
		what := fmt.Sprintf("fair lock, 4 processes, round trips %v longer", delay)
		rates(what, farFair(delay), us, redislockDefault.name, redislockFast.name)
		handOffs(what+", time of a hand-off", farFair(delay), rueidislockOneKey.name, redissonPeer.name, etcdMutex.name)
		limits(what+", time of a hand-off", farFair(delay))
	}
	rates("read-write lock, one acquisition in 100 writes", "read-mostly-128", us, redissonPeer.name)
	rates("read-write lock, all read", "read-only-128", us, redissonPeer.name)
	rates("semaphore of 8 permits, 128 goroutines", semaphoreOf8, us, redissonPeer.name)
	handOffs("latch, time until 1,000 goroutines have gone on", latchFanOut, redissonPeer.name)
	return all
}

func called(name string) func(results) string { return func(results) string { return name } }

// A ranking has the contests in words: where redlatch is ahead, level and behind.
type ranking map[string][]struct{ what, text string }

// rank looks at all contests, or only at those with other libraries.
func (r record) rank(all bool) ranking {
	lines := ranking{}
	for _, c := range contests() {
		ratios := c.times(r.Results)
		word := standing(ratios, c.less)
		other, _ := implementationNamed(c.than(r.Results))
		if word == "" || !all && other.kind != peer {
			continue
		}
		text := fmt.Sprintf("%s times %s", short(median(ratios)), c.than(r.Results))
		if n := len(lines[word]); n > 0 && lines[word][n-1].what == c.what {
			lines[word][n-1].text += "; " + text
		} else {
			lines[word] = append(lines[word], struct{ what, text string }{c.what, text})
		}
	}
	return lines
}

func (l ranking) list(b *strings.Builder, words ...string) {
	for _, word := range words {
		if len(l[word]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n**%s**\n\n", word)
		for _, l := range l[word] {
			fmt.Fprintf(b, "* %s: %s\n", l.what, l.text)
		}
	}
}

// beside lists all contests, and which targets are not met.
func (r record) beside(b *strings.Builder) {
	lines := r.rank(true)
	if len(lines) == 0 {
		return
	}
	b.WriteString(besideLegend)
	lines.list(b, ahead, even, behind)
	verdicts := slices.DeleteFunc(r.verdicts(), func(v verdict) bool { return v.Met == notMeasured })
	count := map[string]int{}
	for _, v := range verdicts {
		count[v.Met]++
	}
	fmt.Fprintf(b, "\n**Targets:** %d of %d [are met](#what-redlatch-set-out-to-reach), %d are missed, and %d are not decided: the interval of the runs spans them.\n",
		count[met], len(verdicts), count[missed], count[undecided])
	for _, list := range []struct{ title, met string }{{"Missed", missed}, {"Not decided", undecided}} {
		if count[list.met] > 0 {
			fmt.Fprintf(b, "\n**%s**\n\n", list.title)
		}
		for _, v := range verdicts {
			if v.Met == list.met {
				fmt.Fprintf(b, "* %s: %s; the target is %s\n", v.Claim, v.Figure, v.Target)
			}
		}
	}
	b.WriteString("\n")
}

const besideLegend = `## Redlatch beside others

It runs on rueidis, unless another client is named. The figures compare acquisitions a second, or a time where the line
says so. Each is redlatch's figure as a multiple of the other's. The *floor* is two plain script calls on the same
client. *Level* means that the two differ by less than 5 %, or not clearly.
`
