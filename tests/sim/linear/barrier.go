package linear

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// What may become of a caller at a barrier. Untold ends when it is certain that
// the caller is not there any more.
const (
	Met      = "meets the others" // and N were missing when it came
	Broken   = "is told that the barrier is broken"
	WasReset = "is told that the barrier was reset"
	Untold   = "is told nothing"
)

// Reset breaks a generation, if anybody is there. It is done at once; one that is
// lost, until it ends, or never.
const Reset = "resets it"

// The steps of these.
const (
	comes         = "comes" // and will meet the others
	comesToo      = "comes, and will not meet the others"
	comesForReset = "comes, and will be told of a reset"
	mayCome       = "may come"
	cannotCome    = "cannot come any more"
)

// meetings returns the steps of callers. Each gets the place of one who has gone,
// of which a set has 64.
func meetings(calls []Op) (steps []Op) {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b Op) int { return cmp.Compare(a.From, b.From) })
	var places [64]int // where it is taken, of the call: -1 is none
	for i := range places {
		places[i] = -1
	}
	var lost []int // calls, by when they end
	for i, op := range calls {
		if op.What == Untold {
			lost = append(lost, i)
		}
	}
	slices.SortStableFunc(lost, func(a, b int) int { return cmp.Compare(calls[a].To, calls[b].To) })
	for i, op := range calls {
		if op.What == Reset {
			steps = append(steps, op)
			continue
		}
		if op.What == Untold {
			op.Who = slices.Index(lost, i)
			first, last := op, op
			first.What, first.To = mayCome, op.From
			last.What, last.From = cannotCome, op.To
			steps = append(steps, first, last)
			continue
		}
		at := slices.IndexFunc(places[:], func(of int) bool { return of < 0 || calls[of].To < op.From })
		if at < 0 {
			panic("more than 64 callers at a barrier")
		}
		places[at], op.Who = i, at
		first := op
		switch op.What {
		case Broken:
			first.What = comesToo
		case WasReset:
			first.What = comesForReset
		default:
			first.What = comes
		}
		steps = append(steps, first, op)
	}
	return steps
}

// A meeting is who is at a barrier, and who has to be told yet. Those of a set are
// bits, by their places.
type meeting struct {
	came  int    // to the generation that gathers
	lost  int    // of these will be told nothing
	meets uint64 // of these will meet the others
	ends  uint64 // of these will be told that it is broken
	clear uint64 // of these will be told that it was reset
	met   uint64 // have met the others, and are to be told
	ended uint64 // of a broken generation, and are to be told
	reset uint64 // of a generation that was reset, and are to be told
	late  string // who may come yet, and will be told nothing: the first one to leave first
	mute  bool   // one of those who will be told that it is broken was not heard for too long
}

// over is when the generation is over, and nobody has reset it. The next one
// begins empty.
func (m meeting) over() meeting {
	return meeting{met: m.met | m.meets, ended: m.ended | m.ends, reset: m.reset, late: m.late}
}

// fails says whether the generation may break without a reset, for all that those
// in it will be told.
func (m meeting) fails() bool { return m.meets == 0 && m.clear == 0 }

// breaks is when the generation has broken without a reset, if it has a cause: one
// is there who was not heard, or will be told nothing.
func (m meeting) breaks() (all []meeting) {
	cause := m.lost > 0 || m.mute
	if !cause {
		m, cause = m.fill(1)
	}
	if cause && m.fails() {
		all = append(all, m.over())
	}
	return all
}

// resets is how somebody who resets the barrier may leave it.
func (m meeting) resets() (all []meeting) {
	all = m.breaks() // it was broken before
	if m.meets == 0 && m.ends == 0 {
		m.reset |= m.clear
		all = append(all, m.over())
	}
	return all
}

// fill has n come who are told nothing.
func (m meeting) fill(n int) (meeting, bool) {
	if n < 0 || len(m.late) < 2*n {
		return m, false
	}
	m.came, m.lost, m.late = m.came+n, m.lost+n, m.late[2*n:]
	return m, true
}

// full is when all have come, the last ones without being told anything.
func (m meeting) full(parties int) (meeting, bool) {
	m, ok := m.fill(parties - m.came)
	return m.over(), ok && m.ends == 0 && m.clear == 0
}

// found returns how whoever comes may find the barrier, for all that those do who
// are told nothing.
func (m meeting) found(parties int) (all []meeting) {
	all = append(all, m)
	if next, ok := m.full(parties); ok && m.came > 0 {
		all = append(all, next)
	}
	if m.lost > 0 || m.mute { // one of them leaves
		all = append(all, m.breaks()...)
	}
	return all
}

// code is two bytes for one who may come. They are in the order of the numbers.
func code(who int) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(who))) //nolint:gosec // there are not so many
}

// find returns where one who may come is, or would be.
func (m meeting) find(who int) (at int, ok bool) {
	for at < len(m.late) && m.late[at:at+2] < code(who) {
		at += 2
	}
	return at, strings.HasPrefix(m.late[at:], code(who))
}

// comes returns how somebody who comes may leave it. What it will be told fits
// what the others of its generation will be.
func (m meeting) comes(op Op, parties int) (all []meeting) {
	who := uint64(1) << op.Who
	for _, m := range m.found(parties) {
		var fits bool
		switch op.What {
		case comes:
			m, fits = m.fill(parties - 1 - op.N - m.came)
			fits = fits && m.ends == 0 && m.clear == 0
			m.meets |= who
		case comesToo:
			fits = m.came+1 < parties && m.fails()
			m.ends |= who
			m.mute = m.mute || op.Mute
		case comesForReset:
			fits = m.came+1 < parties && m.meets == 0 && m.ends == 0
			m.clear |= who
		}
		if m.came++; m.came == parties {
			m = m.over()
		}
		if fits {
			all = append(all, m)
		}
	}
	return all
}

func (m meeting) step(op Op, parties int) (all []meeting) {
	who := uint64(1) << op.Who
	switch op.What {
	case comes, comesToo, comesForReset:
		return m.comes(op, parties)
	case Reset:
		if op.Lost {
			all = append(all, m)
		}
		for _, m := range m.found(parties) {
			all = append(all, m.resets()...)
		}
	case Met:
		if m.meets&who != 0 {
			var ok bool
			if m, ok = m.full(parties); !ok {
				return nil
			}
		}
		if m.met&who != 0 {
			m.met &^= who
			all = append(all, m)
		}
	case Broken:
		if m.ends&who != 0 {
			all = m.breaks()
		} else if m.ended&who != 0 {
			all = append(all, m)
		}
		for i := range all {
			all[i].ended &^= who
		}
	case WasReset:
		if m.reset&who != 0 {
			m.reset &^= who
			all = append(all, m)
		}
	case mayCome:
		at, _ := m.find(op.Who)
		m.late = m.late[:at] + code(op.Who) + m.late[at:]
		all = append(all, m)
	case cannotCome:
		if at, ok := m.find(op.Who); ok {
			m.late = m.late[:at] + m.late[at+2:]
		}
		all = append(all, m)
	default:
		panic("no step " + op.What)
	}
	return all
}

// barrier is a model of where parties meet. Either all of a generation are told
// that they have met, or all that it is broken. A generation breaks because
// somebody leaves who was told nothing, or was not heard for too long. It is reset
// only when somebody does that.
func barrier(parties int) model {
	return model{
		begin: meeting{},
		step: func(state any, op Op) (all []any) {
			for _, next := range state.(meeting).step(op, parties) { //nolint:forcetypeassert // it is of this model
				all = append(all, next)
			}
			return all
		},
		says: func(op Op) string {
			switch {
			case op.What == comes:
				return fmt.Sprintf("comes when %d are missing", op.N)
			case op.Lost:
				return op.What + ", and is told nothing"
			}
			return op.What
		},
		is: func(state any) string {
			m := state.(meeting) //nolint:forcetypeassert // it is of this model
			return fmt.Sprintf(
				"%d of %d are there (%d are told nothing, %d that it is broken, %d that it was reset), %d have met and %d have not, %d may come",
				m.came, parties, m.lost, bits.OnesCount64(m.ends), bits.OnesCount64(m.clear),
				bits.OnesCount64(m.met), bits.OnesCount64(m.ended|m.reset), len(m.late)/2,
			)
		},
	}
}
