package main

import (
	"fmt"
	"time"
)

// A scenario is what all implementations do in turn.
type scenario struct {
	Name       string        `json:"name"`
	Title      string        `json:"title"`
	Processes  int           `json:"processes"`
	Goroutines int           `json:"goroutines"` // per process
	Contended  bool          `json:"contended"`
	Section    time.Duration `json:"section"` // slept while holding the lock
	Pause      time.Duration `json:"pause"`   // slept before asking again
	Lock       lockType      `json:"lock"`
	Permits    int           `json:"permits"`    // of a semaphore
	WriteEvery int           `json:"writeEvery"` // of a read-write lock: each n-th acquisition of a goroutine writes; 0: none
	Delay      time.Duration `json:"delay"`      // added to each round trip to the server
	Proxied    bool          `json:"proxied"`    // through the proxy that adds delays, also where it adds none
	Replica    bool          `json:"replica"`    // confirms each acquisition of redlatch
	Held       bool          `json:"held"`       // by somebody else, all the time: all wait
	Only       []string      `json:"-"`          // the implementations that take part; nil: all that have such a lock
	Length     time.Duration `json:"-"`          // of a measurement; 0: as durations has it
	Warm       time.Duration `json:"-"`          // at least
	MostRuns   int           `json:"-"`          // 0: no limit
}

// A lockType is what is taken and released.
type lockType string

const (
	plainLock     lockType = ""
	fairLock      lockType = "fair"
	readWrite     lockType = "read-write"
	semaphoreType lockType = "semaphore"
	countDown     lockType = "latch"      // what the goroutines wait at, to be let go all at once
	attendance    lockType = "attendance" // each goroutine is a client; somebody asks them all
)

// fairHandOff is the scenario of the hand-off of a fair lock from process to
// process.
const fairHandOff = "fair-4x1-1ms"

// The scenarios of few and of many that wait for a fair lock.
const (
	fairFewWait  = "fair-4x4"
	fairManyWait = "fair-4x128"
)

// The scenarios of very many that wait for one lock, in very many processes.
const (
	crowdPasses = "waiters-100x100"
	crowdWaits  = "waiters-100x100-held"
)

// censusOf1000 is the scenario of very many clients that are asked what they hold
// and wait for.
const censusOf1000 = "census-1000"

// far and farFair are the names of the scenarios of the hand-off of a plain and of
// a fair lock from process to process where round trips take so much longer.
func far(delay time.Duration) string     { return "far-4x1-1ms-" + delay.String() }
func farFair(delay time.Duration) string { return fairHandOff + "-" + delay.String() }

// confirmed is the name of such a scenario where a replica confirms each
// acquisition.
func confirmed(name string) string { return name + "-replica" }

// distances are what round trips take longer, between machines and between zones.
var distances = []time.Duration{500 * time.Microsecond, 2 * time.Millisecond}

// withinZone is what a round trip within a zone takes longer than one over
// loopback.
const withinZone = 300 * time.Microsecond

// The scenarios of what is not a lock.
const (
	semaphoreOf8 = "semaphore-8x128"
	latchFanOut  = "latch-1000"
)

// How many goroutines the uncontended scenarios have. At fewWidths all take part
// and have a row of their own; the tables of all widths compare redlatch with its
// floors.
var (
	allWidths = []int{1, 2, 4, 8, 16, 32, 64, 128, 512}
	fewWidths = []int{1, 64, 512}
	// upTo64 are those at which round trips decide, and not processors.
	upTo64 = allWidths[:7]
)

var scenarios = makeScenarios()

func makeScenarios() []scenario {
	var all []scenario
	for _, n := range allWidths {
		all = append(all, scenario{
			Name:  uncontended(n),
			Title: fmt.Sprintf("Uncontended, %s, a key each", plural(n, "goroutine")), Processes: 1, Goroutines: n,
		})
	}
	for _, n := range allWidths {
		all = append(all, scenario{
			Name:  zone(n),
			Title: fmt.Sprintf("Uncontended, %s, a key each, round trips %v longer", plural(n, "goroutine"), withinZone), Processes: 1, Goroutines: n,
			Delay: withinZone, Only: []string{
				redlatchRueidis.name, floorRueidis.name, redlatchGoredis.name, floorGoredis.name, redlatchShared.name,
				redislockDefault.name, redsyncDefault.name, rueidislockOneKey.name,
			},
		})
	}
	for _, n := range fewWidths {
		all = append(all, scenario{
			Name:  proxied(n),
			Title: fmt.Sprintf("Uncontended, %s, a key each, through a proxy that adds no delay", plural(n, "goroutine")), Processes: 1, Goroutines: n,
			Proxied: true, Only: []string{floorRueidis.name, floorGoredis.name},
		})
	}
	for _, c := range []struct {
		goroutines int
		section    time.Duration
	}{{16, 0}, {128, 0}, {16, time.Millisecond}} {
		all = append(all, scenario{
			Name:  fmt.Sprintf("contended-%d%s", c.goroutines, suffix(c.section)),
			Title: fmt.Sprintf("One key, 1 process x %d goroutines, %s", c.goroutines, sectionTitle(c.section)), Processes: 1, Goroutines: c.goroutines,
			Contended: true, Section: c.section,
		})
	}
	for _, section := range []time.Duration{0, time.Millisecond} {
		all = append(all, scenario{
			Name:  "processes-4x16" + suffix(section),
			Title: "One key, 4 processes x 16 goroutines, " + sectionTitle(section), Processes: 4, Goroutines: 16,
			Contended: true, Section: section,
		})
	}
	fair := scenario{
		Name: "fair-4x16", Title: "One fair lock, 4 processes x 16 goroutines, " + sectionTitle(0),
		Processes: 4, Goroutines: 16, Contended: true, Lock: fairLock,
	}
	// Here the last holder lines up again while the next one is inside, so that
	// this is not in the way of a hand-off.
	handOff := fair
	handOff.Name, handOff.Goroutines, handOff.Section, handOff.Pause = fairHandOff, 1, time.Millisecond, 500*time.Microsecond
	handOff.Title = fmt.Sprintf("One fair lock, 4 processes x 1 goroutine, %s, pauses of %v", sectionTitle(handOff.Section), handOff.Pause)
	few, many := fair, fair
	few.Name, few.Title, few.Goroutines = fairFewWait, "One fair lock, 4 processes x 4 goroutines, "+sectionTitle(0), 4
	many.Name, many.Title, many.Goroutines = fairManyWait, "One fair lock, 4 processes x 128 goroutines, "+sectionTitle(0), 128
	few.Length, many.Length, many.Warm = time.Second, 2*time.Second, time.Second // all 512 are to have lined up
	few.Only, many.Only = []string{redlatchRueidis.name}, []string{redlatchRueidis.name}
	all = append(all, fair, handOff, few, many)
	for _, delay := range distances {
		queued := handOff
		queued.Name, queued.Delay, queued.Length = farFair(delay), delay, time.Second
		queued.Title += fmt.Sprintf(", round trips %v longer", delay)
		queued.Only = []string{
			redlatchRueidis.name, floorRueidis.name, redlatchGoredis.name, redislockDefault.name, redislockFast.name,
			rueidislockOneKey.name, redissonPeer.name, etcdMutex.name,
		}
		plain := queued
		plain.Name, plain.Lock = far(delay), plainLock
		plain.Title = fmt.Sprintf("One key, 4 processes x 1 goroutine, %s, pauses of %v, round trips %v longer", sectionTitle(plain.Section), plain.Pause, delay)
		all = append(all, plain, queued)
		for _, s := range []scenario{plain, queued} {
			s.Name, s.Replica, s.Only = confirmed(s.Name), true, []string{redlatchRueidis.name}
			s.Title += ", a replica confirms"
			all = append(all, s)
		}
	}
	crowd := scenario{
		Name: crowdPasses, Title: "One key, 100 processes x 100 goroutines, " + sectionTitle(time.Millisecond),
		Processes: 100, Goroutines: 100, Contended: true, Section: time.Millisecond, Only: []string{redlatchRueidis.name},
		Length: 5 * time.Second, Warm: 10 * time.Second, MostRuns: 3, // until each process has had its turn
	}
	waits := crowd
	waits.Warm = 3 * time.Second
	waits.Name, waits.Title, waits.Held = crowdWaits, "One key that somebody else keeps, 100 processes x 100 goroutines", true
	all = append(all, crowd, waits)
	for _, r := range []struct {
		name, what string
		every      int
	}{{"read-mostly-128", "one acquisition in 100 writes", 100}, {"read-only-128", "all read", 0}} {
		all = append(all, scenario{
			Name: r.name, Title: "One read-write lock, 1 process x 128 goroutines, empty section, " + r.what,
			Processes: 1, Goroutines: 128, Contended: true, Lock: readWrite, WriteEvery: r.every,
		})
	}
	for _, section := range []time.Duration{0, time.Millisecond} {
		all = append(all, scenario{
			Name: semaphoreOf8 + suffix(section), Title: "One semaphore of 8 permits, 1 process x 128 goroutines, " + sectionTitle(section),
			Processes: 1, Goroutines: 128, Contended: true, Lock: semaphoreType, Permits: 8, Section: section,
		})
	}
	return append(all, scenario{
		Name: latchFanOut, Title: "One latch, 1,000 goroutines of 1 process wait",
		Processes: 1, Goroutines: 1000, Contended: true, Lock: countDown,
	}, scenario{
		Name: censusOf1000, Title: fmt.Sprintf("1,000 clients are asked every %v what they hold and wait for", refresh),
		Processes: 4, Goroutines: 250, Contended: true, Lock: attendance, Only: []string{redlatchRueidis.name},
		Length: 6 * censusWindow, Warm: 4 * time.Second, MostRuns: 1, // until all have written who they are
	})
}

// uncontended is the name of the scenario with so many goroutines.
func uncontended(goroutines int) string { return fmt.Sprintf("uncontended-%d", goroutines) }

// zone is the name of the scenario with so many goroutines at the distance of a
// zone.
func zone(goroutines int) string { return fmt.Sprintf("zone-%d", goroutines) }

// proxied is the same with the way through the proxy alone.
func proxied(goroutines int) string { return fmt.Sprintf("proxied-%d", goroutines) }

// alone is what the floor, which excludes nobody, does where the others contend:
// it says what a script costs over the same link, at the same pace.
func (s scenario) alone() scenario {
	s.Processes, s.Goroutines = 1, 1
	return s
}

func suffix(section time.Duration) string {
	if section == 0 {
		return ""
	}
	return "-" + section.String()
}

func sectionTitle(section time.Duration) string {
	if section == 0 {
		return "empty section"
	}
	return "section sleeps " + section.String()
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func scenarioNamed(name string) (scenario, bool) {
	for _, s := range scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return scenario{}, false
}

// durations says how long each measurement takes.
type durations struct {
	uncontended, contended, fairness, fanOut time.Duration // fairness: ours, several processes
	warm                                     time.Duration
}

var (
	fullDurations  = durations{uncontended: 250 * time.Millisecond, contended: 500 * time.Millisecond, fairness: 4 * time.Second, fanOut: time.Second, warm: 100 * time.Millisecond}
	quickDurations = durations{uncontended: 300 * time.Millisecond, contended: 400 * time.Millisecond, fairness: 1500 * time.Millisecond, fanOut: time.Second, warm: 100 * time.Millisecond}
)

func (d durations) of(s scenario, i implementation) time.Duration {
	switch {
	case s.Length > 0 && i.kind != floor:
		return s.Length
	case !s.Contended || i.kind == floor:
		return d.uncontended
	case s.Processes > 1 && i.kind == ours && s.Lock == plainLock:
		return d.fairness
	case s.Lock == countDown:
		return d.fanOut
	default:
		return d.contended
	}
}

// warmUp is how long goroutines run before they are measured.
func (d durations) warmUp(s scenario) time.Duration { return max(d.warm, s.Warm) }
