package linear

import (
	"fmt"
	"time"
)

// window is more than a limiter of a model gives in an interval.
const window = 8

// given are the latest permits of a limiter: when each was given, at the earliest,
// the latest one first.
type given [window]time.Duration

// limiter is a model of permits of which there are some in each interval. Each is
// given as early as the order and the interval allow: what comes later has the
// most room then. Look finds how many could be had.
func limiter(permits int, interval time.Duration) model {
	var begin given
	for i := range begin {
		begin[i] = -interval
	}
	return model{
		begin: begin,
		step: func(state any, op Op) []any {
			was := state.(given) //nolint:forcetypeassert // it is of this model
			if op.N > permits {
				return nil
			}
			at := max(op.From, was[0], was[permits-op.N]+interval)
			next := was
			if op.What == Acquire {
				copy(next[op.N:], was[:])
				for i := range op.N {
					next[i] = at
				}
			}
			return one(at <= op.To, next)
		},
		says: func(op Op) string { return fmt.Sprintf("%s %d", op.What, op.N) },
		is: func(state any) string {
			all := state.(given) //nolint:forcetypeassert // it is of this model
			return fmt.Sprintf("its last %d were given at %v at the earliest", permits, all[:permits])
		},
	}
}
