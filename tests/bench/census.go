package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const (
	// refresh is how often somebody asks all clients what they hold and wait for.
	refresh = 5 * time.Second
	// censusWindow is for how long the server is looked at, with a question or without
	// one. A question takes a second and a half.
	censusWindow = refresh / 2
	// idleTime is about half of that for which nobody asks whether an idle connection
	// lives.
	idleTime = time.Hour
)

// An attendant is one client of very many, with connections of its own.
type attendant struct {
	*redlatch.Client
	driver *redlatchrueidis.Driver
}

func newAttendant(addr string) (attendant, error) {
	// There are a thousand of them on one machine, so their buffers are small. rueidis
	// tries out each idle connection, with these time-outs twice an hour and not twice
	// a second: in so many requests the difference that is looked for would be lost.
	d, err := redlatchrueidis.New(rueidis.ClientOption{
		InitAddress: []string{addr}, PipelineMultiplex: -1, RingScaleEachConn: 6, ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10,
		Dialer: net.Dialer{KeepAlive: 3 * idleTime}, ConnWriteTimeout: 3 * idleTime,
	})
	if err != nil {
		return attendant{}, err
	}
	c, err := redlatch.New(d, redlatch.Config{WatchdogTimeout: 9 * idleTime})
	if err != nil {
		d.Close()
		return attendant{}, err
	}
	return attendant{c, d}, nil
}

func (a attendant) close() {
	_ = a.Close()
	a.driver.Close()
}

// waitingEach says that each so many-th client waits for the lock of the next one.
const waitingEach = 10

// attend is the whole of a measuring process that has clients which do nothing:
// each holds a lock of its own, and some wait for another one. No lock is renewed:
// renewals come all at once, in some of the windows that are compared.
func attend(j job, orders <-chan string) (procResult, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := j.Scenario.Goroutines
	all, holds := make([]attendant, n), make([]*redlatch.Hold, n)
	defer runtime.KeepAlive(holds) // or they would be released
	for g := range all {
		a, err := newAttendant(j.Addr)
		if err != nil {
			return procResult{}, err
		}
		defer a.close()
		all[g] = a
		if holds[g], err = locktest.With(a.Lock(fmt.Sprintf("%s:%d:%d", j.Name, j.Process, g)), redlatch.Lease(time.Hour)).Acquire(ctx); err != nil {
			return procResult{}, err
		}
	}
	for g := 0; g < n; g += waitingEach {
		next := all[g].Lock(fmt.Sprintf("%s:%d:%d", j.Name, j.Process, (g+1)%n))
		go func() { _, _ = next.Acquire(ctx) }()
	}
	time.Sleep(j.Warm)
	fmt.Println("ready")
	if err := expect(orders, "go"); err != nil {
		return procResult{}, err
	}
	before := readUsage()
	if err := expect(orders, "stop"); err != nil {
		return procResult{}, err
	}
	after := readUsage()
	return procResult{Elapsed: after.at - before.at, CPU: after.cpu - before.cpu}, nil
}

// census measures what the server does when somebody asks all clients, beyond what
// it does when nobody asks. Windows with a question take turns with windows
// without one.
func (b *bench) census(s scenario, i implementation, run int) (measurement, error) {
	m := measurement{Scenario: s.Name, Implementation: i.name, Run: run}
	if err := b.server.clear(); err != nil {
		return m, err
	}
	processes, err := b.start(s, i, run, b.server.addr)
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
	asker, err := newAttendant(b.server.addr)
	if err != nil {
		return m, err
	}
	defer asker.close()
	was := machineTimeNow()
	took := newHistogram()
	var more counters
	questions := int(s.Length / (2 * censusWindow))
	for range questions {
		idle, err := b.apart(func() error { return nil })
		if err != nil {
			return m, err
		}
		asked, err := b.apart(func() error {
			began := now()
			p, err := admin.New(asker.Client).Participants(context.Background(), admin.Question{})
			took.add(now() - began)
			if err == nil && p.Silent != 0 {
				err = fmt.Errorf("%d clients are silent", p.Silent)
			}
			m.Acquisitions += claimsIn(p)
			return err
		})
		if err != nil {
			m.DidNotFinish = err.Error()
			return m, nil
		}
		more = more.plus(asked.minus(idle))
	}
	if want := int64(questions * s.Processes * (s.Goroutines + s.Goroutines/waitingEach)); m.Acquisitions != want {
		m.DidNotFinish = fmt.Sprintf("clients have told of %d holds and waits, not of %d", m.Acquisitions, want)
		return m, nil
	}
	m.Stolen = machineTimeNow().stolenSince(was)
	m.OpP50 = took.quantile(0.5)
	m.perUnit(float64(questions), more, 0, 0, 0)
	return m, nil
}

// claimsIn counts what clients say that they hold and wait for.
func claimsIn(p admin.Participants) (n int64) {
	for _, c := range p.Clients {
		if c.Answered {
			n += int64(len(c.Held) + len(c.Waiting))
		}
	}
	return n
}

// apart returns what the server counts in one window, at the begin of which f is
// called.
func (b *bench) apart(f func() error) (counters, error) {
	end := time.After(censusWindow)
	before, err := b.server.counters()
	if err != nil {
		return before, err
	}
	wrong := f()
	<-end
	after, err := b.server.counters()
	return after.minus(before), errors.Join(wrong, err)
}

// coreShare is which part of a core of the server the questions take, in percent.
func coreShare(m measurement) float64 {
	return 100 * m.ServerCPU / float64(refresh.Microseconds())
}
