package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/lock/term"
)

// shortestBackoff is the shortest pause between two tries, whatever a backoff
// says.
const shortestBackoff = time.Millisecond

// backoff is what a spin lock has more than others: how long to pause after a try.
type backoff func(tries int) time.Duration

// Spin returns the lock that has this name in Redis for which callers try again
// and again.
func (c *Locks) Spin(key string, pause func(tries int) time.Duration) Spec {
	lock := c.Plain(key)
	lock.Kind, lock.Channel, lock.Own = spinning, "", backoff(pause)
	return lock
}

// spinPause asks the backoff how long to pause. It is the user's: if it panics,
// the others of this process go on without the caller.
func spinPause(t *term.Term, tries int) time.Duration {
	answered := false
	defer func() {
		if !answered {
			t.Withdraw()
		}
	}()
	pause := t.Lock.Own.(backoff)(tries) //nolint:forcetypeassert // Spin has set it
	answered = true
	return max(pause, shortestBackoff)
}
