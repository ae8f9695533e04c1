package gate

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// enqueue puts n new waiters into the queue of a gate that somebody is inside.
func enqueue(t *testing.T, g *Gate[int], n int) []*Ticket[int] {
	t.Helper()
	ws := make([]*Ticket[int], n)
	for i := range ws {
		ws[i] = NewTicket[int]()
		if g.Enter(ws[i]) {
			t.Fatalf("waiter %d was let in although somebody is inside", i)
		}
	}
	return ws
}

// admitted says whether w has been let in, and was told.
func admitted[V any](w *Ticket[V]) bool { return w.In() && woken(w) }

// woken says whether w has something to look at, without waiting.
func woken[V any](w *Ticket[V]) bool {
	select {
	case <-w.Woken():
		return true
	default:
		return false
	}
}

func TestZeroGateIsOpen(t *testing.T) {
	var g Gate[int]
	w := NewTicket[int]()
	if !g.Enter(w) {
		t.Fatal("an open gate did not let in")
	}
	if w.In() || woken(w) {
		t.Error("a waiter that was let in at once was told so")
	}
	if g.TryEnter() {
		t.Error("TryEnter let in a second one")
	}
	g.Exit()
	if !g.TryEnter() {
		t.Error("the gate is not open after Exit")
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	const n = 5
	var g Gate[int]
	g.TryEnter()
	ws := enqueue(t, &g, n)
	for i, w := range ws {
		for _, later := range ws[i:] {
			if admitted(later) {
				t.Fatalf("somebody is inside beside the holder before step %d", i)
			}
		}
		if g.TryEnter() {
			t.Fatal("TryEnter overtook the queue")
		}
		g.Exit()
		if !admitted(w) {
			t.Fatalf("waiter %d was not let in", i)
		}
		if got := g.Waiting(); got != n-1-i {
			t.Errorf("Waiting = %d, want %d", got, n-1-i)
		}
	}
	g.Exit()
	if !g.TryEnter() {
		t.Error("the gate is not open after the last one")
	}
}

func TestPassGivesAValueAndExitGivesNone(t *testing.T) {
	var g Gate[int]
	g.TryEnter()
	if g.Pass(1) {
		t.Fatal("Pass to nobody said that it passed")
	}
	if g.TryEnter() {
		t.Fatal("Pass to nobody opened the gate")
	}
	ws := enqueue(t, &g, 3)
	if !g.Pass(7) || !admitted(ws[0]) {
		t.Fatal("Pass did not let the first waiter in")
	}
	if got := ws[0].Take(); got != 7 {
		t.Errorf("took %d, want what was passed, 7", got)
	}
	if got := ws[0].Take(); got != 0 {
		t.Errorf("took %d a second time, want nothing", got)
	}
	g.Exit()
	if !admitted(ws[1]) || ws[1].Take() != 0 {
		t.Error("Exit did not let the second waiter in with nothing")
	}
	if !g.Pass(9) || !admitted(ws[2]) || ws[2].Take() != 9 {
		t.Error("the third waiter did not get what was passed")
	}
}

// A waiter that was let in while it gave up is inside, with what it was given,
// and its Waiter can be used again.
func TestCancelLosesToAdmission(t *testing.T) {
	var g Gate[int]
	g.TryEnter()
	w := enqueue(t, &g, 1)[0]
	g.Pass(5)
	if g.Cancel(w) {
		t.Fatal("Cancel took back an admission")
	}
	if got := w.Take(); got != 5 {
		t.Errorf("took %d, want 5", got)
	}
	g.Exit()
	if !g.TryEnter() {
		t.Fatal("the gate is not open")
	}
	if g.Enter(w) {
		t.Fatal("let in beside the holder")
	}
	if w.In() {
		t.Fatal("it was let in before")
	}
	if !g.Cancel(w) {
		t.Fatal("Cancel did not take w out")
	}
	if g.Cancel(w) {
		t.Error("Cancel took w out twice")
	}
}

// Whoever is woken may have been let in or not: it looks. However often it is
// woken, that does not keep it from being let in, nor whoever lets it in.
func TestWhoIsWokenLooks(t *testing.T) {
	var g Gate[int]
	g.TryEnter()
	w := enqueue(t, &g, 1)[0]
	for range 3 {
		w.Wake()
	}
	if w.In() || !woken(w) || woken(w) {
		t.Fatal("it was not woken once, or let in")
	}
	w.Wake()
	g.Pass(5)
	w.Wake()
	if !admitted(w) || w.Take() != 5 || w.In() {
		t.Error("it was not let in once")
	}
}

func TestAllWhoAreQueuedAreWoken(t *testing.T) {
	var g Gate[int]
	g.TryEnter()
	ws := enqueue(t, &g, 3)
	g.Pass(5)
	woken(ws[0])
	g.Wake()
	if woken(ws[0]) {
		t.Error("the one inside was woken")
	}
	for _, w := range ws[1:] {
		if w.In() || !woken(w) {
			t.Error("one who is queued was not woken, or let in")
		}
	}
}

func TestLookGoesOnWhileItIsWanted(t *testing.T) {
	var g Gate[int]
	g.TryEnter()
	for i := range 5 {
		w := NewTicket[int]()
		w.Who = i
		g.Enter(w)
	}
	for wanted := range 7 {
		var seen []any
		left := g.Look(func(who any) bool {
			seen = append(seen, who)
			return len(seen) < wanted
		})
		if want := []any{0, 1, 2, 3, 4}[:max(1, min(wanted, 5))]; !slices.Equal(seen, want) || left != 5-len(want) {
			t.Errorf("if %d are wanted: %v, and %d others; want %v", wanted, seen, left, want)
		}
	}
}

func TestTenThousandLeaveInAnyOrder(t *testing.T) {
	const n = 10_000
	var g Gate[int]
	g.TryEnter()
	ws := enqueue(t, &g, n)
	// Every waiter but each hundredth leaves, the last first, then from both
	// ends of what is left: the order of the rest must not change.
	stay := func(i int) bool { return i%100 == 50 }
	left := n
	for _, i := range leavingOrder(n) {
		if stay(i) {
			continue
		}
		if !g.Cancel(ws[i]) {
			t.Fatalf("waiter %d could not leave", i)
		}
		left--
		if got := g.Waiting(); got != left {
			t.Fatalf("Waiting = %d, want %d", got, left)
		}
	}
	for i, w := range ws {
		if !stay(i) {
			continue
		}
		g.Exit()
		if !admitted(w) {
			t.Fatalf("waiter %d is not next", i)
		}
	}
	g.Exit()
	if g.line.First() != nil || g.Waiting() != 0 || !g.TryEnter() {
		t.Error("the queue is not empty at the end")
	}
}

// leavingOrder is a fixed shuffle of 0 to n-1, the ends first.
func leavingOrder(n int) []int {
	order := []int{n - 1, 0}
	for i := 1; i < n-1; i++ {
		order = append(order, 1+(i*7919)%(n-2))
	}
	slices.Sort(order[2 : n/2]) // and a part of it in order
	return order
}

// Waiting returns how many goroutines are queued.
func (g *Gate[V]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.Len()
}
