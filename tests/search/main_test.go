package search

import (
	"runtime/debug"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(300) // what a search has seen is no garbage before the search ends
	leaktest.Main(m)
}
