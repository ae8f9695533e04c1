package linear

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Forever is when a call ends that may be executed at any time.
const Forever = time.Duration(1<<63 - 1)

// An Op is one call, or one step of it.
type Op struct {
	What    string // as the model names it
	Process int
	From    time.Duration
	To      time.Duration
	N       int    `json:",omitzero"` // permits, a weight, a count, or an index at a barrier
	Who     int    `json:",omitzero"` // an owner of holds, or a caller at a barrier
	Token   int64  `json:",omitzero"` // of a hold; 0: none, or one that proves nothing
	Lost    bool   `json:",omitzero"` // it may not have been executed, or not yet when it ends
	Mute    bool   `json:",omitzero"` // the server did not hear a caller at a barrier for so long that it may take it for dead
	Note    string `json:",omitzero"` // for who reads it

	thing  string // of which a drawing has several
	before []any  // the states that may be when it begins, after what was cut off
	open   bool   // it ends after what is drawn: it may be executed by then, or not
}

// A History is what was called of one thing.
type History struct {
	Model    string
	Name     string        // of the thing
	Capacity int           // what a hold of all of it weighs, its permits, or its parties
	Every    time.Duration // in which a limiter gives as many; of others it says nothing
	Ops      []Op
}

// A Verdict is what the search says of a history.
type Verdict string

// The verdicts.
const (
	Right   Verdict = "there is such an order"
	Wrong   Verdict = "there is no such order"
	Unknown Verdict = "nobody knows: the search has come to its limit"
)

// limit is how many steps a search may take. A history of a minute takes some
// thousands.
const limit = 2_000_000

// A model is one of a kind of thing.
type model struct {
	begin any
	step  func(state any, op Op) []any // the states that may follow; none: that cannot be told in this state
	says  func(op Op) string
	is    func(state any) string
}

// models are by their names.
func (h *History) model() model {
	switch h.Model {
	case "holds":
		return holds(h.Capacity)
	case "semaphore":
		return semaphore(h.Capacity)
	case "latch":
		return latch()
	case "barrier":
		return barrier(h.Capacity)
	case "limiter":
		return limiter(h.Capacity, h.Every)
	}
	panic("no model " + h.Model)
}

// one is the state that follows, if that can be.
func one[S any](possible bool, next S) []any {
	if !possible {
		return nil
	}
	return []any{next}
}

// A search is one of an order, with the steps that it may still take. When there
// are none left, nothing is possible any more, so that it ends soon.
type search struct {
	model

	left atomic.Int64 // each thing is searched by a goroutine
}

func (h *History) search(steps int) *search {
	s := &search{model: h.model()}
	s.left.Store(int64(steps))
	return s
}

// porcupine returns the model as porcupine has it. Each thing of several histories
// is a partition.
func (s *search) porcupine() porcupine.Model {
	x := porcupine.NondeterministicModel{
		Init: func() []any { return []any{s.begin} },
		StepContext: func(_ context.Context, state, input, _ any) []any {
			op := input.(Op) //nolint:forcetypeassert // we have put it there
			if s.left.Add(-1) < 0 {
				return nil
			}
			switch {
			case op.before != nil:
				return op.before
			case op.open:
				return append(s.step(state, op), state)
			}
			return s.step(state, op)
		},
		DescribeOperation: func(input, _ any) string {
			op := input.(Op) //nolint:forcetypeassert // as above
			text := op.thing
			switch {
			case op.before != nil:
				return text + "what was before"
			case op.open:
				return fmt.Sprintf("%sprocess %d: %s, later", text, op.Process, s.says(op))
			}
			return fmt.Sprintf("%sprocess %d %s", text, op.Process, s.says(op))
		},
		DescribeState: s.is,
		DescribeOperationMetadata: func(note any) string {
			text, _ := note.(string)
			return text
		},
	}
	return x.ToModel()
}

func operations(ops []Op) []porcupine.Operation {
	all := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		all[i] = porcupine.Operation{ClientId: op.Process, Input: op, Call: int64(op.From), Return: int64(op.To), Metadata: op.Note}
	}
	return all
}

// Check searches an order. If there is none, it says at which call the longest one
// stops.
func (h *History) Check() (Verdict, Stop) { return h.check(limit) }

// A Stop is where an order cannot go on.
type Stop struct {
	At  time.Duration // when the call ended that does not fit
	Why string
}

func (h *History) check(steps int) (Verdict, Stop) {
	s := h.search(steps)
	ops := h.steps()
	result := porcupine.CheckOperationsTimeout(s.porcupine(), operations(ops), 0)
	switch {
	case s.left.Load() < 0:
		return Unknown, Stop{}
	case result == porcupine.Ok:
		return Right, Stop{}
	}
	return Wrong, h.stops(ops, h.order(ops))
}

// order returns the order of all steps, or the longest one that there is.
func (h *History) order(ops []Op) []int {
	_, info := porcupine.CheckOperationsVerbose(h.search(limit).porcupine(), operations(ops), 0)
	return best(info)
}

// best returns the longest order that was found: indexes of calls.
func best(info porcupine.LinearizationInfo) (longest []int) {
	for _, part := range info.PartialLinearizations() {
		for _, order := range part {
			if len(order) > len(longest) || len(order) == len(longest) && slices.Compare(order, longest) < 0 { // the same one in each replay
				longest = order
			}
		}
	}
	return longest
}

// stops says at which call an order stops: the one that ends first of those that
// are missing.
func (h *History) stops(ops []Op, order []int) Stop {
	state := []any{h.model().begin}
	in := map[int]bool{}
	for _, i := range order {
		state = h.after(state, ops[i])
		in[i] = true
	}
	first := -1
	for i, op := range ops {
		if !in[i] && (first < 0 || op.To < ops[first].To) {
			first = i
		}
	}
	op, m := ops[first], h.model() // there is one, or the order would be that of all
	return Stop{op.To, fmt.Sprintf("%d of %d steps can be put in order; then it is %s, and process %d %s, between %.6f and %.6f",
		len(order), len(ops), texts(state, m.is), op.Process, m.says(op), op.From.Seconds(), op.To.Seconds())}
}

// after returns the states that may follow on these.
func (h *History) after(states []any, op Op) (all []any) {
	m := h.model()
	for _, s := range states {
		for _, next := range m.step(s, op) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

func texts(states []any, is func(any) string) string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = is(s)
	}
	slices.Sort(all)
	return strings.Join(all, ", or ")
}

// steps returns the steps of all calls, in the order in which they begin.
func (h *History) steps() (all []Op) {
	all = slices.Clone(h.Ops)
	if h.Model == "barrier" {
		all = meetings(h.Ops)
	}
	slices.SortStableFunc(all, func(a, b Op) int { return cmp.Compare(a.From, b.From) })
	return all
}
