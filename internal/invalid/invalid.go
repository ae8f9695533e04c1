// Package invalid has the errors about what a caller gives that a call cannot
// work with. It promises that Err is found in each of them, and is not a part of
// their texts.
package invalid

import (
	"errors"
	"fmt"
)

// Err is the state of every error that Errorf makes.
var Err = errors.New("redlatch: invalid argument")

// Errorf is fmt.Errorf for an error whose state is Err. Its text does not repeat
// that: it says what cannot be used, and what to do.
func Errorf(format string, args ...any) error {
	return &refusal{fmt.Errorf(format, args...)}
}

// A refusal is an error whose state is Err.
type refusal struct{ error }

// Is reports that its state is Err.
func (r *refusal) Is(target error) bool { return target == Err }

// Unwrap returns the error that has the text, and that wraps what Errorf was given
// to wrap.
func (r *refusal) Unwrap() error { return r.error }
