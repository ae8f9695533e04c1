package main

import (
	"context"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch/examples/internal/shown"
	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}

// The program does what its README says, and sees for itself that it does.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	shown.Check(t, out.String())
}

// A second run finds the reports written: the locks on a server of yours outlive
// the first.
func TestRunAgain(t *testing.T) {
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	t.Setenv("REDIS_ADDR", server.Addr())
	for _, reports := range []string{"3 reports", "0 reports"} {
		var out strings.Builder
		if err := run(context.Background(), &out); err != nil || !strings.Contains(out.String(), "3 nights, "+reports) {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}
