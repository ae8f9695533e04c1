package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A measurement is one run of one implementation in one scenario. What a
// measurement lacks (an empty histogram) is 0.
type measurement struct {
	Scenario       string `json:"scenario"`
	Implementation string `json:"implementation"`
	Run            int    `json:"run"`
	DidNotFinish   string `json:"didNotFinish,omitempty"` // why; nothing else is set then

	Rate          float64   `json:"rate"` // acquisitions a second, all processes
	Acquisitions  int64     `json:"acquisitions"`
	PairP50       float64   `json:"pairP50"` // microseconds, as all times
	PairP99       float64   `json:"pairP99"`
	OpP50         float64   `json:"opP50"` // one call, acquire or release
	HandOffP50    float64   `json:"handOffP50"`
	HandOffP99    float64   `json:"handOffP99"`
	HandedOn      float64   `json:"handedOn"`   // part of the acquisitions that followed another goroutine's
	Crossed       float64   `json:"crossed"`    // part that followed another process's; unknown of Java
	Jain          float64   `json:"jain"`       // by goroutine, over all processes
	LeastShare    float64   `json:"leastShare"` // of a goroutine, where 1 is its fair share
	MostShare     float64   `json:"mostShare"`  // of a goroutine
	ProcessShares []float64 `json:"processShares,omitempty"`
	Scripts       float64   `json:"scripts"` // each an acquisition, as all that follow; a second if the lock was held; a question of the census
	Commands      float64   `json:"commands"`
	NetBytes      float64   `json:"netBytes"`
	Allocs        float64   `json:"allocs"`
	AllocBytes    float64   `json:"allocBytes"`
	ClientCPU     float64   `json:"clientCPU"`
	ServerCPU     float64   `json:"serverCPU"`
	Violations    int64     `json:"violations"`
	Errors        int64     `json:"errors"`
	FirstError    string    `json:"firstError,omitempty"`
	Stolen        float64   `json:"stolen"` // part of the CPU time of the machine that its host took meanwhile
	Tries         int       `json:"tries"`  // this is the best of so many
}

// A bench is a whole run of this program.
type bench struct {
	server     *server
	scriptsDir string
	root       string // of the repository
	durations  durations
	profileDir string        // empty: none
	profile    string        // cpu, mem or block
	spare      time.Duration // for measurements that are made again
}

// measure starts the processes, lets them run and sums up. An error is one of
// the harness; what an implementation does wrong is in the measurement.
func (b *bench) measure(s scenario, i implementation, run int) (measurement, error) {
	m := measurement{Scenario: s.Name, Implementation: i.name, Run: run}
	if i.kind == floor && s.Contended {
		s = s.alone()
	}
	if s.Lock == attendance {
		return b.census(s, i, run)
	}
	if err := b.server.clear(); err != nil {
		return m, err
	}
	addr := b.server.addr
	if i.apart {
		e, err := startServer(b.root, etcdServer)
		if err != nil {
			return m, err
		}
		defer e.stop()
		addr = e.addr
	}
	if s.Replica {
		replica, err := b.server.addReplica(b.root)
		if err != nil {
			return m, err
		}
		defer replica.stop()
	}
	if s.Delay > 0 || s.Proxied {
		l, err := newLink(addr, s.Delay)
		if err != nil {
			return m, err
		}
		defer l.close()
		addr = l.addr
	}
	if s.Held {
		letGo, err := b.hold(s, i, run, addr)
		if err != nil {
			return m, err
		}
		defer letGo()
	}
	processes, err := b.start(s, i, run, addr)
	defer func() {
		for _, p := range processes {
			p.kill()
		}
	}()
	if err != nil {
		return m, err
	}
	if err := allReady(processes, time.Minute); err != nil {
		m.DidNotFinish = "did not get ready: " + err.Error()
		return m, nil
	}
	length := b.durations.of(s, i)
	was := machineTimeNow()
	used, err := b.window(processes, length)
	if err != nil {
		return m, err
	}
	m.Stolen = machineTimeNow().stolenSince(was)
	var results []procResult
	for _, p := range processes {
		r, err := p.result(2*patience + length)
		switch {
		case errors.Is(err, errSilent):
			m.DidNotFinish = "hangs: killed"
		case err != nil:
			m.DidNotFinish = err.Error()
		case r.Hung > 0:
			m.DidNotFinish = fmt.Sprintf("hangs: %d of %d goroutines had not come back %v after the end", r.Hung, s.Goroutines, patience)
		}
		results = append(results, r)
	}
	if m.DidNotFinish == "" {
		m.sum(results, used, s.Held)
	}
	return m, nil
}

// hold takes the lock of a scenario, so that all who come wait.
func (b *bench) hold(s scenario, i implementation, run int, addr string) (letGo func(), err error) {
	s.Goroutines = 1
	l, err := i.open(b.job(s, i, run, addr))
	if err != nil {
		return nil, err
	}
	if err := l.acquire(context.Background(), 0); err != nil {
		l.close()
		return nil, err
	}
	return func() {
		_ = l.release(context.Background(), 0)
		l.close()
	}, nil
}

func (b *bench) job(s scenario, i implementation, run int, addr string) job {
	return job{
		Implementation: i.name, Scenario: s, Addr: addr, Warm: b.durations.warmUp(s), Length: b.durations.of(s, i), ScriptsDir: b.scriptsDir,
		Name: fmt.Sprintf("bench:%s:%d", s.Name, run),
	}
}

// start starts the processes, which find their server at addr.
func (b *bench) start(s scenario, i implementation, run int, addr string) ([]process, error) {
	j := b.job(s, i, run, addr)
	if s.Contended {
		j.Page = filepath.Join(b.server.dir, "page")
		if err := newPage(j.Page); err != nil {
			return nil, err
		}
	}
	var processes []process
	for n := range s.Processes {
		j.Process = n
		b.addProfile(&j, run)
		var p process
		var err error
		if i.open == nil {
			p, err = startRedisson(b.root, j)
		} else {
			p, err = startSelf(j)
		}
		if err != nil {
			return processes, err
		}
		processes = append(processes, p)
	}
	return processes, nil
}

// allReady lets all warm up at the same time.
func allReady(processes []process, timeout time.Duration) error {
	ready := make(chan error)
	for _, p := range processes {
		go func() { ready <- p.ready(timeout) }()
	}
	var all error
	for range processes {
		all = errors.Join(all, <-ready)
	}
	return all
}

func (b *bench) addProfile(j *job, run int) {
	if b.profile == "" {
		return
	}
	path := filepath.Join(b.profileDir, fmt.Sprintf("%s.%s.%d.%d.%s.pprof", j.Scenario.Name, fileName(j.Implementation), run, j.Process, b.profile))
	switch b.profile {
	case "cpu":
		j.CPUProfile = path
	case "mem":
		j.MemProfile = path
	case "block":
		j.BlockProfile = path
	}
}

// window measures from go to stop and returns what the server counted.
func (b *bench) window(processes []process, length time.Duration) (counters, error) {
	before, err := b.server.counters()
	if err != nil {
		return counters{}, err
	}
	for _, p := range processes {
		_ = p.begin() // a process that has ended shows at its result
	}
	time.Sleep(length)
	for _, p := range processes {
		if p, ok := p.(interface{ linger(timeout time.Duration) }); ok {
			p.linger(2 * patience)
		}
	}
	after, err := b.server.counters()
	if err != nil {
		return counters{}, err
	}
	for _, p := range processes {
		_ = p.end()
	}
	return after.minus(before), nil
}

// sum sums up: everything is for each acquisition, or for each second if nobody
// could acquire anything.
func (m *measurement) sum(results []procResult, used counters, held bool) {
	op, pair, handOff := newHistogram(), newHistogram(), newHistogram()
	var byGoroutine []int64
	var cpu, mallocs, bytes, crossings float64
	var elapsed time.Duration
	for _, r := range results {
		m.Rate += float64(r.total()) / r.Elapsed.Seconds()
		m.Acquisitions += r.total()
		byGoroutine = append(byGoroutine, r.Acquisitions...)
		crossings += float64(r.Crossings)
		elapsed = max(elapsed, r.Elapsed)
		cpu += r.CPU.Seconds() * 1e6
		mallocs += float64(r.Mallocs)
		bytes += float64(r.AllocBytes)
		op.merge(r.Op)
		pair.merge(r.Pair)
		handOff.merge(r.HandOff)
		m.Violations += r.Violations
		m.Errors += r.Errors
		if m.FirstError == "" {
			m.FirstError = r.FirstError
		}
	}
	m.PairP50, m.PairP99 = pair.quantile(0.5), pair.quantile(0.99)
	m.OpP50 = op.quantile(0.5)
	m.HandOffP50, m.HandOffP99 = handOff.quantile(0.5), handOff.quantile(0.99)
	m.Jain = jain(byGoroutine)
	total := float64(m.Acquisitions)
	switch {
	case held:
		m.Violations += m.Acquisitions
		m.perUnit(elapsed.Seconds(), used, cpu, mallocs, bytes)
		return
	case total == 0:
		m.DidNotFinish = "no acquisition: " + m.FirstError
		return
	}
	m.Crossed = crossings / total
	m.HandedOn = float64(handOff.total()) / total
	fair := total / float64(len(byGoroutine))
	m.LeastShare, m.MostShare = spread(byGoroutine, fair)
	if len(results) > 1 {
		for _, r := range results {
			m.ProcessShares = append(m.ProcessShares, float64(r.total())/total)
		}
	}
	m.perUnit(total, used, cpu, mallocs, bytes)
}

func (m *measurement) perUnit(total float64, used counters, cpu, mallocs, bytes float64) {
	m.Scripts, m.Commands = used.scripts/total, used.commands/total
	m.NetBytes = (used.in + used.out) / total
	m.ServerCPU = used.cpu * 1e6 / total
	m.ClientCPU, m.Allocs, m.AllocBytes = cpu/total, mallocs/total, bytes/total
}

// jain is 1 if all have the same, and 1/n if one of n has all.
func jain(counts []int64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// spread returns the least and the most of counts, in units of fair.
func spread(counts []int64, fair float64) (least, most float64) {
	low, high := counts[0], counts[0]
	for _, c := range counts {
		low, high = min(low, c), max(high, c)
	}
	return float64(low) / fair, float64(high) / fair
}
