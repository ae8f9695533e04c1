package holdctx

import (
	"runtime"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A had is what a user has.
type had struct {
	leash Leash
	held  *held
}

type held struct {
	n       int
	dropped chan<- int
}

func (h *held) Dropped() { h.dropped <- h.n }

// What was dropped is told of once, whoever had its ring before and still has his
// leash. What was given back is not, nor what is still had.
func TestOnlyWhatIsDroppedIsToldOf(t *testing.T) {
	const rounds = 10
	dropped := make(chan int, 100)
	have := func(n int) *had {
		h := &had{held: &held{n, dropped}}
		h.leash.PutOn(h.held)
		return h
	}
	var back, kept []*had
	want := map[int]bool{}
	for n := range rounds {
		h := have(-1) // given back: its ring is for the next one
		h.leash.TakeOff()
		h.leash.TakeOff()
		back = append(back, h)
		have(n)
		want[n] = true
		kept = append(kept, have(rounds+n))
		have(-3).leash.TakeOff() // given back and gone
	}
	wait := func() {
		for end := time.Now().Add(time.Minute); len(want) > 0; {
			runtime.GC()
			select {
			case n := <-dropped:
				if !want[n] {
					t.Fatalf("told of %d, want %v", n, want)
				}
				delete(want, n)
			case <-time.After(time.Millisecond):
				if time.Now().After(end) {
					t.Fatalf("%v were dropped, and nobody was told", want)
				}
			}
		}
	}
	wait()
	runtime.KeepAlive(back)
	runtime.KeepAlive(kept)
	for n := range rounds { // from here on
		want[rounds+n] = true
	}
	wait()
}
