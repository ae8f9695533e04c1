package connect

import (
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

func TestMain(m *testing.M) { leaktest.Main(m, drivers.Lingering...) }
