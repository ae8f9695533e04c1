// Package invalid has the errors about what a caller gives: a name, an option, a number, a
// Config.
package invalid

import (
	"errors"
	"fmt"
)

// Err is the state of every error that Errorf makes.
var Err = errors.New("redlatch: invalid argument")

// Errorf is fmt.Errorf for an error whose state is Err. Its text does not repeat that: it
// says what cannot be used, and what to do.
func Errorf(format string, args ...any) error {
	return &argument{fmt.Errorf(format, args...)}
}

// An argument is an error about one.
type argument struct{ error }

// Is reports that it has the state Err.
func (a *argument) Is(target error) bool { return target == Err }

// Unwrap returns what it says, and what that wraps.
func (a *argument) Unwrap() error { return a.error }
