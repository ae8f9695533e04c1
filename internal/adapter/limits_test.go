package adapter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 1600 * time.Millisecond
		limits := &Limits{After: after}
		for range 100 {
			start := time.Now()
			ctx := limits.Get()
			if deadline, ok := ctx.Deadline(); !ok || deadline.After(start.Add(after)) {
				t.Errorf("ends at %v, asked for %v after %v", deadline, after, start)
			}
			if err := ctx.Err(); err != nil {
				t.Fatal("is over:", err)
			}
			<-ctx.Done()
			if took := time.Since(start); took < after-after/16 || took > after {
				t.Errorf("ended after %v, want %v or a little less", took, after)
			}
			if ctx.Err() != context.DeadlineExceeded {
				t.Error(ctx.Err())
			}
			time.Sleep(37 * time.Millisecond)
		}
	})
}

func TestCallsShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := &Limits{After: 3 * time.Second}
		all := map[context.Context]bool{}
		for range 1000 {
			all[limits.Get()] = true
			time.Sleep(time.Millisecond)
		}
		if len(all) > 6 {
			t.Errorf("a second of calls has made %d limits, want one in each 187 ms", len(all))
		}
		ctx := limits.Get()
		if allocs := testing.AllocsPerRun(100, func() { ctx = limits.Get() }); allocs > 0 {
			t.Errorf("Get allocates %v times", allocs)
		}
		<-ctx.Done()
	})
}
