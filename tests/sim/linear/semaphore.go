package linear

import "fmt"

// What is done to a semaphore, beside Acquire of N permits. Acquire that is lost
// has failed: its request may take permits nevertheless, which come back. Add that
// is lost may never be executed; a lost Release is, but perhaps later.
const (
	Release = "gives back"
	Add     = "adds"
	Refuse  = "is refused" // N permits, of a semaphore that nobody else waits for
	Look    = "finds free"
	Drain   = "drains"
	Settle  = "knows that nothing is on its way"
)

// A stock is what a semaphore has.
type stock struct {
	free  int  // at most
	late  int  // of these may be on their way, and will come
	never int  // of these may never come
	gone  int  // were there once, and are not any more
	set   bool // it is set up: without that it says that it has none
}

// least returns how many are free at least.
func (s stock) least() int {
	if !s.set {
		return min(s.free, 0)
	}
	return s.free - s.late - s.never
}

// semaphore is a model of permits that are only counted. It cannot tell for what
// somebody was told nothing how much of it has happened. So it has the most that
// may be free, and how much of that may be missing. Permits that are taken away
// while somebody has them are owed, but whoever releases some may pass them on:
// while a release may be on its way, as many may be had as there were.
func semaphore(permits int) model {
	return model{
		begin: stock{free: permits},
		step: func(state any, op Op) []any {
			s := state.(stock) //nolint:forcetypeassert // it is of this model
			most := s.free
			switch op.What {
			case Acquire:
				if op.Lost {
					s.late += op.N
					return []any{s}
				}
				s.free, s.set = s.free-op.N, true
				return one(s.free >= 0 || s.late > 0 && s.free >= -s.gone, s)
			case Release, Add:
				switch {
				case op.Lost && op.What == Release:
					s.late += op.N
				case op.Lost:
					s.never += max(op.N, -op.N)
				case op.What == Add:
					s.gone = max(s.gone-op.N, 0)
				}
				if !op.Lost || op.N > 0 {
					s.free += op.N
				}
				return []any{s}
			case Refuse:
				return one(s.least() < op.N, s)
			case Look:
				return one(s.least() <= op.N && op.N <= most, s)
			case Drain:
				fits := max(s.least(), 0) <= op.N && op.N <= max(most, 0)
				if s.free -= op.N; s.free < 0 { // less than none becomes none
					s.free = s.late + s.never
				}
				return one(fits, s)
			case Settle:
				s.late = 0
				return []any{s}
			}
			panic("no step " + op.What)
		},
		says: func(op Op) string {
			switch {
			case op.What == Settle:
				return op.What
			case op.Lost:
				return fmt.Sprintf("%s %d, and is told nothing", op.What, op.N)
			}
			return fmt.Sprintf("%s %d", op.What, op.N)
		},
		is: func(state any) string {
			s := state.(stock) //nolint:forcetypeassert // it is of this model
			if least := s.least(); least != s.free {
				return fmt.Sprintf("%d to %d are free", least, s.free)
			}
			return fmt.Sprintf("%d are free", s.free)
		},
	}
}
