package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/tests/sim/linear"
)

// checkOrders checks that all that was told of a thing can have happened in one
// order, when it is over.
func (w *world) checkOrders() {
	for _, h := range w.histories() {
		switch verdict, stop := h.Check(); verdict {
		case linear.Wrong:
			w.failLocked(stop.At, "what %s has told cannot be in any order (%s): %s", h.Name, h.Model, stop.Why)
		case linear.Unknown:
			w.failLocked(w.now(), "whether what %s has told can be in any order: %s", h.Name, verdict)
		}
	}
}

// histories are what was called of each thing, or who had it.
func (w *world) histories() []linear.History {
	switch w.Type {
	case "semaphore", "latch":
		return w.calls.histories(w.Type, w.kind.capacity)
	case "barrier":
		return w.calls.histories(w.Type, parties)
	case "limiter":
		return w.calls.histories(w.Type, rate)
	}
	return w.heldHistories()
}

// heldHistories are those of claims. A loss that may have taken a claim away ends
// it, until it has to be its worker's again.
func (h *history) heldHistories() (all []linear.History) {
	type place struct {
		site     int
		resource string
	}
	at := map[place]int{}
	for _, c := range h.claims {
		p := place{c.site, c.resource}
		i, ok := at[p]
		if !ok {
			i, at[p] = len(all), len(all)
			x := linear.History{Model: "holds", Name: c.resource, Capacity: h.capacity}
			if c.site > 0 {
				x.Name += fmt.Sprintf(" at site %d", c.site)
			}
			all = append(all, x)
		}
		for _, s := range h.spans(c) {
			take := linear.Op{What: linear.Acquire, Process: c.process, Who: c.nest, N: c.weight, From: s.from, To: s.from, Note: c.id}
			if s.from == c.from && !c.inner { // that was asked for later than the outer one
				take.From = min(c.call, c.from)
			}
			if len(h.losses) == 0 && !c.inner { // or a loss may have taken the last token as well
				take.Token = c.token
			}
			end := linear.Op{What: linear.End, Process: c.process, Who: c.nest, N: c.weight, From: s.to, To: s.to, Note: c.id + ", " + c.how}
			all[i].Ops = append(all[i].Ops, take, end)
		}
	}
	return all
}

// had says whether a call that has worked has given its caller what it wanted, and
// is not about something that it had.
func (c *call) had() bool {
	return slices.Contains([]string{linear.Acquire, linear.Refuse, linear.GoesOn, linear.Met}, c.what)
}

// meets says whether two calls are of one thing, and were made at one time.
func (c *call) meets(o *call) bool {
	return c.resource == o.resource && c.from <= o.to && o.from <= c.to
}

// histories are those of calls, one of each thing.
func (all *calls) histories(model string, capacity int) (list []linear.History) {
	at := map[string]int{}
	for _, c := range all.all {
		if c.to < 0 {
			c.to, c.err = linear.Forever, context.Canceled
		}
	}
	for _, c := range all.all {
		op := linear.Op{What: c.what, Process: c.process, From: c.from, To: c.to, N: c.n}
		if c.err != nil {
			op.Note = c.err.Error()
		}
		known := true
		switch model {
		case "semaphore":
			op, known = all.ofSemaphore(c, op)
		case "latch":
			op, known = ofLatch(c, op)
		case "barrier":
			op = all.ofBarrier(c, op)
		case "limiter":
			known = c.err == nil // else it can only have left less for the others
		}
		if !known {
			continue
		}
		i, ok := at[c.resource]
		if !ok {
			i, at[c.resource] = len(list), len(list)
			list = append(list, linear.History{Model: model, Name: c.resource, Capacity: capacity, Every: leastInterval})
		}
		list[i].Ops = append(list[i].Ops, op)
	}
	return list
}

// ofSemaphore says what is known of a call, if anything is. A release is sure to
// have been executed when it returns only if nobody in its process waited for
// permits: else they go on without the server. One that fails is executed in the
// end; what adds permits and fails, perhaps never. An acquisition that does not
// wait is refused as well because others do.
func (all *calls) ofSemaphore(c *call, op linear.Op) (linear.Op, bool) {
	waits := func(o *call) bool {
		return o != c && (o.what == linear.Acquire || o.what == linear.Refuse) && o.meets(c)
	}
	var busy *redlatch.BusyError
	switch {
	case c.what == linear.Refuse && c.err == nil: // it was not
		op.What = linear.Acquire
	case c.what == linear.Refuse && errors.As(c.err, &busy) && busy.Cause == nil:
		return op, busy.Owed == 0 && !slices.ContainsFunc(all.all, waits)
	case c.what == linear.Refuse, c.what == linear.Acquire && c.err != nil:
		op.What, op.To, op.Lost = linear.Acquire, c.from, true
	case c.what == linear.Add && c.err != nil:
		op.To, op.Lost = c.from, true
	case c.what == linear.Release:
		here := func(o *call) bool { return o.process == c.process && waits(o) }
		if c.err != nil || slices.ContainsFunc(all.all, here) {
			op.To, op.Lost = c.from, true
		}
	}
	return op, c.err == nil || op.Lost
}

// ofLatch says what is known of a call, if anything is.
func ofLatch(c *call, op linear.Op) (linear.Op, bool) {
	changes := c.what == linear.Set || c.what == linear.Down
	switch {
	case errors.Is(c.err, errSet):
		op.What = linear.IsSet
		return op, true
	case c.err != nil && changes:
		op.To, op.Lost = linear.Forever, true
	}
	return op, c.err == nil || changes
}

// lingers is for how long who has left a barrier without an answer may be counted
// there: its request is late, and then the server pauses; and of a process that
// was killed it waits for the watchdog.
const lingers = latest + longest + 8*time.Second

// ofBarrier says what is known of a call. Who is told how a barrier was broken
// knows that its generation has not gone on, unless the server has forgotten it. A
// reset that was told nothing may come as late as a caller leaves.
func (all *calls) ofBarrier(c *call, op linear.Op) linear.Op {
	var broken *barrier.BrokenError
	switch {
	case c.what == linear.Reset:
		if op.Lost = c.err != nil; op.Lost && op.To != linear.Forever {
			op.To += lingers
		}
	case c.err == nil:
	case errors.As(c.err, &broken) && broken.Reason == barrier.BrokenReset:
		op.What = linear.WasReset
	case errors.As(c.err, &broken) && broken.Reason != barrier.BrokenGone:
		op.What, op.Mute = linear.Broken, all.mute(c)
	default:
		op.What = linear.Untold
		if op.To != linear.Forever {
			op.To += lingers
		}
	}
	return op
}

// mark notes that a fault strikes.
func (w *world) mark(f fault) {
	text := fmt.Sprintf("fault %d: %s, process %d, site %d, side %d", f.number, f.what, w.victim(f).number, w.site(f), f.side)
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	w.history.faults = append(w.history.faults, linear.Mark{Row: "faults", From: w.now(), To: w.now() + f.lasts, Text: text, Colour: linear.Bad})
}

// allMarks are the holds, the faults that have struck, the losses, and what was
// wrong at first.
func (w *world) allMarks() (all []linear.Mark) {
	for _, c := range w.claims {
		if !c.inner {
			text, to := fmt.Sprintf("process %d has %s (%s)", c.process, c.resource, c.how), c.to
			if to < 0 { // it never ends
				to = linear.Forever
			}
			all = append(all, linear.Mark{Row: c.resource, From: c.from, To: to, Text: text, Note: c.id, Colour: linear.Good})
		}
	}
	all = append(all, w.history.faults...)
	for _, l := range w.losses {
		text := "may lose all: " + l.what
		if l.resource != "" {
			text = fmt.Sprintf("may lose %s: %s", l.resource, l.what)
		}
		all = append(all, linear.Mark{Row: "losses", From: l.from, To: l.to, Text: text, Colour: linear.Bad})
	}
	return append(all, linear.Mark{Row: "wrong", From: w.first, To: w.first, Text: w.wrong[0], Colour: linear.Worse})
}
