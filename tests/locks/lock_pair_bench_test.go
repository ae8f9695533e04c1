package locks

import (
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// BenchmarkPair: what an acquisition and its release cost, if nobody else wants
// the lock.
func BenchmarkPair(b *testing.B) {
	server := testserver.Start(b, testserver.Redis)
	c := locktest.ClientOf(b, drivers.Rueidis.Open(b, drivers.Single(server.Addr())), redlatch.Config{})
	rw := c.ReadWriteLock("accounts")
	for name, l := range map[string]*redlatch.Lock{"lock": c.Lock("orders"), "group": redisson.GroupLock(c, "stock", []string{"1"}), "write": rw.Write(), "read": rw.Read()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h, err := l.Acquire(bg)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Release(bg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
