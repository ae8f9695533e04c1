package claim

import "time"

// A Loss is what a client knows of something held that it has just lost.
type Loss struct {
	Claim

	Err     error         // the holder's: how it was lost, and when the server confirmed it last
	At      time.Time     // when it ended
	Lease   time.Duration // what the server had confirmed, from the last time on
	Node    string        // that serves it; empty: there is only one, or it is not known
	Several bool          // it was acquired with others, as one

	Failure   error     // why the latest renewal has failed that failed since; nil: none has
	FailureAt time.Time // when that was known
}
