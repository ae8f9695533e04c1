//go:build !race

package rueidis_test

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/testserver"
)

// The race detector makes a sync.Pool forget on purpose, so this is not for it.
func TestRunAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	d := newDriver(t, options(testserver.Start(t, testserver.Redis).Addr()))
	s, keys, args := one(t), []string{"key"}, []string{"30000", "owner"}
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
