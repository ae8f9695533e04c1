package synchronizers

import (
	"sync"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// BenchmarkSemaphore: what an acquisition and its release cost, beside one round
// trip of a script.
func BenchmarkSemaphore(b *testing.B) {
	server := testserver.Start(b, testserver.Redis)
	c := locktest.ClientOf(b, drivers.Rueidis.Open(b, drivers.Single(server.Addr())), redlatch.Config{})
	s := semaphore.New(c, locktest.SemaphoreName, 0)
	if _, err := s.TrySetPermits(bg, 8); err != nil {
		b.Fatal(err)
	}
	once := func(b *testing.B) {
		b.Helper()
		if err := s.Acquire(bg, 1); err != nil {
			b.Error(err)
		}
		if err := s.Release(bg, 1); err != nil {
			b.Error(err)
		}
	}
	b.Run("round trip", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Available(bg); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			once(b)
		}
	})
	b.Run("128 on 8", func(b *testing.B) {
		b.ReportAllocs()
		var wg sync.WaitGroup
		for g := range 128 {
			wg.Go(func() {
				for i := g; i < b.N; i += 128 {
					once(b)
				}
			})
		}
		wg.Wait()
	})
}
