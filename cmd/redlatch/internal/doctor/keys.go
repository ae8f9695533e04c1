package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

const (
	step     = 1000 // keys that one SCAN looks at
	pipeline = 500  // commands that are sent together

	manyTokens  = 10_000
	manyLatches = 1000
)

// keys looks for what others have left behind.
func keys(v *visit) []Finding {
	if v.opt.Keys <= 0 {
		return nil
	}
	l, c := &leftovers{v: v}, &contents{v: v}
	whole, why := v.scan(l.side, "MATCH", "red[il]*")
	if why == nil {
		var all bool
		all, why = v.scan(func(names []string) {
			l.hashes(names)
			c.hashes(names)
		}, "TYPE", "hash")
		whole = whole && all
	}
	if why == nil {
		var all bool
		all, why = v.scan(c.sets, "TYPE", "zset")
		whole = whole && all
	}
	if why != nil {
		return found("keys", Note, fmt.Sprintf("SCAN is refused (%s)", why.Code), "doctor cannot look for what is left behind, and redlatch ls does not work",
			"give the user that runs doctor +scan")
	}
	c.tokens(distinct(l.token))
	all := slices.Concat(l.queues(), l.latches(), l.tokens(), l.ttls(), c.findings(distinct(l.queued)))
	if v.blind > 0 {
		all = slices.DeleteFunc(all, func(f Finding) bool { return f.Severity == OK }) // as far as was seen
		all = append(all, found("keys", Note, fmt.Sprintf("the user may not look at some keys (%d requests were refused)", v.blind),
			"there may be more left behind than is shown here", "run doctor as a user that may read all keys")...)
	}
	if !whole {
		total, _ := v.ask("DBSIZE")
		all = append(all, found("keys", Note, fmt.Sprintf("not all of the %d keys were looked at, but about %d", num(total), v.opt.Keys),
			"there may be more than is shown here", "--keys N looks at more, and takes longer")...)
	}
	return all
}

// scan gives each a part of the keys at a time, until as many have been looked
// at as the options allow. It says whether these were all.
func (v *visit) scan(each func([]string), filter ...string) (all bool, why *ReplyError) {
	cursor := "0"
	for looked := 0; looked < v.opt.Keys; looked += step {
		reply, why := v.ask(append([]string{"SCAN", cursor, "COUNT", fmt.Sprint(step)}, filter...)...)
		if why != nil {
			return false, why
		}
		parts := list(reply)
		if len(parts) != 2 {
			return false, &ReplyError{"ERR", "SCAN answers something else"}
		}
		var names []string
		for _, name := range list(parts[1]) {
			names = append(names, str(name))
		}
		each(names)
		if cursor = str(parts[0]); cursor == "0" {
			return true, nil
		}
	}
	return false, nil
}

// each sends a command for each name, and gives f the answers that are no
// errors. (A key of another type is none of ours.)
func (v *visit) each(names []string, command func(name string) []string, f func(name string, answer any)) {
	for part := range slices.Chunk(names, pipeline) {
		requests := make([][]string, 0, len(part))
		for _, name := range part {
			requests = append(requests, command(name))
		}
		for i, a := range v.askAll(requests) {
			switch {
			case a.Err == nil:
				f(part[i], a.Value)
			case denied(a.Err.Error()) != another:
				v.blind++
			}
		}
	}
}

// eternal returns the names of keys without a TTL.
func (v *visit) eternal(names []string) (without []string) {
	v.each(names, func(name string) []string { return []string{"PTTL", name} }, func(name string, ttl any) {
		if ttl == int64(-1) {
			without = append(without, name)
		}
	})
	return without
}

// leftovers are the keys of interest.
type leftovers struct {
	v       *visit
	queued  []string // fair locks that have a queue
	latched []string // unlock latches
	token   []string // keys of fencing tokens
	ours    []string // keys of redlatch that should have a TTL
	held    []string // locks without a TTL
}

const unlockLatch = "redisson_unlock_latch:"

// side sorts keys by their names.
func (l *leftovers) side(names []string) {
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, wire.LockQueue+":"):
			if names := wire.PrefixedNames(wire.LockQueue, name); len(names) > 0 {
				l.queued = append(l.queued, names[0]) // what has another name has the same keys
			}
		case strings.HasPrefix(name, unlockLatch):
			l.latched = append(l.latched, name)
		case strings.HasPrefix(name, wire.LockToken+":"):
			l.token = append(l.token, name)
		case strings.HasPrefix(name, "redlatch_") && !strings.HasPrefix(name, wire.Fence+":"):
			l.ours = append(l.ours, name)
		}
	}
}

// hashes keeps the locks that nothing will end.
func (l *leftovers) hashes(names []string) {
	names = slices.DeleteFunc(slices.Clone(names), wire.NamesOwners)
	l.v.each(l.v.eternal(names), func(name string) []string { return []string{"HRANDFIELD", name, "2"} }, func(name string, fields any) {
		for _, field := range list(fields) {
			if id, _ := wire.ClientOf(str(field)); id != "" {
				l.held = append(l.held, name)
				return
			}
		}
	})
}

// tokens counts the keys of fencing tokens.
func (l *leftovers) tokens() []Finding {
	const check = "tokens"
	all := distinct(l.token)
	if len(all) == 0 {
		return nil
	}
	without := l.v.eternal(all)
	what := fmt.Sprintf("keys of fencing tokens: %d, of which %d have no TTL", len(all), len(without))
	if len(without) >= manyTokens {
		return found(check, Warning, what, "a fenced lock leaves its key behind; if programs use new names all the time, these keys fill the memory",
			"set Config.TokenTTL, unless Redisson uses the same names; delete redisson_lock_token:* of names that nobody uses again")
	}
	return fine(check, what)
}

// latches looks at what Redisson remembers of its releases.
func (l *leftovers) latches() []Finding {
	const check = "latches"
	all := distinct(l.latched)
	if without := l.v.eternal(all); len(without) > 0 {
		return found(check, Warning, "unlock latches of Redisson that have no TTL: "+some(without),
			"they stay for ever", "delete redisson_unlock_latch:* keys without a TTL; they are of no use after a few seconds")
	}
	if len(all) >= manyLatches {
		return found(check, Note, fmt.Sprintf("unlock latches of Redisson: %d", len(all)),
			"each should be deleted with its release; these wait for their TTL, 20 s by default", "see whether the user of the Redisson clients may DEL")
	}
	if len(all) > 0 {
		return fine(check, fmt.Sprintf("unlock latches of Redisson: %d, all with a TTL", len(all)))
	}
	return nil
}

// ttls tells of keys that should have a TTL.
func (l *leftovers) ttls() []Finding {
	const check = "ttl"
	var all []Finding
	if held := distinct(l.held); len(held) > 0 {
		all = found(check, Warning, "locks that are held and have no TTL: "+some(held),
			"if their holders have died, nobody ever gets these locks", "redlatch show NAME, and redlatch release --force NAME")
	}
	if ours := l.v.eternal(distinct(l.ours)); len(ours) > 0 {
		all = append(all, found(check, Warning, "keys of redlatch that have no TTL: "+some(ours),
			"they stay for ever; somebody has used PERSIST, or restored them without a TTL", "delete them when nobody uses the object")...)
	}
	return all
}

// How a queue stands.
type stuck uint8

const (
	moving   stuck = iota
	waits          // the lock is free, and the first may be about to take it
	dead           // the lock is free, and the first will be swept out by who comes next
	timeless       // the first has no score
)

// A line is a queue that was looked at.
type line struct {
	name, first string
	stands      stuck
}

// queues looks for those that stand before a free lock.
func (l *leftovers) queues() []Finding {
	const check = "queues"
	names := distinct(l.queued)
	if len(names) == 0 {
		return nil
	}
	lines := l.v.lines(names)
	doubtful := slices.ContainsFunc(lines, func(q line) bool { return q.stands == waits })
	if doubtful && l.v.linger() {
		again := map[string]line{}
		for _, q := range l.v.lines(names) {
			again[q.name] = q
		}
		for i, q := range lines {
			if q.stands == waits && again[q.name] != q {
				lines[i].stands = moving
			}
		}
	}
	by := map[stuck][]string{}
	for _, q := range lines {
		by[q.stands] = append(by[q.stands], q.name)
	}
	const sweep = "redlatch release --force NAME, which drops the waiters that have died"
	const remedy = "if nobody waits for it, delete redisson_lock_queue:{NAME} and redisson_lock_timeout:{NAME}"
	var all []Finding
	if names := by[timeless]; len(names) > 0 {
		all = append(all, found(check, Warning, "free fair locks whose first waiter has no time-out: "+some(names),
			"no Redisson client gets the lock again; redlatch drops such a waiter with its next acquire", sweep)...)
	}
	if names := by[waits]; len(names) > 0 {
		all = append(all, found(check, Warning, "free fair locks that their first waiter does not take: "+some(names),
			"it has died, or hears no message; all others wait until its time is over, five minutes or more", "wait; or "+remedy)...)
	}
	if names := by[dead]; len(names) > 0 {
		all = append(all, found(check, Note, "free fair locks whose first waiter has died: "+some(names),
			"the next caller of the lock drops that waiter; if there is none, the keys stay for ever", sweep)...)
	}
	if len(all) == 0 {
		all = fine(check, fmt.Sprintf("%d looked at, none stands before a free lock", len(names)))
	}
	return all
}

// linger gives those who are about to take a lock time to do so.
func (v *visit) linger() bool {
	timer := time.NewTimer(v.opt.Linger)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-v.ctx.Done():
		v.fail(v.ctx.Err())
		return false
	}
}

// some names a few of many.
func some(names []string) string {
	const few = 3
	names = slices.Clone(names)
	for i, name := range names[:min(few, len(names))] {
		if len(name) > 200 {
			names[i] = name[:200] + "..."
		}
	}
	if more := len(names) - few; more > 0 {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// silence is for how long a client of redlatch that queues is believed to live.
const silence = 6000 // ms

// lines looks at the queues of fair locks.
func (v *visit) lines(names []string) (lines []line) {
	now := int64(0)
	if reply, _ := v.ask("TIME"); len(list(reply)) == 2 {
		now = num(list(reply)[0])*1000 + num(list(reply)[1])/1000
	}
	var free []string
	v.each(names, func(name string) []string { return []string{"EXISTS", name} }, func(name string, exists any) {
		if exists == int64(0) {
			free = append(free, name)
		}
	})
	first := map[string]string{}
	v.each(free, func(name string) []string { return []string{"LINDEX", wire.Prefix(wire.LockQueue, name), "0"} },
		func(name string, owner any) { first[name] = str(owner) })
	free = slices.DeleteFunc(free, func(name string) bool { return first[name] == "" })

	until := map[string]any{}
	v.each(free, func(name string) []string {
		return []string{"ZSCORE", wire.Prefix(wire.LockTimeout, name), first[name]}
	},
		func(name string, score any) { until[name] = score })
	seen := map[string]any{}
	v.each(free, func(name string) []string {
		client, _ := wire.ClientOf(first[name])
		return []string{"ZSCORE", wire.Prefix(wire.LockAlive, name), client}
	}, func(name string, score any) { seen[name] = score })

	for _, name := range free {
		q := line{name, first[name], waits}
		_, ours := wire.ClientOf(q.first)
		switch {
		case until[name] == nil:
			q.stands = timeless
		case ours && num(seen[name]) < now-silence, !ours && num(until[name]) < now:
			q.stands = dead
		}
		lines = append(lines, q)
	}
	return lines
}
