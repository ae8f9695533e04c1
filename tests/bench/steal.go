package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A virtual machine gets its processors from a host, which may give them to
// another for a while: it steals their time. A measurement during which that
// happens says nothing.

const (
	// mostStolen is the part of the CPU time that may be stolen from a measurement.
	mostStolen = 0.03
	// mostTries is how often one is made at most, to get one with less.
	mostTries = 3
	// spareTime is for how long a run repeats measurements, all in all.
	spareTime = 150 * time.Second
)

// machineTime is CPU time of the machine since it started, in any unit.
type machineTime struct{ all, stolen float64 }

// readMachineTime reads it from the text of /proc/stat; where there is none,
// nothing is stolen.
func readMachineTime(stat string) (t machineTime) {
	line, _, _ := strings.Cut(stat, "\n")
	words := strings.Fields(line)
	if len(words) < 9 || words[0] != "cpu" {
		return machineTime{}
	}
	for i, w := range words[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return machineTime{}
		}
		t.all += v
		if i == 7 {
			t.stolen = v
		}
	}
	return t
}

func machineTimeNow() machineTime {
	text, _ := os.ReadFile("/proc/stat")
	return readMachineTime(string(text))
}

// stolenSince returns the part of the CPU time that was stolen since then.
func (t machineTime) stolenSince(was machineTime) float64 {
	if t.all <= was.all {
		return 0
	}
	return (t.stolen - was.stolen) / (t.all - was.all)
}

// steady measures, and does so again while too much is stolen and there is time to
// spare. It returns the measurement from which least was stolen. What an
// implementation does wrong is not measured away.
func (b *bench) steady(measure func() (measurement, error)) (best measurement, err error) {
	for try := 1; ; try++ {
		began := time.Now()
		m, err := measure()
		if err != nil {
			return m, err
		}
		if try > 1 {
			b.spare -= time.Since(began)
		}
		if try == 1 || m.wrong() || m.Stolen < best.Stolen {
			best = m
		}
		best.Tries = try
		if best.wrong() || best.Stolen <= mostStolen || try == mostTries || b.spare <= 0 {
			return best, nil
		}
	}
}

func (m *measurement) wrong() bool { return m.DidNotFinish != "" || m.Violations > 0 || m.Errors > 0 }

// stolenText says what the host took, for those who read the figures.
func (r results) stolenText() string {
	again, over, most := 0, 0, 0.0
	for _, m := range r {
		if m.Tries > 1 {
			again++
		}
		if m.Stolen > mostStolen {
			over++
		}
		most = max(most, m.Stolen)
	}
	text := fmt.Sprintf("of %d measurements %d were made again, because the machine's host took more than %s of the CPU time meanwhile", len(r), again, percent(mostStolen))
	if over > 0 {
		text += fmt.Sprintf("; of %d it took more all the same, %s at most", over, percent(most))
	}
	return text
}
