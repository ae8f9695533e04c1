// Package dashboard tests the web pages in a real browser, a Chromium without a
// window, with real clients on a real server.
package dashboard

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// bg is the context of those that need none.
var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m, drivers.Lingering...) }
