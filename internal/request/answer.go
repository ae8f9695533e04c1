package request

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// ErrCounted says that a call has counted a latch down, and failed behind that:
// the same call would do it twice.
var ErrCounted = errors.New("redlatch: counted down, but not waited to the end")

// GaveUp says whether err is the end of a caller's waiting, and returns the error
// of its context if it was that.
func GaveUp(err error) (ended bool, cause error) {
	if e, ok := err.(*endedError); ok { //nolint:errorlint // of the call itself
		return true, e.error
	}
	var re *driver.RunError
	switch {
	case errors.Is(err, ErrWaitOver):
		return true, nil
	case errors.Is(err, ErrClosed), errors.Is(err, ErrUnavailable), errors.Is(err, fact.ErrBusy), errors.As(err, &re):
		return false, nil // a driver's time-out is not the caller's
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return true, err
	}
	return false, nil
}

// Retryable says whether the same call may succeed later without anybody changing
// anything. What ended with its caller's context does not.
func Retryable(err error) bool {
	var (
		busy   fact.Busy
		outage *OutageError
		re     *driver.RunError
	)
	switch {
	case errors.As(err, &busy):
		return busy.Cause == nil
	case errors.As(err, &outage):
		return outage.Ended == nil
	case errors.As(err, &re):
		return !re.Permanent()
	}
	return false
}

// First returns what a reply says of the first thing that it is about.
func First(r driver.Reply) driver.Reply {
	if r.Kind != driver.ReplyList {
		return r
	}
	if len(r.List) == 0 {
		return driver.Reply{}
	}
	return r.List[0]
}

// Number reads the number that is stored under a key, 0 if there is none. A text
// that is no number is of another type.
func Number(r driver.Reply, key, what string) (int, error) {
	if r.Kind == driver.ReplyNil {
		return 0, nil
	}
	n, err := strconv.Atoi(r.Str)
	if err != nil {
		wrong := fmt.Errorf("WRONGTYPE: %s is %s, which is no number, and so no %s", wire.Quote(key), wire.Quote(r.Str), what)
		return 0, fmt.Errorf("redlatch: %w", &driver.RunError{Outcome: driver.Refused, Code: "WRONGTYPE", Err: wrong})
	}
	return n, nil
}

// wrongType says whether an error that a key raised means that what was there is
// gone: somebody has put something else in its place.
func wrongType(text string) bool { return driver.ServerError(text, nil).Code == "WRONGTYPE" }

// Unexpected says that a script has answered what it never does.
func Unexpected(r driver.Reply, s *script.Script) error {
	return fmt.Errorf("redlatch: unexpected answer %s to %s", wire.Quote(fmt.Sprintf("%+v", r)), s.Name())
}
