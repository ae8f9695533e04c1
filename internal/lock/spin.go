package lock

import "time"

// shortestBackoff is the shortest pause between two tries, whatever a backoff says.
const shortestBackoff = time.Millisecond

// Spin returns the lock with this name for which callers try again and again.
func (c *Locks) Spin(name string, backoff func(n int) time.Duration) Spec {
	l := c.Plain(name)
	l.channel, l.backoff = "", backoff
	return l
}
