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
	work    chan Job
	quit    chan struct{}

	mu      sync.Mutex // guards what follows
	idle    int
	running int
	closed  bool
	drained chan struct{} // closed when running is 0 after Close; made by Close
}

// New returns a pool that keeps at most maxIdle goroutines waiting for work.
func New(maxIdle int) *Pool {
	return &Pool{maxIdle: maxIdle, work: make(chan Job), quit: make(chan struct{})}
}

// Go runs job on a goroutine of the pool. It never blocks, and works after
// Close too: clean-up that comes late is still done.
func (p *Pool) Go(job Job) {
	p.mu.Lock()
	p.running++
	reuse := p.idle > 0
	if reuse {
		p.idle--
	}
	p.mu.Unlock()
	if reuse {
		p.work <- job // an idle worker is there or about to be
		return
	}
	go p.run(job)
}

func (p *Pool) run(job Job) {
	for {
		job.Run()
		job = nil
		p.mu.Lock()
		p.running--
		if p.closed {
			if p.running == 0 && p.drained != nil {
				close(p.drained)
				p.drained = nil
			}
			p.mu.Unlock()
			return
		}
		if p.idle >= p.maxIdle {
			p.mu.Unlock()
			return
		}
		p.idle++
		p.mu.Unlock()
		select {
		case job = <-p.work:
		case <-p.quit:
			// Go may have counted on this worker just before Close.
			p.mu.Lock()
			counted := p.idle == 0
			if !counted {
				p.idle--
			}
			p.mu.Unlock()
			if !counted {
				return
			}
			job = <-p.work
		}
	}
}

// Close waits for the jobs under way, at most for d, and ends the idle
// goroutines. It reports whether all jobs had ended. Calling it again waits
// again.
func (p *Pool) Close(d time.Duration) bool {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.quit)
	}
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
