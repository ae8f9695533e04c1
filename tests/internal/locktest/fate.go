package locktest

import (
	"slices"
	"sync"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// A Counting client notes the numbers of its requests in the order in which they
// are sent, and has each attempt meet a fate.
type Counting struct {
	*redlatch.Client
	*Tap

	Mu      sync.Mutex
	Numbers []string
	Tries   int
	Held    []func() // attempts that come late
}

// A Fate is what becomes of an attempt.
type Fate int

// What may become of an attempt.
const (
	Good      Fate = iota
	ReplyLost      // executed, and nobody learns it
	NotSent        // nobody learns that either
	Late           // given up, and executed by Arrive
)

// Of lets an attempt meet its fate.
func (f Fate) Of(next func() (driver.Reply, error)) (driver.Reply, error) {
	switch f {
	case ReplyLost:
		_, _ = next()
	case Good:
		return next()
	}
	return driver.Reply{}, ErrReplyLost
}

// Arrive lets what was held back come to the server.
func (c *Counting) Arrive() {
	c.Mu.Lock()
	held := c.Held
	c.Held = nil
	c.Mu.Unlock()
	for _, f := range held {
		f()
	}
}

// Sent returns the numbers of the requests so far.
func (c *Counting) Sent() []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return slices.Clone(c.Numbers)
}
