package synchronizers

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Terms that begin with the server's clock, on real servers.
func TestTermsOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		last := int64(0)
		for i := range 6 {
			err := election.New(c, name).Run(bg, func(ctx context.Context, _ int64) error {
				if n := term(ctx); n <= last || i%2 == 1 && n != last+1 {
					t.Errorf("term %d after %d", n, last)
				}
				last = term(ctx)
				return errEnough
			})
			if err != errEnough { //nolint:errorlint // as it is
				t.Fatal(err)
			}
			if l, err := election.New(c, name).Leader(bg); err != nil || l.Term != last {
				t.Errorf("Leader: %+v, %v; want term %d", l, err, last)
			}
			if i%2 == 1 {
				s.MustDo("FLUSHALL")
			}
		}
		if d := time.Since(time.UnixMicro(last)); d < -time.Second || d > locktest.Generous {
			t.Errorf("term %d is %v off the clock", last, d)
		}
	})
}
