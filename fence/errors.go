package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrStale: a higher token has been shown for the resource, so the holder with
	// this one no longer has the lock. Nothing was changed. Every error that is
	// ErrStale is also a *StaleError.
	ErrStale = errors.New("fence: stale token")

	// ErrUnfenced: the token is not above 0. Hold.Token returns 0 for a hold that
	// was acquired without one. Nothing was changed, and no request was sent.
	ErrUnfenced = errors.New("fence: no fencing token: acquire the lock with the option Fenced")
)

// A StaleError says which token was refused, and why. It is ErrStale.
type StaleError struct {
	Token   int64 // the one that was refused
	Highest int64 // the highest that had been shown for the resource then
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: token %d is stale: %d has been shown", e.Token, e.Highest)
}

// Is reports that a StaleError is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

var errNilContext = errors.New("fence: nil context; use context.Background() if nothing is to end the call")

// check refuses what cannot be a fencing token.
func check(token int64) error {
	switch {
	case token == 0:
		return ErrUnfenced
	case token < 0:
		return fmt.Errorf("%w (%d)", ErrUnfenced, token)
	}
	return nil
}
