package locktest

import (
	"sync"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A Counter counts a client's requests by script.
type Counter struct {
	mu sync.Mutex
	n  map[string]int
}

// Hook is for a Tap.
func (c *Counter) Hook(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	c.mu.Lock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[s]++
	c.mu.Unlock()
	return next()
}

// Of returns how many requests of that script there were.
func (c *Counter) Of(s string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[s]
}

// Counted returns a client and how many scripts it has run since the last look.
func (w *World) Counted(cfg redlatch.Config) (c *redlatch.Client, since func() []string) {
	var mu sync.Mutex
	var ran []string
	c = w.Tapped(cfg, &Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, s)
		return next()
	}})
	return c, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		old := ran
		ran = nil
		return old
	}
}
