//go:build !race

package rueidis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
)

// The race detector makes a sync.Pool forget on purpose, so this is not for it.
func TestRunAllocatesNothing(t *testing.T) {
	d := newDriver(t, options(testserver.Start(t, testserver.Redis).Addr()))
	s, keys, args := one, []string{"key"}, []string{"30000", "owner"}
	ctx := context.Background()
	allocs := testing.AllocsPerRun(2000, func() {
		if reply, err := d.Run(ctx, s, keys, args); err != nil || reply.Int != 1 {
			t.Fatal(reply, err)
		}
	})
	if allocs > 0 {
		t.Errorf("a Run allocates %v times, want 0", allocs)
	}
}

// What rueidis itself allocates for the results cannot be avoided.
func TestRunBatchAllocatesNothingMore(t *testing.T) {
	opt := options(testserver.Start(t, testserver.Redis).Addr())
	opt.DisableCache, opt.DisableRetry, opt.PipelineMultiplex = true, true, -1 // as New has it
	plain, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	d, ok := newDriver(t, opt).(driver.Batcher)
	if !ok {
		t.Fatal("no Batcher")
	}
	all, ctx := batchOf(one, 8), context.Background()
	if d.RunBatch(all); all[0].Err != nil {
		t.Fatal(all[0].Err)
	}
	cmds := make([]rueidis.Completed, len(all))
	want := testing.AllocsPerRun(2000, func() {
		for i, r := range all {
			cmds[i] = plain.B().Evalsha().Sha1(r.Script.SHA()).Numkeys(1).Key(r.Keys...).Arg(r.Args...).Build()
		}
		for _, res := range plain.DoMulti(ctx, cmds...) {
			if err := res.Error(); err != nil {
				t.Fatal(err)
			}
		}
	})
	got := testing.AllocsPerRun(2000, func() {
		if d.RunBatch(all); all[7].Err != nil || all[7].Reply.Int != 1 {
			t.Fatal(all[7].Reply, all[7].Err)
		}
	})
	if got > want {
		t.Errorf("a RunBatch allocates %v times, and rueidis by itself %v times", got, want)
	}
	t.Logf("allocations: %v, and %v by rueidis itself", got, want)
}

// A program that has many names makes a Lock for each acquisition.
func TestALockOfANameAllocatesLittle(t *testing.T) {
	opt := options(testserver.Start(t, testserver.Redis).Addr())
	opt.ConnWriteTimeout = 3 * time.Second
	d := newDriver(t, opt)
	c, err := redlatch.New(d, redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx := t.Context()
	var lock *redlatch.Lock
	if allocs := testing.AllocsPerRun(2000, func() { lock = c.Lock("orders:42") }); allocs > 2 {
		t.Errorf("a Lock allocates %v times, want at most 2", allocs)
	}
	allocs := testing.AllocsPerRun(2000, func() {
		lock = c.Lock("orders:42")
		hold, err := lock.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 8 {
		t.Errorf("a Lock that is acquired and released allocates %v times, want at most 8", allocs)
	}
	t.Logf("allocations: %v", allocs)
}
