package locks

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Tokens that are seeded from the server's clock, on real servers.
func TestTokensOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{TokenTTL: time.Hour})
		last := int64(0)
		for range 20 {
			h, err := c.Lock("orders", redlatch.Fenced()).Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			if h.Token() <= last || fmt.Sprint(s.MustDo("GET", tokenKey)) != fmt.Sprint(h.Token()) {
				t.Errorf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			if err := h.Release(bg); err != nil {
				t.Fatal(err)
			}
			if last%3 == 0 {
				s.MustDo("DEL", tokenKey)
			}
		}
		if d := time.Since(time.UnixMicro(last)); d < -time.Second || d > locktest.Generous {
			t.Errorf("token %d is %v off the clock", last, d)
		}
	})
}
