package linear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// What owners do: they acquire with a weight N, and end what they have acquired
// so.
const (
	Acquire = "acquires"
	End     = "ends"
)

// A taken is who has how much: a text, so that two can be compared.
type taken struct {
	owners string
	token  int64
}

// An owned is what an owner has: a number of holds, for each weight.
type owned struct{ who, weight, times int }

func (t taken) all() (all []owned) {
	for text := range strings.FieldsSeq(t.owners) {
		var o owned
		if _, err := fmt.Sscanf(text, "%d:%d*%d", &o.who, &o.weight, &o.times); err != nil {
			panic(err)
		}
		all = append(all, o)
	}
	return all
}

func ownersText(all []owned) string {
	texts := make([]string, 0, len(all))
	for _, o := range all {
		texts = append(texts, fmt.Sprintf("%d:%d*%d", o.who, o.weight, o.times))
	}
	return strings.Join(texts, " ")
}

// weigh returns what these weigh together: those of one owner as much as the
// heaviest of them.
func weigh(all []owned) (sum int) {
	for i, o := range all { // sorted by owner and weight
		if i+1 == len(all) || all[i+1].who != o.who {
			sum += o.weight
		}
	}
	return sum
}

// holds is a model of what is held.
func holds(capacity int) model {
	find := func(all []owned, op Op) (int, bool) {
		return slices.BinarySearchFunc(all, op, func(o owned, op Op) int {
			return cmp.Or(cmp.Compare(o.who, op.Who), cmp.Compare(o.weight, op.N))
		})
	}
	return model{
		begin: taken{},
		step: func(state any, op Op) []any {
			t := state.(taken) //nolint:forcetypeassert // it is of this model
			all := t.all()
			at, has := find(all, op)
			if op.What == End {
				if !has {
					return nil
				}
				if all[at].times--; all[at].times == 0 {
					all = slices.Delete(all, at, at+1)
				}
				return []any{taken{ownersText(all), t.token}}
			}
			if has {
				all[at].times++
			} else {
				all = slices.Insert(all, at, owned{op.Who, op.N, 1})
			}
			return one(weigh(all) <= capacity && (op.Token == 0 || op.Token > t.token), taken{ownersText(all), max(t.token, op.Token)})
		},
		says: func(op Op) string {
			text := fmt.Sprintf("%s %d of %d as hold %d", op.What, op.N, capacity, op.Who)
			if op.Token > 0 {
				text += fmt.Sprintf(" with the token %d", op.Token)
			}
			return text
		},
		is: func(state any) string {
			t := state.(taken) //nolint:forcetypeassert // it is of this model
			if t.owners == "" {
				return "free"
			}
			return "taken by " + t.owners
		},
	}
}
