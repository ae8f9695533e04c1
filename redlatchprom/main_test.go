package redlatchprom_test

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

// bg is the context of those that need none.
var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m) }
