package peer

import (
	"context"
	"time"
)

// A Loop says how a Java process is to lock and unlock by itself: the pipe to
// this process does not enter the figures.
type Loop struct {
	Kind string // default Plain
	Name string
	// Threads is how many Java threads loop. Default 1.
	Threads int
	// PerThreadKeys gives thread i the lock Name-i instead of all the same one.
	PerThreadKeys bool
	// Duration is when threads start no further round. Default 1 s.
	Duration time.Duration
	// MaxOps bounds the rounds of all threads together; 0 is no bound.
	MaxOps int64
	// Section and Pause are how long a thread sleeps inside and outside of the
	// lock, in whole microseconds.
	Section, Pause time.Duration
	// Counter is a key that each section reads and then writes plus one, so
	// that an update is lost if two sections overlap. Default none.
	Counter string
	// Control is a lock that nobody else wants, which one more Java thread
	// locks and unlocks meanwhile. Default none.
	Control string
}

// A LoopResult is what a Loop did. The waits are microseconds from asking for
// the lock to having it.
type LoopResult struct {
	Counts    []int64 `json:"counts"` // rounds, by thread
	Ops       int64   `json:"ops"`    // their sum
	ElapsedMs int64   `json:"elapsedMs"`
	P50       int64   `json:"p50"`
	P99       int64   `json:"p99"`
	Max       int64   `json:"max"`
	// ControlMax is the longest wait for Control: what the machine and the
	// network made of a wait for nobody.
	ControlMax int64 `json:"controlMax"`
}

// Loop runs l and returns when it has ended.
func (c *Client) Loop(ctx context.Context, l Loop) (LoopResult, error) {
	a, err := c.peer.call(ctx, request{
		Op:            "loopLock",
		Client:        c.handle,
		Thread:        c.handle + "/loop/" + l.Name,
		Kind:          l.Kind,
		Name:          l.Name,
		Threads:       l.Threads,
		PerThreadKeys: l.PerThreadKeys,
		DurationMs:    l.Duration.Milliseconds(),
		MaxOps:        l.MaxOps,
		SectionUs:     l.Section.Microseconds(),
		PauseUs:       l.Pause.Microseconds(),
		Counter:       l.Counter,
		Control:       l.Control,
	})
	return a.LoopResult, err
}
