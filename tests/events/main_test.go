package events

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

// bg is the context of those that need not leave.
var bg = context.Background()

func TestMain(m *testing.M) { leaktest.Main(m) }
