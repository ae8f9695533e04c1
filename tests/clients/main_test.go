package clients

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// bg is the context of those that need not leave.
var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m, drivers.Lingering...) }
