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
		all = append(all, contest{what, func(r results) string { return "the best of the others, " + r.bestPeer(scenario) }, func(r results) []float64 {
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
	for _, s := range []struct{ what, name string }{
		{"fair lock, 4 processes, time of a hand-off", fairHandOff},
		{fmt.Sprintf("fair lock, 4 processes, round trips %v longer, time of a hand-off", addedLatency), fairHandOffDelayed},
	} {
		handOffs(s.what, s.name, rueidislockOneKey.name, redissonPeer.name, etcdMutex.name)
		limits(s.what, s.name)
	}
	rates("read-write lock, one acquisition in 100 writes", "read-mostly-128", us, redissonPeer.name)
	rates("read-write lock, all read", "read-only-128", us, redissonPeer.name)
	rates("semaphore of 8 permits, 128 goroutines", semaphoreOf8, us, redissonPeer.name)
	handOffs("latch, time until 1,000 goroutines have gone on", latchFanOut, redissonPeer.name)
	return all
}

func called(name string) func(results) string { return func(results) string { return name } }

// inShort says in words what the run shows: where redlatch is ahead, level and
// behind, and which targets it misses.
func (r record) inShort(b *strings.Builder) {
	type line struct{ what, text string }
	lines := map[string][]line{}
	for _, c := range contests() {
		ratios := c.times(r.Results)
		word := standing(ratios, c.less)
		if word == "" {
			continue
		}
		text := fmt.Sprintf("%s times %s", short(median(ratios)), c.than(r.Results))
		if n := len(lines[word]); n > 0 && lines[word][n-1].what == c.what {
			lines[word][n-1].text += "; " + text
		} else {
			lines[word] = append(lines[word], line{c.what, text})
		}
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString(inShortLegend)
	for _, word := range []string{ahead, even, behind} {
		if len(lines[word]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n**%s**\n\n", word)
		for _, l := range lines[word] {
			fmt.Fprintf(b, "* %s: %s\n", l.what, l.text)
		}
	}
	verdicts := slices.DeleteFunc(r.Results.verdicts(), func(v verdict) bool { return v.Met == notMeasured })
	misses := slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return v.Met == met })
	fmt.Fprintf(b, "\n**Targets:** %d of %d [are met](#what-redlatch-set-out-to-reach)", len(verdicts)-len(misses), len(verdicts))
	if len(misses) == 0 {
		b.WriteString(".\n\n")
		return
	}
	b.WriteString("; missed:\n\n")
	for _, v := range misses {
		fmt.Fprintf(b, "* %s: %s instead of %s\n", v.Claim, v.Figure, v.Target)
	}
	b.WriteString("\n")
}

const inShortLegend = `## In short

How redlatch compares with others. It runs on rueidis, unless another client is named. The figures compare acquisitions
a second, or a time where the line says so. Each is redlatch's figure as a multiple of the other's. The *floor* is two
plain script calls on the same client. *Level* means that the two differ by less than 5 %, or not clearly.
`
