package locks

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// slowLog takes a millisecond for each line.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (slowLog) Handle(context.Context, slog.Record) error {
	time.Sleep(time.Millisecond)
	return nil
}

// BenchmarkLossesAtOnce has many holds end at one moment, beside a logger and a
// handler that take a millisecond each, and tells how long after the end of its
// window the last holder was told, in ms, and which part of its margin that is.
// Every tenth is a MultiLock's, every fifth has a context of With too.
func BenchmarkLossesAtOnce(b *testing.B) {
	for _, x := range []struct {
		holds int
		lease time.Duration
	}{{1000, 300 * time.Millisecond}, {100_000, 30 * time.Second}} {
		b.Run(fmt.Sprintf("%d holds of %v", x.holds, x.lease), func(b *testing.B) {
			margin := 10*time.Millisecond + x.lease/50
			var worst time.Duration
			for b.Loop() {
				c, err := redlatch.New(&locktest.Blockable{End: make(chan struct{})}, redlatch.Config{
					Logger:       slog.New(slowLog{slog.DiscardHandler}),
					CloseTimeout: time.Millisecond,
				})
				if err != nil {
					b.Fatal(err)
				}
				observe.Add(c, observe.Hooks{Lost: func(observe.LostEvent) { time.Sleep(time.Millisecond) }})
				var ctxs []context.Context
				end := time.Now().Add(x.lease - margin)
				for i := range x.holds {
					// All windows end at one moment: the later it is, the shorter the lease.
					lease := (time.Until(end) + 10*time.Millisecond) * 50 / 49
					var h interface {
						Context() context.Context
						With(ctx context.Context) context.Context
					}
					if l := c.Lock(fmt.Sprint(i), redlatch.Lease(lease)); i%10 == 0 {
						h, err = redlatch.MultiLock(l).Acquire(b.Context())
					} else {
						h, err = l.Acquire(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
					ctxs = append(ctxs, h.Context())
					if i%10 < 2 {
						ctxs = append(ctxs, h.With(b.Context()))
					}
				}
				for _, ctx := range ctxs {
					<-ctx.Done()
				}
				worst = max(worst, time.Since(end))
				_ = c.Close()
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms-late")
			b.ReportMetric(float64(worst)/float64(margin), "margins")
			b.ReportMetric(0, "ns/op")
		})
	}
}
