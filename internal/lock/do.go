package lock

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/request"
)

// Do calls f under a hold, and releases that. A loss that f has not returned is
// joined to its error.
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
	return f(hold.With(ctx))
}

// untold returns what end says and err does not: of several locks, each may have
// ended by itself.
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
