package linear

import (
	"fmt"
	"time"
)

// window is how many permits a limiter remembers: more than it gives in an
// interval.
const window = 8

// A given is what a limiter has given, each permit as early as it can have been.
type given struct {
	now  time.Duration         // at the earliest
	when [window]time.Duration // of the latest permits, the last one first
}

// limiter is a model of permits of which there are some in each interval. All
// happens as early as the order and the interval allow: what comes later has the
// most room then. Look finds how many could be had.
func limiter(permits int, interval time.Duration) model {
	var begin given
	for i := range begin.when {
		begin.when[i] = -interval
	}
	return model{
		begin: begin,
		step: func(state any, op Op) []any {
			was := state.(given) //nolint:forcetypeassert // it is of this model
			if op.N > permits {
				return nil
			}
			next := was
			next.now = max(op.From, was.now, was.when[permits-op.N]+interval)
			if op.What == Acquire {
				copy(next.when[op.N:], was.when[:])
				for i := range op.N {
					next.when[i] = next.now
				}
			}
			return one(next.now <= op.To, next)
		},
		says: func(op Op) string { return fmt.Sprintf("%s %d", op.What, op.N) },
		is: func(state any) string {
			all := state.(given) //nolint:forcetypeassert // it is of this model
			return fmt.Sprintf("%v at the earliest, and its last %d were given at %v", all.now, permits, all.when[:permits])
		},
	}
}
