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
}

var scenarios = makeScenarios()

func makeScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 64, 512} {
		all = append(all, scenario{
			Name:  fmt.Sprintf("uncontended-%d", n),
			Title: fmt.Sprintf("Uncontended, %s, a key each", plural(n, "goroutine")), Processes: 1, Goroutines: n,
		})
	}
	for _, section := range []time.Duration{0, time.Millisecond} {
		for _, n := range []int{2, 16, 128} {
			all = append(all, scenario{
				Name:  fmt.Sprintf("contended-%d%s", n, suffix(section)),
				Title: fmt.Sprintf("One key, 1 process x %d goroutines, %s", n, sectionTitle(section)), Processes: 1, Goroutines: n,
				Contended: true, Section: section,
			})
		}
	}
	for _, section := range []time.Duration{0, time.Millisecond} {
		all = append(all, scenario{
			Name:  "processes-4x16" + suffix(section),
			Title: "One key, 4 processes x 16 goroutines, " + sectionTitle(section), Processes: 4, Goroutines: 16,
			Contended: true, Section: section,
		})
	}
	return all
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
	uncontended, contended, fairness time.Duration // fairness: ours, several processes
	warm                             time.Duration
}

var (
	fullDurations  = durations{uncontended: 600 * time.Millisecond, contended: 500 * time.Millisecond, fairness: 10 * time.Second, warm: 200 * time.Millisecond}
	quickDurations = durations{uncontended: 300 * time.Millisecond, contended: 400 * time.Millisecond, fairness: 1500 * time.Millisecond, warm: 100 * time.Millisecond}
)

func (d durations) of(s scenario, i implementation) time.Duration {
	switch {
	case !s.Contended:
		return d.uncontended
	case s.Processes > 1 && i.kind == ours:
		return d.fairness
	default:
		return d.contended
	}
}
