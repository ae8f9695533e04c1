//go:build unix

package locks

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// sole is a driver in memory of a server that nobody else uses: a lock that is to
// be yielded is kept.
type sole struct{ *locktest.Blockable }

func (l sole) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	reply, err := l.Blockable.Run(ctx, s, keys, args)
	if strings.HasSuffix(s.Name(), ".yield") {
		reply = driver.Reply{Kind: driver.ReplyList, List: []driver.Reply{reply}}
	}
	return reply, err
}

// BenchmarkLocal: what acquiring and releasing cost a client, without a server. It
// is for two versions of redlatch, which are measured in turn:
//
//	go test -c -o new ./lock   # and the same in the other worktree
//	for i in $(seq 20); do for v in old new; do ./$v -test.run xxx -test.bench Local -test.benchtime 1s >> $v.txt; done; done
//	benchstat old.txt new.txt
//
// Where the machine is shared, the CPU time says more than the time.
func BenchmarkLocal(b *testing.B) {
	client := func(b *testing.B) *redlatch.Client {
		b.Helper()
		end := make(chan struct{})
		c := locktest.ClientOf(b, sole{&locktest.Blockable{End: end}}, redlatch.Config{})
		b.Cleanup(func() { close(end) })
		return c
	}
	pairs := func(l *redlatch.Lock, n int) error {
		for range n {
			h, err := l.Acquire(bg)
			if err != nil {
				return err
			}
			if err := h.Release(bg); err != nil {
				return err
			}
		}
		return nil
	}
	b.Run("pair", func(b *testing.B) {
		l := client(b).Lock("orders")
		b.ReportAllocs()
		measureCPU(b, func() {
			if err := pairs(l, b.N); err != nil {
				b.Error(err)
			}
		})
	})
	b.Run("hand-off", func(b *testing.B) {
		l := client(b).Lock("orders")
		b.ReportAllocs()
		measureCPU(b, func() {
			var both sync.WaitGroup
			for g := range 2 {
				both.Go(func() {
					if err := pairs(l, (b.N+g)/2); err != nil {
						b.Error(err)
					}
				})
			}
			both.Wait()
		})
	})
}

// measureCPU reports the CPU time that f takes, by operation.
func measureCPU(b *testing.B, f func()) {
	b.Helper()
	used := func() int64 {
		var self syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail for the process itself
		return self.Utime.Nano()
	}
	before := used()
	b.ResetTimer()
	f()
	b.StopTimer()
	b.ReportMetric(float64(used()-before)/float64(b.N), "user-ns/op")
}
