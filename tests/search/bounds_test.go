package search

import (
	"fmt"
	"slices"
	"strconv"
)

// What the scripts bound: the fields of a lock, the dead waiters that one request
// drops, and those of a queue that it looks at together.
const (
	mostFields = 10_000
	mostDead   = 1_000
	mostWaits  = 10_000
)

// many are more fields than any lock has.
var many = func() (fields []string) {
	for i := range mostFields {
		fields = append(fields, fmt.Sprintf("%05d", i), "x")
	}
	return append(fields, "mode", "read")
}()

// refuses is the search of what the scripts do not go through: it is refused, and
// nothing is changed.
func refuses(text string, stored key, asks ...ask) *search {
	for i := range asks {
		asks[i].times, asks[i].may = 1, func(*state) bool { return true }
		asks[i].hears = func(*state, int16, *result) string { return "" }
	}
	return &search{
		name: text, refusal: text, sends: 1, asks: asks, minds: names[:], seed: []key{stored},
		wrong: func(*state) string { return "" },
		calm:  func(*explorer, *store, int16) string { return "" },
		stays: func(string) bool { return true },
	}
}

// dead is the search of a queue in which more have died than one request drops:
// the caller is told to go on, until it has its turn.
func dead(f fair) *search {
	q := refuses("", key{name: "queue", kind: "list"}, f.lineUp(b1, 1, "1"), f.lineUp(b1, 1, "1"))
	q.name, q.sends, q.commands = "fair: many dead", 2, 10*mostDead
	q.listens = func(string) bool { return true }
	for i := range mostDead + 1 {
		q.seed[0].content = append(q.seed[0].content, fmt.Sprintf("a remnant %d", i))
	}
	q.inspect = func(_ *explorer, s scene, _ *ask, _ int16, r *result) string {
		left, dropped := queue(r.after), len(queue(s.store))-len(queue(r.after))
		switch {
		case granted(r.reply) && len(queue(s.store)) <= mostDead:
			return ""
		case dropped != mostDead-1 || left[len(left)-1] != ids[b1]:
			return fmt.Sprintf("%d have died, and %d are dropped", mostDead+1, dropped)
		case !slices.Contains(r.told, message{f.channel + ":" + ids[b1], "0"}):
			return "it is not told to go on"
		}
		return ""
	}
	return q
}

// long is the search of a queue of more than the scripts look at together: who
// stands behind these leaves, too.
func long(f fair) *search {
	q := refuses("", key{name: "queue", kind: "list"}, f.leaves(a1, 1))
	q.name, q.commands = "fair: a long queue", 50
	scores := key{name: "timeouts", kind: "zset"}
	for i := range mostWaits + 1 {
		id := owner('c', 10+i)
		if i == mostWaits {
			id = ids[a1]
		}
		q.seed[0].content = append(q.seed[0].content, id)
		scores.content = append(scores.content, id, strconv.Itoa(epoch+(i+1)*allowance))
	}
	q.seed = append(q.seed, key{name: "lock", kind: "hash", content: []string{ids[b1], "1"}, ttl: 1000}, scores)
	q.longest = 1000
	q.inspect = func(_ *explorer, _ scene, _ *ask, _ int16, r *result) string {
		if n := len(queue(r.after)); n != mostWaits || r.after.field("timeouts", ids[a1]) != "" {
			return fmt.Sprintf("of %d in the queue %d are left", mostWaits+1, n)
		}
		return ""
	}
	return q
}

// mixed is the search of a lock of another type that has the name of a fair one:
// what a request of a fair lock left in it goes with that lock, and not alone,
// unless it is forced.
func mixed(f fair) *search {
	q := refuses("", key{name: "lock", kind: "hash", content: []string{ids[a1], "1", "mode", "read"}, ttl: 1000}, f.leaves(a1, 1), f.forces(a1))
	q.asks[0].truth = nil // nobody was told that a1 has it
	q.name, q.longest = "fair: a lock of another type", 1000
	q.seed = append(q.seed,
		key{name: "queue", kind: "list", content: []string{ids[b1]}},
		key{name: "timeouts", kind: "zset", content: []string{ids[b1], score(1, 0.5)}},
		key{name: "alive", kind: "zset", ttl: 1000, content: []string{ids[b1][:36], score(0, 0), nonce(ids[b1]), nonces[b1]}})
	q.inspect = func(_ *explorer, _ scene, a *ask, _ int16, r *result) string {
		if r.after.field("lock", ids[a1]) == "" && a.script != "fairlock.force" || r.after.field("lock", "mode") == "" {
			return "a part of it is gone"
		}
		if r.after.field("lock", ids[b1]) != "" {
			return "somebody has a lock that is none"
		}
		return ""
	}
	return q
}
