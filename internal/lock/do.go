package lock

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/request"
)

// ErrNotRun says that a function was not called, because nothing was acquired for it.
var ErrNotRun = errors.New("redlatch: not run")

// Do calls f under a hold, and releases that. A loss that f has not returned is joined to its error.
func Do(ctx context.Context, hold interface {
	With(ctx context.Context) context.Context
	Release(ctx context.Context) error
}, f func(ctx context.Context) error,
) (err error) {
	defer func() {
		end := hold.Release(ctx)
		if errors.Is(end, holdctx.ErrLost) || errors.Is(end, request.ErrClosed) {
			if end = untold(err, end); end != nil {
				err = errors.Join(err, end)
			}
		}
	}()
	if err = f(hold.With(ctx)); errors.Is(err, ErrNotRun) {
		return &ranError{err}
	}
	return err
}

// untold returns what end says and err does not: of several locks, each may have ended by itself.
func untold(err, end error) error {
	if errors.Is(err, end) {
		return nil
	}
	switch e := end.(type) { //nolint:errorlint // one step at a time
	case interface{ Unwrap() []error }:
		var rest []error
		for _, part := range e.Unwrap() {
			rest = append(rest, untold(err, part))
		}
		return errors.Join(rest...)
	case interface{ Unwrap() error }:
		if untold(err, e.Unwrap()) == nil {
			return nil
		}
	}
	return end
}

// NotRun makes err, which says why nothing was acquired, ErrNotRun as well.
func NotRun(err error) error { return &notRunError{err} }

type notRunError struct{ error }

func (e *notRunError) Is(target error) bool { return target == ErrNotRun }
func (e *notRunError) Unwrap() error        { return e.error }

// A ranError is the error of a function that ran, and for which another Do did not run its own.
type ranError struct{ error }

func (e *ranError) Is(target error) bool { return target != ErrNotRun && errors.Is(e.error, target) }
func (e *ranError) As(target any) bool   { return errors.As(e.error, target) }
