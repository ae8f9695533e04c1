package term

import (
	"time"

	"github.com/redlatch/redlatch/internal/notify"
)

// A Home is all that a term knows of where the callers of its process line up for
// the lock.
type Home interface {
	Retain()                          // takes one more share of the place,
	Put()                             // and gives one back
	Exit()                            // lets the next caller in, with nothing
	Leave()                           // is Exit, and Put
	Pass(t *Term) (taken bool)        // lets the next caller in, if there is one, with t
	Depart(t *Term, n, foreign int)   // leaves the place, the lock having been released to n others
	Forget(t *Term, began bool)       // t is not the current term any more
	Readmit()                         // has readers that wait join the current term, if it lets them
	Pace(now time.Time) time.Duration // how often readers ask whether others wait
	Notices() *notify.Listener        // of releases of the lock
}
