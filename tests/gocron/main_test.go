package gocron

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m, drivers.Lingering...) }
