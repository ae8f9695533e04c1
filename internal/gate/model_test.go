package gate

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/randtest"
)

// A model is a gate as one would explain it: a queue of people, and perhaps
// one inside with what was handed over.
type model struct {
	*testing.T
	*randtest.Rand
	gate Gate[int]

	inside bool
	queue  []*Ticket[int]
	in     *Ticket[int] // who is inside, if it came through the queue
	with   int          // and what it has yet to take
	idle   []*Ticket[int]
	next   int
}

func TestGateIsItsModel(t *testing.T) {
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		m := &model{T: t, Rand: r}
		for range 6 {
			m.idle = append(m.idle, NewTicket[int]())
		}
		m.Steps(map[string]func(){
			"Enter":    m.enter,
			"TryEnter": m.tryEnter,
			"Pass":     m.pass,
			"Exit":     m.exit,
			"Cancel":   m.cancel,
			"Take":     m.take,
			"Wake":     func() { m.anybody().Wake() },
		}, m.check)
	})
}

func (m *model) enter() {
	if len(m.idle) == 0 {
		return
	}
	w := m.idle[0]
	in := m.gate.Enter(w)
	if in == m.inside {
		m.Fatalf("Enter = %v while somebody is inside: %v", in, m.inside)
	}
	if in {
		m.inside = true
		return
	}
	m.idle, m.queue = m.idle[1:], append(m.queue, w)
}

func (m *model) tryEnter() {
	if in := m.gate.TryEnter(); in == m.inside {
		m.Fatalf("TryEnter = %v while somebody is inside: %v", in, m.inside)
	}
	m.inside = true
}

// leaves is the precondition of Pass and Exit: only who is inside leaves, and
// it has taken what it was given.
func (m *model) leaves() bool { return m.inside && m.in == nil }

func (m *model) pass() {
	if !m.leaves() {
		return
	}
	m.next++
	if passed := m.gate.Pass(m.next); passed != (len(m.queue) > 0) {
		m.Fatalf("Pass = %v with a queue of %d", passed, len(m.queue))
	}
	m.admit(m.next)
}

func (m *model) exit() {
	if !m.leaves() {
		return
	}
	m.gate.Exit()
	m.inside = len(m.queue) > 0
	m.admit(0)
}

func (m *model) admit(with int) {
	if len(m.queue) > 0 {
		m.in, m.with, m.queue = m.queue[0], with, m.queue[1:]
	}
}

func (m *model) cancel() {
	w := m.anybody()
	i := slices.Index(m.queue, w)
	if away := m.gate.Cancel(w); away != (i >= 0) {
		m.Fatalf("Cancel = %v of number %d in the queue", away, i)
	}
	if i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.idle = append(m.idle, w)
	}
}

func (m *model) anybody() *Ticket[int] {
	known := slices.Concat(m.queue, m.idle)
	if m.in != nil {
		known = append(known, m.in)
	}
	return known[m.IntN(len(known))]
}

func (m *model) take() {
	if m.in == nil {
		return
	}
	if m.Bool() { // it is woken, or it has lost a Cancel
		<-m.in.Woken()
	}
	if got := m.in.Take(); got != m.with {
		m.Fatalf("took %d, want %d", got, m.with)
	}
	m.idle, m.in = append(m.idle, m.in), nil
}

// check compares the gate with the model.
func (m *model) check() {
	if got := m.gate.Waiting(); got != len(m.queue) || m.gate.inside != m.inside {
		m.Fatalf("Waiting = %d, inside %v; want %d, %v", got, m.gate.inside, len(m.queue), m.inside)
	}
	if !slices.Equal(slices.Collect(m.gate.line.All()), m.queue) {
		m.Fatal("the queue is in another order")
	}
	for _, w := range slices.Concat(m.queue, m.idle) {
		if w.In() {
			m.Fatal("one is let in beside another")
		}
	}
	if m.in != nil && (!m.in.In() || len(m.in.woken) != 1) {
		m.Fatal("the one let in is not told")
	}
}
