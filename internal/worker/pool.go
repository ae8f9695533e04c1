package worker

import (
	"sync"
	"time"
)

// A Job is a piece of work.
type Job interface{ Run() }

// A Func is a Job.
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// A Pool runs jobs. Its methods are safe for concurrent use.
type Pool struct {
	maxIdle int

	mu      sync.Mutex // guards what follows
	idle    []chan Job // one for each goroutine that waits for work, the latest last
	running int
	closed  bool
	drained chan struct{} // closed when running is 0 after Close; made by Close
}

// New returns a pool that keeps at most maxIdle goroutines waiting for work.
func New(maxIdle int) *Pool { return &Pool{maxIdle: maxIdle} }

// Go runs job on a goroutine of the pool. It never blocks, and works after
// Close too: clean-up that comes late is still done.
func (p *Pool) Go(job Job) {
	p.mu.Lock()
	p.running++
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		go p.run(job)
		return
	}
	next := p.idle[last]
	p.idle = p.idle[:last]
	p.mu.Unlock()
	next <- job
}

// Enter notes that a caller does a job itself, for which Close is to wait. Leave
// ends that.
func (p *Pool) Enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
}

// Leave notes that such a job has ended.
func (p *Pool) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
}

// endLocked notes that a job has ended.
func (p *Pool) endLocked() {
	p.running--
	if p.running == 0 && p.drained != nil {
		close(p.drained)
		p.drained = nil
	}
}

func (p *Pool) run(job Job) {
	next := make(chan Job, 1)
	for ok := true; ok; job, ok = <-next {
		job.Run()
		if !p.park(next) {
			return
		}
	}
}

// park notes that a goroutine waits for work, if the pool keeps it.
func (p *Pool) park(next chan Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	if p.closed || len(p.idle) >= p.maxIdle {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// Close waits for the running jobs, at most for d, and ends the idle
// goroutines. It reports whether all jobs had ended. Calling it again waits
// again.
func (p *Pool) Close(d time.Duration) bool {
	p.mu.Lock()
	p.closed = true
	for _, next := range p.idle {
		close(next)
	}
	p.idle = nil
	if p.running == 0 {
		p.mu.Unlock()
		return true
	}
	if p.drained == nil {
		p.drained = make(chan struct{})
	}
	drained := p.drained
	p.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-drained:
		return true
	case <-t.C:
		return false
	}
}
