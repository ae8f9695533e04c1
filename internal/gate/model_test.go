package gate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A model is a gate as one would explain it: a queue of people, and perhaps
// one inside with what was handed over.
type model struct {
	gate Gate[int]

	inside bool
	queue  []*Waiter[int]
	in     *Waiter[int] // who is inside, if it came through the queue
	with   int          // and what it has yet to take
	idle   []*Waiter[int]
	next   int
}

func TestGateIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{}
		for range 6 {
			m.idle = append(m.idle, NewWaiter[int]())
		}
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"Enter":    m.enter,
			"TryEnter": m.tryEnter,
			"Pass":     m.pass,
			"Exit":     m.exit,
			"Cancel":   m.cancel,
			"Take":     m.take,
		})
	})
}

func (m *model) enter(t *rapid.T) {
	if len(m.idle) == 0 {
		t.Skip("all are in the queue")
	}
	w := m.idle[0]
	in := m.gate.Enter(w)
	if in == m.inside {
		t.Fatalf("Enter = %v while somebody is inside: %v", in, m.inside)
	}
	if in {
		m.inside = true
		return
	}
	m.idle, m.queue = m.idle[1:], append(m.queue, w)
}

func (m *model) tryEnter(t *rapid.T) {
	if in := m.gate.TryEnter(); in == m.inside {
		t.Fatalf("TryEnter = %v while somebody is inside: %v", in, m.inside)
	}
	m.inside = true
}

// leaving is the precondition of Pass and Exit: only who is inside leaves, and
// it has taken what it was given.
func (m *model) leaving(t *rapid.T) {
	if !m.inside || m.in != nil {
		t.Skip("nobody to leave")
	}
}

func (m *model) pass(t *rapid.T) {
	m.leaving(t)
	m.next++
	if passed := m.gate.Pass(m.next); passed != (len(m.queue) > 0) {
		t.Fatalf("Pass = %v with a queue of %d", passed, len(m.queue))
	}
	m.admit(m.next)
}

func (m *model) exit(t *rapid.T) {
	m.leaving(t)
	m.gate.Exit()
	m.inside = len(m.queue) > 0
	m.admit(0)
}

func (m *model) admit(with int) {
	if len(m.queue) > 0 {
		m.in, m.with, m.queue = m.queue[0], with, m.queue[1:]
	}
}

func (m *model) cancel(t *rapid.T) {
	known := slices.Concat(m.queue, m.idle)
	if m.in != nil {
		known = append(known, m.in)
	}
	w := rapid.SampledFrom(known).Draw(t, "waiter")
	i := slices.Index(m.queue, w)
	if away := m.gate.Cancel(w); away != (i >= 0) {
		t.Fatalf("Cancel = %v of number %d in the queue", away, i)
	}
	if i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.idle = append(m.idle, w)
	}
}

func (m *model) take(t *rapid.T) {
	if m.in == nil {
		t.Skip("nobody was let in")
	}
	if rapid.Bool().Draw(t, "sees Ready") { // or it has lost a Cancel
		<-m.in.Ready()
	}
	if got := m.in.Take(); got != m.with {
		t.Fatalf("took %d, want %d", got, m.with)
	}
	m.idle, m.in = append(m.idle, m.in), nil
}

// check compares the gate with the model.
func (m *model) check(t *rapid.T) {
	if got := m.gate.Waiting(); got != len(m.queue) || m.gate.inside != m.inside {
		t.Fatalf("Waiting = %d, inside %v; want %d, %v", got, m.gate.inside, len(m.queue), m.inside)
	}
	if !slices.Equal(slices.Collect(m.gate.line.All()), m.queue) {
		t.Fatal("the queue is in another order")
	}
	for _, w := range slices.Concat(m.queue, m.idle) {
		if len(w.ready) > 0 {
			t.Fatal("Ready delivers to one that is not inside")
		}
	}
	if m.in != nil && len(m.in.ready) != 1 {
		t.Fatal("Ready does not deliver to the one let in")
	}
}
