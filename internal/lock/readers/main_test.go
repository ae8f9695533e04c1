package readers

import (
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
