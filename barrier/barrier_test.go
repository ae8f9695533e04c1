package barrier_test

import (
	"testing"

	"github.com/redlatch/redlatch/barrier"
	engine "github.com/redlatch/redlatch/internal/barrier"
)

// The engine says in words of its own how a generation was broken. These become
// the user's.
func TestTheWordsAreThoseOfTheEngine(t *testing.T) {
	for reason, word := range map[barrier.BreakReason]string{
		barrier.BrokenLeft: engine.Left, barrier.BrokenDead: engine.Dead, barrier.BrokenReset: engine.Reset, barrier.BrokenGone: engine.Gone,
	} {
		if string(reason) != word {
			t.Errorf("%q is %q of the engine", reason, word)
		}
	}
}
