package main

import "slices"

// results are all measurements of a run, in the order in which they were made.
type results []measurement

// of returns the measurements of one table row, by run.
func (r results) of(scenario, implementation string) []measurement {
	var row []measurement
	for _, m := range r {
		if m.Scenario == scenario && m.Implementation == implementation {
			row = append(row, m)
		}
	}
	return row
}

// finished returns those that did.
func finished(row []measurement) []measurement {
	return slices.DeleteFunc(slices.Clone(row), func(m measurement) bool { return m.DidNotFinish != "" })
}

// A metric is a figure of a measurement.
type metric func(measurement) float64

func rate(m measurement) float64       { return m.Rate }
func allocs(m measurement) float64     { return m.Allocs }
func clientCPU(m measurement) float64  { return m.ClientCPU }
func handOffP50(m measurement) float64 { return m.HandOffP50 }
func opP50(m measurement) float64      { return m.OpP50 }
func oneScript(m measurement) float64  { return m.PairP50 / 2 } // of the floor: a pair is two scripts
func perHandOff(f metric) metric       { return func(m measurement) float64 { return f(m) / m.HandedOn } }

func perCrossing(f metric) metric      { return func(m measurement) float64 { return f(m) / m.Crossed } }
func scriptsOf(m measurement) float64  { return m.Scripts }
func commandsOf(m measurement) float64 { return m.Commands }
func serverCPU(m measurement) float64  { return m.ServerCPU }
func jainIndex(m measurement) float64  { return m.Jain }

// figures returns the metric of those measurements that finished.
func figures(row []measurement, f metric) []float64 {
	var all []float64
	for _, m := range finished(row) {
		all = append(all, f(m))
	}
	return all
}

func (r results) median(scenario, implementation string, f metric) float64 {
	return median(figures(r.of(scenario, implementation), f))
}

// comparing puts two measurements of one run beside each other.
type comparing func(a, b measurement) float64

func (r results) paired(a, b row, compare comparing) []float64 {
	return paired(r.in(a), r.in(b), compare)
}

// paired combines two rows run by run, where both finished: the machine was the
// same then, as far as it could be.
func paired(a, b []measurement, combine comparing) []float64 {
	var all []float64
	for _, x := range finished(a) {
		for _, y := range finished(b) {
			if x.Run == y.Run {
				all = append(all, combine(x, y))
			}
		}
	}
	return all
}

// ratioOf divides one metric by another.
func ratioOf(f, g metric) comparing {
	return func(a, b measurement) float64 { return f(a) / g(b) }
}

// lessOf subtracts the second's.
func lessOf(f metric) comparing {
	return func(a, b measurement) float64 { return f(a) - f(b) }
}

// bestPeer is the peer with the highest median rate in a scenario, or "".
func (r results) bestPeer(scenario string) string {
	return r.bestOf(scenario, func(implementation) bool { return true })
}

// bestOf looks at some of the peers only.
func (r results) bestOf(scenario string, among func(implementation) bool) string {
	best, most := "", 0.0
	for _, i := range implementations {
		if i.kind != peer || !among(i) {
			continue
		}
		if m := r.median(scenario, i.name, rate); m > most {
			best, most = i.name, m
		}
	}
	return best
}
