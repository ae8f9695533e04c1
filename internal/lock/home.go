package lock

import (
	"time"

	"github.com/redlatch/redlatch/internal/notify"
)

// A home is all that a term knows of where the callers of its process line up for the lock.
type home interface {
	retain()                          // takes one more share of the place,
	put()                             // and gives one back
	exit()                            // lets the next caller in, with nothing
	leave()                           // is exit, and put
	pass(t *term) (taken bool)        // lets the next caller in, if there is one, with t
	depart(t *term, n, foreign int)   // leaves the place, the lock having been released to n others
	forget(t *term, began bool)       // t is not the current term any more
	readmit()                         // has readers that wait join the current term, if it lets them
	pace(now time.Time) time.Duration // how often readers ask whether others wait
	notices() *notify.Listener        // of releases of the lock
}
