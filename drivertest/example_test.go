package drivertest_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
)

// The whole test of an adapter: open is its function that makes a driver, with
// that time for a script.
func ExampleRun() {
	var t *testing.T // the test's

	drivertest.Run(t, drivertest.Config{
		New: func(t *testing.T, addr string, timeout time.Duration) driver.Redis {
			d, stop := open(addr, timeout)
			t.Cleanup(stop)
			return d
		},
	})
}

func open(string, time.Duration) (driver.Redis, func()) { return nil, func() {} }
