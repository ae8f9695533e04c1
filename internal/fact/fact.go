// Package fact has what engines say of why a call has failed, as plain values.
//
// It promises nothing to users, who see errors of the root package: see
// request.Options.Public. An engine calls that where it makes the error, as the
// cause of a context has to be what the call returns. A fact is an error, too, for
// whoever looks at an engine by itself.
package fact

import (
	"errors"
	"time"
)

// ErrNotAcknowledged says that too few replicas acknowledged what was written.
var ErrNotAcknowledged = errors.New("redlatch: not acknowledged by replicas")

// TooFew says that too few replicas acknowledged what was written.
type TooFew struct {
	Name      string        // what it was about
	Want, Got int           // how many were to acknowledge it, and did
	Timeout   time.Duration // in this time
	Err       error         // why they cannot, or nil
}

// Error implements error.
func (f TooFew) Error() string { return ErrNotAcknowledged.Error() }

// Is says that it is ErrNotAcknowledged.
func (f TooFew) Is(target error) bool { return target == ErrNotAcknowledged }
