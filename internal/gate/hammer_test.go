package gate

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A baton is what the goroutines of a hammer pass on. Its fields are not
// locked: whoever is inside has it alone, or the race detector says so.
type baton struct{ hands int }

// hammer counts what must balance.
type hammer struct {
	gate    Gate[*baton]
	entries int // not locked either: written inside only
	inside  atomic.Int32
	made    atomic.Int64
	dropped atomic.Int64
	gotAway atomic.Int64
	lostRun atomic.Int64 // Cancel came too late
	passed  atomic.Int64
}

// Goroutines enter, give up while they may be let in, pass a baton on or drop
// it. There is never more than one inside, and no baton is lost or doubled.
func TestHammer(t *testing.T) {
	const goroutines, rounds = 64, 400
	var h hammer
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			w := NewTicket[*baton]()
			for range rounds {
				if b, in := h.enter(w); in {
					h.leave(t, b)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d entries, %d passed on, %d got away, %d let in while giving up", h.entries, h.passed.Load(), h.gotAway.Load(), h.lostRun.Load())
	if n := h.gate.Waiting(); n != 0 || h.gate.line.First() != nil {
		t.Errorf("%d waiters at the end", n)
	}
	if !h.gate.TryEnter() {
		t.Error("somebody is inside at the end")
	}
	if made, dropped := h.made.Load(), h.dropped.Load(); made != dropped {
		t.Errorf("%d batons made, %d dropped", made, dropped)
	}
	if got, want := int64(h.entries)+h.gotAway.Load(), int64(goroutines*rounds); got != want {
		t.Errorf("%d entries and escapes, want %d", got, want)
	}
	if h.passed.Load() == 0 || h.gotAway.Load() == 0 || h.lostRun.Load() == 0 {
		t.Error("the hammer missed a case")
	}
}

// enter returns what the goroutine was let in with, and whether it was.
func (h *hammer) enter(w *Ticket[*baton]) (*baton, bool) {
	if h.gate.Enter(w) {
		return nil, true
	}
	switch rand.N(3) {
	case 0: // patient
		for !w.In() { // it may be woken for an admission of before, of which it knew
			<-w.Woken()
		}
		return w.Take(), true
	case 1: // gives up at once
	case 2: // gives up at about the time when it is let in
		for range rand.N(100) {
			if w.In() {
				break
			}
			runtime.Gosched()
		}
	}
	if h.gate.Cancel(w) {
		h.gotAway.Add(1)
		return nil, false
	}
	h.lostRun.Add(1)
	return w.Take(), true
}

func (h *hammer) leave(t *testing.T, b *baton) {
	if h.inside.Add(1) != 1 {
		t.Error("two inside")
	}
	h.entries++
	if b == nil {
		h.made.Add(1)
		b = &baton{}
	}
	b.hands++
	if rand.N(4) == 0 {
		runtime.Gosched()
	}
	h.inside.Add(-1)
	if rand.N(4) > 0 {
		if h.gate.Pass(b) { // now the baton is another's
			h.passed.Add(1)
			return
		}
	}
	b.hands = -1 << 62
	h.dropped.Add(1)
	h.gate.Exit()
}
