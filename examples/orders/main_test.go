package main

import (
	"context"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/examples/internal/shown"
	"github.com/redlatch/redlatch/internal/heldport"
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

// Without Redis nothing is shipped, and the program says so and why.
func TestRunWithoutRedis(t *testing.T) {
	t.Setenv("REDIS_ADDR", heldport.Refusing(t))
	var out strings.Builder
	if err := run(context.Background(), &out); err == nil || !strings.Contains(err.Error(), "503 Service Unavailable: redlatch: server unavailable") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
