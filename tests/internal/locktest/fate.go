package locktest

import (
	"slices"
	"sync"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Requests that count, told of a latch: a count-down that is executed twice, or
// late, shows in its count.

// A counting client notes the numbers of its requests in the order in which they
// are sent. fate decides what becomes of an attempt: of which script, and the how
// manyth it is.
type Counting struct {
	*redlatch.Client
	*Tap

	Mu      sync.Mutex
	Numbers []string
	Tries   int
	Held    []func() // attempts that come late
}

type Fate int

const (
	Good      Fate = iota
	ReplyLost      // executed, and nobody learns it
	NotSent        // nobody learns that either
	Late           // given up, and executed by arrive
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

func (c *Counting) Sent() []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return slices.Clone(c.Numbers)
}
