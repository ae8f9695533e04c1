package linear

import "fmt"

// What is done to a latch, beside Look, which finds how many are missing.
const (
	Set    = "sets"            // it to N
	IsSet  = "finds it is set" // and so cannot set it to N
	Down   = "counts down"
	GoesOn = "goes on"
)

// latch is a model of a count that callers bring to 0. One that was not set is at
// 0. What is lost may happen, or not.
func latch() model {
	return model{
		begin: 0,
		step: func(state any, op Op) []any {
			count := state.(int) //nolint:forcetypeassert // it is of this model
			next := count
			switch op.What {
			case Set:
				if count > 0 && !op.Lost {
					return nil
				}
				if count == 0 {
					next = op.N
				}
			case Down:
				next = max(0, count-1)
			case IsSet:
				return one(count > 0, count)
			case GoesOn:
				return one(count == 0, count)
			case Look:
				return one(count == op.N, count)
			default:
				panic("no step " + op.What)
			}
			if op.Lost && next != count {
				return []any{count, next}
			}
			return []any{next}
		},
		says: func(op Op) string {
			text := op.What
			if op.What == Set || op.What == Look {
				text += fmt.Sprintf(" %d", op.N)
			}
			if op.Lost {
				text += ", and is told nothing"
			}
			return text
		},
		is: func(state any) string { return fmt.Sprintf("at %d", state) },
	}
}
