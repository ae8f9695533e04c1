package holdctx

import (
	"errors"
	"fmt"
)

// A Reason says how something held was lost.
type Reason string

// The ways to lose something held.
const (
	Expired Reason = "expired"    // no renewal was confirmed in time
	Gone    Reason = "gone"       // the server has it no more
	Revoked Reason = "revoked"    // somebody released it by force
	MaxHold Reason = "max hold"   // it was held for as long as may be
	Lease   Reason = "lease over" // nothing was to renew it
)

// Lapsed says whether a time was over: then the holder has known in time, and the
// server has it still.
func (r Reason) Lapsed() bool { return r == Expired || r == MaxHold || r == Lease }

var (
	// ErrLost says that it ended before it was released.
	ErrLost = errors.New("redlatch: lock lost")
	// ErrNotHeld says that it has been released.
	ErrNotHeld = errors.New("redlatch: lock not held")
	// ErrReleased is the cause with which the context of something released ends.
	ErrReleased = fmt.Errorf("%w: it has been released", ErrNotHeld)
	// ErrDetached says that it has been left to whoever has its id.
	ErrDetached = fmt.Errorf("%w: it has been detached", ErrNotHeld)
)
