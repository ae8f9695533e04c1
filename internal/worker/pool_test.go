package worker

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// open runs f with a pool in fake time. Whatever f does not wait for has to
// have ended when the bubble does.
func open(t *testing.T, maxIdle int, f func(t *testing.T, p *Pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := New(maxIdle)
		f(t, p)
		p.Close(time.Hour)
	})
}

// idleNow returns how many goroutines of p wait for work.
func idleNow(p *Pool) int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// sleep is a job that takes d.
func sleep(d time.Duration) Func { return func() { time.Sleep(d) } }

func TestJobsRunAtTheSameTime(t *testing.T) {
	open(t, 1, func(t *testing.T, p *Pool) {
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Add(1)
			p.Go(Func(func() {
				defer wg.Done()
				time.Sleep(time.Second)
			}))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("Go blocked for %v", took)
		}
		wg.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("100 jobs of a second took %v", took)
		}
	})
}

func TestGoroutinesAreUsedAgain(t *testing.T) {
	open(t, 3, func(t *testing.T, p *Pool) {
		for range 50 { // one at a time needs one
			p.Go(sleep(time.Millisecond))
			time.Sleep(time.Second)
		}
		if n := idleNow(p); n != 1 {
			t.Errorf("%d goroutines for one job at a time", n)
		}
		for range 50 { // more than that are kept for the next time, but not all
			p.Go(sleep(time.Second))
		}
		if n := idleNow(p); n != 0 {
			t.Errorf("%d idle while 50 jobs are under way", n)
		}
		time.Sleep(2 * time.Second)
		if n := idleNow(p); n != 3 {
			t.Errorf("%d idle afterwards, want 3", n)
		}
		p.Go(sleep(time.Second))
		if n := idleNow(p); n != 2 {
			t.Errorf("%d idle while one of three works, want 2", n)
		}
	})
}

func TestNoIdleGoroutines(t *testing.T) {
	open(t, 0, func(t *testing.T, p *Pool) {
		for range 3 {
			p.Go(sleep(time.Second))
			time.Sleep(2 * time.Second)
			if n := idleNow(p); n != 0 {
				t.Errorf("%d idle, want none", n)
			}
		}
	})
}

func TestCloseWaitsForJobs(t *testing.T) {
	open(t, 2, func(t *testing.T, p *Pool) {
		start := time.Now()
		ended := false
		p.Go(Func(func() {
			time.Sleep(time.Second)
			p.Go(Func(func() { // more clean-up
				time.Sleep(time.Second)
				ended = true
			}))
		}))
		p.Go(sleep(500 * time.Millisecond))
		if !p.Close(time.Minute) || !ended {
			t.Error("Close did not wait for the jobs under way")
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %v, want 2s", took)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	open(t, 2, func(t *testing.T, p *Pool) {
		start := time.Now()
		p.Go(sleep(10 * time.Second))
		if p.Close(3 * time.Second) {
			t.Error("Close said that a job has ended that has not")
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close took %v, want 3s", took)
		}
		// Calling it again waits again.
		if p.Close(time.Second) {
			t.Error("the second Close said that a job has ended that has not")
		}
		if !p.Close(time.Minute) {
			t.Error("the third Close did not wait")
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("the job ended after %v, want 10s", took)
		}
	})
}

func TestCloseTwiceAtOnce(t *testing.T) {
	open(t, 2, func(t *testing.T, p *Pool) {
		start := time.Now()
		p.Go(sleep(time.Second))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if !p.Close(time.Minute) || time.Since(start) != time.Second {
					t.Error("a Close did not wait for the job")
				}
			})
		}
		wg.Wait()
	})
}

func TestCloseOfAnIdlePool(t *testing.T) {
	open(t, 4, func(t *testing.T, p *Pool) {
		for range 4 {
			p.Go(sleep(time.Second))
		}
		time.Sleep(2 * time.Second)
		start := time.Now()
		if !p.Close(0) || time.Since(start) != 0 {
			t.Error("Close of an idle pool waited")
		}
		if n := idleNow(p); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
		if fresh := New(4); !fresh.Close(0) {
			t.Error("Close of a pool that has never worked waited")
		}
	})
}

func TestGoAfterClose(t *testing.T) {
	open(t, 4, func(t *testing.T, p *Pool) {
		p.Go(sleep(time.Second))
		p.Close(time.Minute)
		ran := 0
		for range 3 {
			p.Go(Func(func() { ran++ }))
			synctest.Wait()
		}
		if ran != 3 {
			t.Errorf("%d of 3 jobs ran after Close", ran)
		}
		if n := idleNow(p); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// Close comes at every moment of a crowd of jobs, some of which start others,
// and idle goroutines that they count on. Every job runs, once.
func TestHammer(t *testing.T) {
	const rounds, goroutines, jobs = 100, 8, 50
	for range rounds {
		p := New(4)
		var ran atomic.Int64
		var callers sync.WaitGroup
		job := Func(func() { ran.Add(1) })
		for i := range goroutines {
			callers.Go(func() {
				for j := range jobs {
					p.Go(Func(func() {
						job()
						p.Go(job)
					}))
					if i == 0 && j == jobs/2 {
						p.Close(time.Minute)
					}
				}
			})
		}
		callers.Wait()
		if !p.Close(time.Minute) {
			t.Fatal("Close gave up")
		}
		if got, want := ran.Load(), int64(2*goroutines*jobs); got != want {
			t.Fatalf("%d jobs had run when Close returned, want %d", got, want)
		}
	}
}
