package holdctx

import (
	"errors"
	"time"
)

// An End says how something held has ended.
type End string

// The ways in which something held ends.
const (
	EndReleased End = "released" // its holder has let go
	EndDetached End = "detached" // somebody else keeps it from now on
	EndLost     End = "lost"     // for a Reason
	EndDropped  End = "dropped"  // garbage collected, without having been released
	EndClosed   End = "closed"   // with the client
)

// EndOf returns how something held has ended, by the error that says why it is
// over.
func EndOf(err error) End {
	switch {
	case errors.Is(err, ErrLost):
		return EndLost
	case errors.Is(err, ErrNotHeld):
		return EndReleased
	}
	return EndClosed
}

// EndOfRelease returns how something held has ended, by what its release returned:
// it may turn out that it had been lost before.
func EndOfRelease(err error) End {
	if errors.Is(err, ErrLost) {
		return EndLost
	}
	return EndReleased
}

// An Observer is told once that something held has ended; err says why, if it was
// lost.
type Observer interface {
	// Released is called by whoever lets go, and may take its time.
	Released(how End, at time.Time, err error)
	// Ended is called by anybody else, and returns at once.
	Ended(how End, at time.Time, err error)
}

// Tell tells o, if there is one, that something held ends now, without its
// holder's doing.
func Tell(o Observer, how End, err error) {
	if o != nil {
		o.Ended(how, time.Now(), err)
	}
}
