package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long goroutines may stay in their last call after the end.
const patience = 5 * time.Second

// child is a measuring process. It warms up, says "ready", measures between the
// lines "go" and "stop", and answers with a procResult. It ends when its input
// does.
func child(jobText string) error {
	var j job
	if err := json.Unmarshal([]byte(jobText), &j); err != nil {
		return err
	}
	impl, ok := implementationNamed(j.Implementation)
	if !ok || impl.open == nil {
		return fmt.Errorf("no implementation %q", j.Implementation)
	}
	orders := readOrders(os.Stdin)
	result, err := measure(j, impl, orders)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	fmt.Printf("result %s\n", text)
	return nil
}

// readOrders delivers lines. The process ends with its input: whoever started
// it has ended.
func readOrders(r io.Reader) <-chan string {
	orders := make(chan string)
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			orders <- lines.Text()
		}
		os.Exit(3)
	}()
	return orders
}

func measure(j job, impl implementation, orders <-chan string) (procResult, error) {
	if j.MemProfile != "" {
		runtime.MemProfileRate = 1
	}
	if j.Scenario.Lock == attendance {
		return attend(j, orders)
	}
	lock, err := impl.open(j)
	if err != nil {
		return procResult{}, err
	}
	defer closeSoon(lock)

	var phase atomic.Int32
	workers, err := newWorkers(j, lock, &phase)
	if err != nil {
		return procResult{}, err
	}
	// Each goroutine gets contexts of its own that can be cancelled, as those
	// of real callers can: that costs some implementations more than
	// context.Background().
	releasing, cancelReleasing := context.WithCancel(context.Background())
	defer cancelReleasing()
	waiting, cancel := context.WithCancel(releasing)
	defer cancel()
	var running sync.WaitGroup
	var alive atomic.Int32
	for _, w := range workers {
		alive.Add(1)
		running.Go(func() {
			defer alive.Add(-1)
			if impl.endless {
				w.run(context.Background(), context.Background())
				return
			}
			waiting, cancelOwn := context.WithCancel(waiting)
			defer cancelOwn()
			releasing, cancelOwnToo := context.WithCancel(releasing)
			defer cancelOwnToo()
			w.run(waiting, releasing)
		})
	}
	time.Sleep(j.Warm)

	fmt.Println("ready")
	if err := expect(orders, "go"); err != nil {
		return procResult{}, err
	}
	profiles, err := startProfiles(j)
	if err != nil {
		return procResult{}, err
	}
	before := readUsage()
	phase.Store(measuring)
	if err := expect(orders, "stop"); err != nil {
		return procResult{}, err
	}
	phase.Store(stopping)
	after := readUsage()
	if err := profiles.stop(); err != nil {
		return procResult{}, err
	}
	if j.Scenario.Contended {
		workers[0].page.end()
		cancel() // ends the waiters; without contention nobody waits
	}
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		// The histograms still belong to the workers: report only the fact.
		return procResult{Elapsed: after.at - before.at, Hung: int(alive.Load())}, nil
	}
	return collect(workers, before, after), nil
}

func newWorkers(j job, lock locker, phase *atomic.Int32) ([]*worker, error) {
	var shared *page
	if j.Scenario.Contended {
		var err error
		if shared, err = openPage(j.Page); err != nil {
			return nil, err
		}
	}
	var sharing sharer
	limit := int32(solitary - 1)
	switch j.Scenario.Lock {
	case readWrite:
		sharing = lock.(sharer) // who takes part is one
	case semaphoreType:
		sharing, limit = lock.(sharer), int32(j.Scenario.Permits) //nolint:gosec // few
	case countDown:
		return []*worker{{page: shared, phase: phase, handOff: newHistogram(), crowd: &crowd{latch: lock.(armer), size: j.Scenario.Goroutines}}}, nil
	case plainLock, fairLock, attendance:
	}
	workers := make([]*worker, j.Scenario.Goroutines)
	for g := range workers {
		workers[g] = &worker{
			g: g, who: int64(j.Process*j.Scenario.Goroutines + g + 1), together: int64(j.Scenario.Goroutines), lock: lock, page: shared,
			section: j.Scenario.Section, pause: j.Scenario.Pause, phase: phase,
			sharing: sharing, limit: limit, writeEvery: j.Scenario.WriteEvery, n: g, // not all write at the same time
			op: newHistogram(), pair: newHistogram(),
		}
		if shared != nil {
			workers[g].handOff = newHistogram()
		}
	}
	return workers, nil
}

func expect(orders <-chan string, want string) error {
	if got := <-orders; got != want {
		return fmt.Errorf("told %q, expected %q", got, want)
	}
	return nil
}

func collect(workers []*worker, before, after usage) procResult {
	r := procResult{
		Elapsed: after.at - before.at, CPU: after.cpu - before.cpu,
		Mallocs: after.mallocs - before.mallocs, AllocBytes: after.bytes - before.bytes,
		Op: newHistogram(), Pair: newHistogram(), HandOff: newHistogram(),
	}
	for _, w := range workers {
		r.Acquisitions = append(r.Acquisitions, w.acquisitions)
		r.Crossings += w.crossings
		r.Op.merge(w.op)
		r.Pair.merge(w.pair)
		r.HandOff.merge(w.handOff)
		r.Violations += w.violations
		r.Errors += w.errors
		if r.FirstError == "" && w.firstError != nil {
			r.FirstError = w.firstError.Error()
		}
	}
	return r
}

// closeSoon closes lock, but does not wait long: the process ends anyway.
func closeSoon(lock locker) {
	closed := make(chan struct{})
	go func() { lock.close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

// A usage is what the process has used so far.
type usage struct {
	at      time.Duration
	cpu     time.Duration
	mallocs uint64
	bytes   uint64
}

func readUsage() usage {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return usage{at: time.Duration(now()), cpu: cpuOfSelf(), mallocs: mem.Mallocs, bytes: mem.TotalAlloc}
}

// profiles are the profiles of one measuring process that were asked for.
type profiles struct {
	job job
	cpu *os.File
}

func startProfiles(j job) (*profiles, error) {
	p := &profiles{job: j}
	if j.BlockProfile != "" {
		runtime.SetBlockProfileRate(1000)
		runtime.SetMutexProfileFraction(10)
	}
	if j.CPUProfile == "" {
		return p, nil
	}
	f, err := os.Create(j.CPUProfile)
	if err != nil {
		return nil, err
	}
	p.cpu = f
	return p, pprof.StartCPUProfile(f)
}

func (p *profiles) stop() error {
	if p.cpu != nil {
		pprof.StopCPUProfile()
		if err := p.cpu.Close(); err != nil {
			return err
		}
	}
	if err := writeProfile("allocs", p.job.MemProfile); err != nil {
		return err
	}
	return writeProfile("block", p.job.BlockProfile)
}

func writeProfile(name, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.Lookup(name).WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}
