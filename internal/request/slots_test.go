package request

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A driver that leaves a server cuts off requests that are in flight. Then the
// caller was told of a closed connection, and not why.
func TestWhatIsSaidIsThatTheServerIsNoPrimary(t *testing.T) {
	cut := &driver.RunError{Outcome: driver.Unknown, Err: errors.New("use of closed network connection")}
	for _, text := range []string{"READONLY You can't write against a read only replica.", "MASTERDOWN Link with MASTER is down", "MOVED 1 h:1"} {
		for _, replicated := range []bool{false, true} {
			call := &Call{Server: &Server{Traits: driver.Traits{Replicated: replicated, Cluster: replicated}}, Keys: []string{"orders"}}
			answer := driver.ServerError(text, errors.New(text))
			_, before := call.misplaced(answer, nil)
			err, elsewhere := call.misplaced(cut, before)
			if !errors.Is(err, cut) || errors.Is(elsewhere, errors.Unwrap(answer)) == replicated {
				t.Errorf("after %q, where others find the primary %v: %v, %v", text, replicated, err, elsewhere)
			}
		}
	}
}

// Whoever asked may not have waited for the answer. All others have to know, and
// are told once.
func TestAClientLearnsThatSlotsCountFromWhatNobodyWaitsFor(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		e := newEcho()
		sending(t, e, func(t *testing.T, c *Server) {
			apart := 0
			c.Apart = func() { apart++ }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if leaves {
				time.AfterFunc(e.delay/2, cancel)
			}
			err := ask(ctx, c, "k", "slots")
			if SlotsCount(c) == leaves || errors.Is(err, context.Canceled) != leaves {
				t.Errorf("at once: %t, %v", SlotsCount(c), err)
			}
			time.Sleep(e.delay)
			for range 2 {
				synctest.Wait()
				if !SlotsCount(c) || apart != 1 {
					t.Errorf("it knows that slots count: %t; it was told so %d times", SlotsCount(c), apart)
				}
				_ = ask(t.Context(), c, "k", "slots")
			}
		})
	}
}
