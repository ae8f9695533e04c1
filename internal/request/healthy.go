package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
)

// unsubscribed is for how long a subscription may take, or may be missing, until
// something is wrong.
const unsubscribed = LongestAttempt

// Healthy asks a server for an answer, with a script that uses no key and no
// command, and returns why there was none, or which subscriptions are missing.
// Without an answer the latter says nothing of the user's rights, and is nil.
func Healthy(ctx context.Context, s *Server) (answer, subscriptions error) {
	ask := s.Question(lua.LockTTLs, nil)
	_, answer = ask.Run(ctx)
	if ended, cause := GaveUp(answer); ended {
		answer = &OutageError{Cause: ErrNoAnswer, Ended: cause}
	}
	if d, ok := s.Driver.(driver.Subscriber); ok && !errors.Is(answer, ErrUnavailable) {
		subscriptions = missing(d.Unconfirmed(unsubscribed))
	}
	return answer, subscriptions
}

func missing(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("redlatch: subscriptions are missing: the server has not confirmed %d of them for %v, so waiters are late, and others do not hear from this client; redlatch acl prints the rights that it needs", n, unsubscribed.Round(time.Second))
}
