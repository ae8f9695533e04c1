package linear

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Mark is something that a drawing shows beside the calls, such as a fault.
type Mark struct {
	Row      string
	From, To time.Duration
	Text     string
	Note     string `json:",omitzero"` // for who looks closer
	Colour   string
}

// The colours of marks.
const (
	Good  = "#d4edda"
	Bad   = "#ffe5b4"
	Worse = "#f5a9a9"
)

// What a drawing shows at most: so many steps, of so long before and after the
// moment that it is about.
const (
	mostSteps = 200
	before    = 8 * time.Second
	after     = time.Second
)

// Draw writes a page that shows what was called about a moment, in the order that
// there is, or as far as there is one. All histories are of one model.
func Draw(path string, all []History, at time.Duration, marks []Mark) error {
	long := before
	var parts [][]Op
	for {
		parts = nil
		n := 0
		for _, h := range all {
			if ops := h.cut(at-long, at+after); len(ops) > 0 {
				parts = append(parts, ops)
				n += len(ops)
			}
		}
		if n <= mostSteps || long < 10*time.Millisecond {
			break
		}
		long /= 2
	}
	s := all[0].search(limit)
	m := s.porcupine()
	m.Partition = func([]porcupine.Operation) (all [][]porcupine.Operation) {
		for i, part := range inRows(parts) {
			all = append(all, operations(parts[i]))
			for j, row := range part {
				all[i][j].ClientId = row
			}
		}
		return all
	}
	_, info := porcupine.CheckOperationsVerbose(m, nil, 0)
	info.AddAnnotations(annotations(marks, at-long, at+after))
	s.left.Store(limit) // to write it takes the same steps once more
	return porcupine.VisualizePath(m, info, path)
}

// cut returns the steps of a time. What was before is in a first step. A step that
// ends later may be executed within the time or not.
func (h *History) cut(from, to time.Duration) (ops []Op) {
	all := slices.DeleteFunc(h.steps(), func(op Op) bool { return op.From > to })
	for i := range all {
		all[i].thing = h.Name + ": "
		if all[i].To > to {
			all[i].To, all[i].open = to, true
		}
	}
	states, gone := []any{h.model().begin}, map[int]bool{}
	for _, i := range h.order(all) {
		if all[i].To >= from {
			break
		}
		states = h.after(states, all[i])
		gone[i] = true
	}
	for i, op := range all {
		if !gone[i] {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 || len(gone) == 0 {
		return ops
	}
	begins := ops[0].From // of all the first
	return slices.Insert(ops, 0, Op{From: begins - 2, To: begins - 1, thing: ops[0].thing, before: states})
}

// inRows returns the row of each step, such that none is above another one of its
// row. The rows of a process follow on each other.
func inRows(parts [][]Op) [][]int {
	type place struct{ part, nth int }
	by := map[int][]place{} // process
	for i, part := range parts {
		for j, op := range part {
			by[op.Process] = append(by[op.Process], place{i, j})
		}
	}
	rows := make([][]int, len(parts))
	for i, part := range parts {
		rows[i] = make([]int, len(part))
	}
	first := 0
	var processes []int
	for p := range by {
		processes = append(processes, p)
	}
	slices.Sort(processes)
	for _, p := range processes {
		places := by[p]
		slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(parts[a.part][a.nth].From, parts[b.part][b.nth].From) })
		var ends []time.Duration // of the last one in each row
		for _, at := range places {
			op := parts[at.part][at.nth]
			row := slices.IndexFunc(ends, func(end time.Duration) bool { return end < op.From })
			if row < 0 {
				row = len(ends)
				ends = append(ends, 0)
			}
			ends[row] = op.To
			rows[at.part][at.nth] = first + row
		}
		first += len(ends)
	}
	return rows
}

// annotations returns the marks of a time, as porcupine has them. Those that last
// at one time are in several rows.
func annotations(marks []Mark, from, to time.Duration) (all []porcupine.Annotation) {
	marks = slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return m.From > to || m.To < from })
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.From, b.From) })
	ends := map[string][]time.Duration{}
	for _, m := range marks {
		row := slices.IndexFunc(ends[m.Row], func(end time.Duration) bool { return end <= m.From })
		if row < 0 {
			row = len(ends[m.Row])
			ends[m.Row] = append(ends[m.Row], 0)
		}
		ends[m.Row][row] = m.To
		tag := m.Row
		if row > 0 {
			tag = fmt.Sprintf("%s (%d)", m.Row, row+1)
		}
		all = append(all, porcupine.Annotation{
			Tag: tag, Start: int64(max(m.From, from)), End: int64(min(m.To, to)), Description: m.Text, Details: m.Note,
			BackgroundColor: m.Colour, TextColor: "#222",
		})
	}
	return all
}
