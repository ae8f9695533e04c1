package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What an owner has of a read-write lock: it writes, it reads, it reads for a
// second time (Redisson's alone), and it has asked for the writing to end.
const (
	writes uint8 = 1 << iota
	reads
	readsTwice
	ends
)

// A readWrite is a read-write lock.
type readWrite struct {
	plain
	strays  bool     // a slot moves: a key that keeps somebody alive may be where his release cannot reach it
	writers []string // the key of those to whom readers give precedence
}

func newReadWrite(fenced bool) readWrite {
	p := plainLock
	p.prefix = "readwrite.write."
	if fenced {
		p.fenced, p.tokenTTL = []string{"lock", "token"}, []string{"0"}
	}
	return readWrite{plain: p}
}

// proof returns the key that keeps one's read hold alive.
func proof(id string, n int) string { return fmt.Sprintf("{lock}:%s:rwlock_timeout:%d", id, n) }

// has says what somebody has of the lock that is stored.
func (w readWrite) has(s *store, who int) bool {
	return s.field("lock", ids[who])+s.field("lock", ids[who]+":write") != ""
}

// takes is the ask to become an owner: to write, or to read.
func (w readWrite) takes(who int, what uint8, times int8) ask {
	a := w.take(who, times)
	a.name += map[uint8]string{writes: " to write", reads: " to read"}[what]
	a.may = func(s *state) bool {
		m := s.minds[who]
		return m.phase <= refused && (m.what == 0 || m.what == what)
	}
	a.sending = func(s *state) { s.minds[who].phase, s.minds[who].what = asking, what }
	a.truth = func(before, after *store, reply any) bool {
		field := ids[who] + map[uint8]string{writes: ":write"}[what]
		if asks, ok := reply.(string); ok { // it reads, and is to ask once more
			return what == reads && asks == proof(ids[who], 1) && after.field("lock", field) != ""
		}
		return reply != nil && granted(reply) == (after.field("lock", field) != "") && countsNothing(before.field("lock", field) != "", before, after)
	}
	if what == reads {
		a.creates = true
		a.script, a.keys, a.args = "readwrite.read.take", append([]string{"lock"}, w.writers...), []string{usualMs, ids[who]}
	}
	return a
}

// reenters is the ask to read inside of what it has.
func (w readWrite) reenters(who int, lease int16) ask {
	return ask{
		name: fmt.Sprintf("%s enters to read for %d ticks", names[who], lease), times: 1, runs: 2, holder: true,
		creates: true, script: "readwrite.read.reenter", keys: []string{"lock"}, args: []string{ids[who], fmt.Sprint(int(lease) * tick)},
		may:  func(s *state) bool { return s.minds[who].trusts(s.now) },
		open: func(s *state) bool { return s.minds[who].trusts(s.now) },
		hears: func(s *state, sent int16, r *result) string {
			m := &s.minds[who]
			if r.reply == proof(ids[who], 1) {
				return ""
			}
			if r.reply != int64(1) {
				return names[who] + " is told that what it has is gone"
			}
			m.what |= reads
			m.until = max(m.until, sent+lease)
			return ""
		},
		truth: func(before, after *store, reply any) bool {
			if asks, ok := reply.(string); ok {
				return asks == proof(ids[who], 1) && after == before && before.field("lock", ids[who]) != ""
			}
			return reply != nil && (reply == int64(1)) == w.has(before, who) && (reply == int64(1)) == (after.field("lock", ids[who]) != "")
		},
	}
}

// downgrades is the ask to read only, from now on.
func (w readWrite) downgrades(who int) ask {
	return ask{
		name: names[who] + " only reads from now on", times: 2, runs: 2, holder: true,
		script: "readwrite.downgrade", keys: []string{"lock", proof(ids[who], 1)}, args: []string{ids[who], w.channel},
		may: func(s *state) bool {
			m := s.minds[who]
			return m.trusts(s.now) && (m.what == writes|reads || m.what&ends > 0)
		},
		sending: func(s *state) { s.minds[who].what = reads | ends },
		open:    func(s *state) bool { return s.minds[who].what&ends > 0 },
		hears: func(s *state, _ int16, r *result) string {
			m := &s.minds[who]
			if m.what &^= ends; m.trusts(s.now) && r.reply != int64(1) {
				return names[who] + " is told that what it has is gone"
			}
			return ""
		},
		truth: func(before, after *store, reply any) bool {
			yes := reply == int64(1)
			return reply != nil && yes == w.has(before, who) && yes == (after.field("lock", ids[who]) != "") && (!yes || after.field("lock", "mode") == "read")
		},
	}
}

// stated is a take to read with the key that keeps the owner alive.
func (w readWrite) stated(who int) ask {
	a := w.takes(who, reads, 1)
	a.name += ", and states its key"
	a.keys = append(slices.Clone(a.keys), proof(ids[who], 1))
	return a
}

// renews is the ask of who only writes to keep it; count is that of the write
// holds that is shown.
func (w readWrite) renews(who int, lease int16, count string) ask {
	return w.renewing(who, lease, count, false)
}

// proves is the ask of who reads to keep it.
func (w readWrite) proves(who int, lease int16, count string) ask {
	return w.renewing(who, lease, count, true)
}

func (w readWrite) renewing(who int, lease int16, count string, proves bool) ask {
	a := w.renew(who, lease, count)
	a.script = "readwrite.renew"
	if proves {
		a.name += ", and states its key"
		a.keys = []string{"lock", proof(ids[who], 1)}
	}
	a.may = func(s *state) bool {
		return s.minds[who].trusts(s.now) && proves == (s.minds[who].what&reads > 0)
	}
	late := func(reply any) bool { // it has come when the owner only reads
		list, _ := reply.([]any)
		return len(list) == 1 && fmt.Sprint(list[0]) == "TRYAGAIN the owner only reads by now"
	}
	hears := a.hears
	a.hears = func(s *state, sent int16, r *result) string {
		if late(r.reply) {
			return ""
		}
		return hears(s, sent, r)
	}
	a.truth = func(before, after *store, reply any) bool {
		if late(reply) {
			return !proves && after == before && before.field("lock", ids[who]) != "" && before.field("lock", ids[who]+":write") == ""
		}
		shown := before.field("lock", ids[who]+":write")
		if shown != "" && count != "0" {
			shown = count
		}
		return renewed(reply) == w.has(before, who) && after.field("lock", ids[who]+":write") == shown && after.field("lock", ids[who]) == before.field("lock", ids[who])
	}
	return a
}

// releases is the ask to give up all that it has.
func (w readWrite) releases(who int, times int8) ask {
	a := w.release(who, times)
	a.script = "readwrite.release"
	a.truth = func(before, after *store, reply any) bool {
		n, had := reply.(int64)
		if w.has(after, who) || after.get(proof(ids[who], 1)) != nil && w.has(before, who) && after.get(move) == nil {
			return false
		}
		if list, ok := reply.([]any); ok {
			return w.has(before, who) && w.unseen(after, list) && after.ttl("lock") == before.ttl("lock")
		}
		if !w.has(before, who) {
			return had && n == 0
		}
		return n > 0 && after.get("lock") == nil || n == -1 && w.lastsAsLong(after)
	}
	return a
}

// unseen says whether these are keys that keep others alive who read, if they are
// anywhere.
func (w readWrite) unseen(s *store, list []any) bool {
	for _, k := range list {
		_, rest, _ := strings.Cut(fmt.Sprint(k), "{lock}:")
		id, _, _ := strings.Cut(rest, ":rwlock_timeout:")
		if s.field("lock", id) == "" || s.get(fmt.Sprint(k)) != nil && s.get(move) == nil {
			return false
		}
	}
	return len(list) > 0
}

// settles is the ask whether those live who read, as far as is known.
func (w readWrite) settles(times int8, who ...int) ask {
	a := ask{
		name: "somebody asks whether the readers live", times: times, runs: 2, script: "readwrite.release",
		keys: []string{"lock"}, args: []string{"", w.channel, own}, may: func(*state) bool { return true },
	}
	for _, i := range who {
		a.keys = append(a.keys, proof(ids[i], 1))
	}
	a.truth = func(before, after *store, reply any) bool {
		n, _ := reply.(int64)
		if list, ok := reply.([]any); ok {
			return w.unseen(after, list) && !slices.ContainsFunc(list, func(k any) bool { return slices.Contains(a.keys, fmt.Sprint(k)) })
		}
		return (n > 0 && after.get("lock") == nil) == (before.get("lock") != nil && after.get("lock") == nil) && (n != -1 || after.field("lock", "mode") == "read")
	}
	return a
}

// lastsAsLong says whether the lock lasts as long as the longest read hold.
func (w readWrite) lastsAsLong(s *store) bool {
	var longest int64
	for _, id := range ids {
		if s.field("lock", id) != "" {
			longest = max(longest, s.ttl(proof(id, 1)), s.ttl(proof(id, 2)))
		}
	}
	return longest > 0 && s.ttl("lock") == longest
}

// forces is the ask of somebody else that it ends.
func (w readWrite) forces(who int, what uint8) ask {
	a := w.releases(who, 1)
	a.name, a.script, a.holder = "somebody forces "+names[who]+" to release", map[uint8]string{writes: "readwrite.write.force", reads: "readwrite.read.force"}[what], false
	a.args = []string{w.channel, "nobody", ids[who]}
	a.may = func(s *state) bool { return s.minds[who].what&what > 0 }
	field := ids[who]
	if what == writes {
		field += ":write"
	}
	a.truth = func(before, after *store, reply any) bool {
		had := before.field("lock", field) != "" && (what == writes || before.field("lock", "mode") == "read")
		if list, ok := reply.([]any); ok {
			return had && !w.has(after, who) && w.unseen(after, list)
		}
		if after.get(move) != nil {
			return (reply == int64(1)) == had && !(had && w.has(after, who))
		}
		return reply != nil && (reply == int64(1)) == had && (!had || !w.has(after, who) && after.get(proof(ids[who], 1)) == nil && (after.get("lock") == nil || w.lastsAsLong(after)))
	}
	return a
}

// moves is the ask to pass what it writes from a1 to a2.
func (w readWrite) moves(name string, args ...string) ask {
	a := w.move(name, args...)
	may := a.may
	a.may = func(s *state) bool { return may(s) && (s.minds[a1].what&writes > 0 || s.minds[a2].phase == asking) }
	a.sending = func(s *state) {
		s.minds[a1], s.minds[a2] = mind{phase: over}, mind{phase: asking, what: writes}
	}
	a.truth = func(before, after *store, reply any) bool {
		list, moved := reply.([]any)
		n, _ := reply.(int64)
		left := list == nil && n >= 0
		if name == "transfer" {
			moved, left = n > 0, false
		}
		had := before.field("lock", ids[a1]+":write")+before.field("lock", ids[a2]+":write") != ""
		if before.field("lock", ids[a1]+":write") != "" && (w.has(after, a1) || after.get(proof(ids[a1], 1)) != nil && after.get(move) == nil) {
			return false
		}
		return moved == (after.field("lock", ids[a2]+":write") != "") && (moved || had == left) && (list == nil || len(list) == 1) && reply != nil
	}
	return a
}

// wishes is the ask to have it before those who read, or not any more.
func (w readWrite) wishes(who int, ms int) ask {
	return ask{
		name: fmt.Sprintf("%s waits to write for %d ms", names[who], ms), times: 1, runs: 2,
		script: "readwrite.write.intent", keys: []string{"lock", "writers"}, args: []string{ids[who], fmt.Sprint(ms), w.channel},
		may: func(s *state) bool { return (s.minds[who].phase == idle) == (ms > 0) },
		sending: func(s *state) {
			if s.minds[who].phase = over; ms > 0 {
				s.minds[who].phase = asking
			}
		},
	}
}

// waiting counts those who are said to wait to write.
func (w readWrite) waiting(s *store, now int16) (n int) {
	k := s.get("writers")
	for i := 0; k != nil && i < len(k.content); i += 2 {
		if k.content[i+1] > fmt.Sprint(epoch+int(now)*tick) {
			n++
		}
	}
	return n
}

// Redisson's.
func (w readWrite) redisson(name, script string, times int8, may func(m mind) bool, sending func(m *mind), granted func(m *mind, now, until int16), args ...string) ask {
	key := "{lock}"
	if script == "redisson.read" {
		key = "{lock}:" + ids[j1] + ":rwlock_timeout"
	}
	return ask{
		name: "Redisson " + name, times: times, runs: 1, foreign: true, script: script, keys: []string{"lock", key}, args: args,
		may:     func(s *state) bool { return may(s.minds[j1]) },
		sending: func(s *state) { sending(&s.minds[j1]) },
		open:    func(s *state) bool { return granted != nil && s.minds[j1].phase != over },
		hears: func(s *state, sent int16, r *result) string {
			if r.reply == nil || script == "redisson.reads on" && r.reply == int64(1) {
				granted(&s.minds[j1], s.now, sent+usual)
			} else if s.minds[j1].phase == asking {
				s.minds[j1].phase = refused
			}
			return ""
		},
	}
}

func (w readWrite) redissonReads(times int8) ask {
	return w.redisson("takes to read", "redisson.read", times, func(m mind) bool { return m.phase <= has && m.phase != asking },
		func(m *mind) {
			if m.phase != has {
				m.phase = asking
			}
		},
		func(m *mind, _, until int16) {
			if m.what&reads > 0 {
				m.what |= readsTwice
			} else {
				m.what |= reads
				m.token = int32(until) // until when the first of its read holds lasts
			}
			m.phase, m.until = has, max(m.until, until)
		}, usualMs, ids[j1])
}

func (w readWrite) redissonWrites() ask {
	return w.redisson("takes to write", "redisson.write", 1, func(m mind) bool { return m.phase == idle },
		func(m *mind) { m.phase = asking },
		func(m *mind, _, until int16) { m.phase, m.what, m.until = has, m.what|writes, until }, usualMs, ids[j1])
}

func (w readWrite) redissonUnreads() ask {
	return w.redisson("unlocks to read", "redisson.unread", 2, func(m mind) bool { return m.what&reads > 0 },
		func(m *mind) {
			switch {
			case m.what&readsTwice > 0:
				m.what &^= readsTwice
				m.until = int16(m.token)
			case m.what&writes > 0:
				m.what = writes
			default:
				*m = mind{phase: over}
			}
		}, nil, ids[j1], w.channel)
}

func (w readWrite) redissonUnwrites() ask {
	return w.redisson("unlocks to write", "redisson.unwrite", 1, func(m mind) bool { return m.what&writes > 0 },
		func(m *mind) {
			if m.what &^= writes; m.what == 0 {
				*m = mind{phase: over}
			}
		}, nil, ids[j1], w.channel, usualMs)
}

func (w readWrite) redissonReadsOn() ask {
	return w.redisson("renews to read", "redisson.reads on", 1, func(m mind) bool { return m.phase == has && m.what&reads > 0 },
		func(*mind) {},
		func(m *mind, now, until int16) {
			if m.until = max(m.until, until); int16(m.token) > now {
				m.token = int32(until)
			}
		}, ids[j1], usualMs)
}

// wrong says what must not be.
func (w readWrite) wrong(s *state) string {
	for i, m := range s.minds {
		if !m.trusts(s.now) {
			continue
		}
		if s.store.twice("lock") || s.store.twice(proof(ids[i], 1)) {
			return "both nodes have what " + names[i] + " has"
		}
		for j, other := range s.minds[:i] {
			if other.trusts(s.now) && (m.what|other.what)&writes > 0 {
				return fmt.Sprintf("%s and %s trust at one time, and not only to read", names[j], names[i])
			}
		}
		left := int64(m.until-s.now) * tick
		switch {
		case s.store.ttl("lock") < left:
			return fmt.Sprintf("%s trusts until tick %d, and the lock ends in %d ms", names[i], m.until, s.store.ttl("lock"))
		case m.what&writes > 0 && (s.store.field("lock", ids[i]+":write") == "" || s.store.field("lock", "mode") != "write"):
			return names[i] + " trusts that it writes, and does not"
		case m.what&reads > 0 && s.store.field("lock", ids[i]) == "":
			return names[i] + " trusts that it reads, and does not"
		case m.what&reads > 0 && s.store.field("lock", ids[i]+":write") == "" && max(s.store.ttl(proof(ids[i], 1)), s.store.ttl(proof(ids[i], 2))) < left:
			return fmt.Sprintf("%s trusts that it reads until tick %d, and what proves it ends before", names[i], m.until)
		}
	}
	return ""
}

// calm has everybody release, and somebody else come then.
func (w readWrite) calm(x *explorer, at *store, now int16) string {
	at = x.settled(at)
	for who, id := range ids {
		if who != j1 {
			at = w.releaseAll(x, at, now, id)
		}
	}
	for at.field("lock", ids[j1]) != "" {
		at = x.do("redisson.unread", at, now, []string{"lock", "{lock}"}, ids[j1], w.channel).after
	}
	for at.field("lock", ids[j1]+":write") != "" {
		at = x.do("redisson.unwrite", at, now, []string{"lock"}, ids[j1], w.channel, usualMs).after
	}
	r := x.run(x.callOf(&x.waits[0], now), at, now, 0, healthy)
	if !granted(r.reply) {
		return fmt.Sprintf("all have released it, and who takes it is answered %v; stored: %s", r.reply, at)
	}
	at = w.releaseAll(x, r.after, now, stranger)
	for _, k := range at.keys {
		if w.strays && strings.Contains(k.name, ":rwlock_timeout:") {
			continue // who released could not reach it
		}
		if k.name != "token" && k.name != "writers" {
			return "all have released it, and something is left: " + at.String()
		}
	}
	return ""
}

// releaseAll releases what somebody has, and asks about others until that is
// known.
func (w readWrite) releaseAll(x *explorer, at *store, now int16, id string) *store {
	r := x.do("readwrite.release", at, now, []string{"lock"}, id, w.channel, own)
	for range 5 { // a script that never knows is wrong
		list, ok := r.reply.([]any)
		if !ok {
			break
		}
		keys := []string{"lock"}
		for _, k := range list {
			keys = append(keys, fmt.Sprint(k))
		}
		r = x.do("readwrite.release", r.after, now, keys, "", w.channel, own)
	}
	return r.after
}

// refusals looks at what takes that are refused are told.
func (w readWrite) refusals(x *explorer, s scene, a *ask, sent int16, r *result) string {
	switch {
	case strings.HasSuffix(a.script, "yield") && s.store.field("lock", ids[a1]+":write") != "":
		return x.yields(s, r, "lock")
	case a.script == "readwrite.release":
		return x.tells(s, r.reply)
	case a.script == "readwrite.write.intent":
		n, there := w.waiting(r.after, s.now), r.after.field("writers", a.args[0]) != ""
		if r.reply != int64(n) || there != (a.args[1] != "0") {
			return fmt.Sprintf("%d wait to write; that it is among them is %v", n, there)
		}
	}
	if a.script == "readwrite.read.take" && granted(r.reply) && w.writers != nil && s.store.field("lock", a.args[1]) == "" && w.waiting(s.store, s.now) > 0 {
		return "somebody waits to write, and was to have it first"
	}
	told, ok := r.reply.([]any)
	if !ok || !strings.HasSuffix(a.script, "take") {
		return ""
	}
	ttl, holder, asker := told[0].(int64), told[1].(string), a.args[1]
	var whose []string
	for who, id := range ids {
		if w.has(s.store, who) && id[:36] == asker[:36] {
			whose = append(whose, id)
		}
	}
	switch owner := r.after.field("lock", holder)+r.after.field("lock", holder+":write") != ""; {
	case !owner && r.after.field("writers", holder) == "", owner && whose != nil && !slices.Contains(whose, holder):
		return fmt.Sprintf("it names %s as the owner", holder)
	}
	return x.lies(s, a, sent, r.after, ttl, w.writers == nil)
}

func (w readWrite) search(name string, sends int8, asks ...ask) *search {
	writer, reader := w.takes(b1, writes, 1), w.takes(b1, reads, 1)
	writer.name, reader.name = "somebody, to write,", "somebody, to read,"
	writer.args, reader.args = slices.Concat([]string{usualMs, stranger}, w.tokenTTL), []string{usualMs, stranger}
	reader.keys = append([]string{"lock"}, w.writers...)
	q := w.plain.search("read-write: "+name, sends, asks...)
	q.waits = []ask{writer, reader}
	q.wrong, q.calm, q.inspect = w.wrong, w.calm, w.refusals
	return q
}

// moving is a search in which the slot moves, one key after the other.
func (w readWrite) moving(name string, sends int8, proofs []int, asks ...ask) *search {
	w.strays = true
	carried := []string{move, "lock"}
	for _, who := range proofs {
		carried = append(carried, proof(ids[who], 1))
	}
	for i := range asks {
		asks[i].holder = false // what an owner has left that is over is no matter
		asks[i].batch = false  // in a batch all is refused, and sent one by one
	}
	for _, key := range carried {
		asks = append(asks, carries(key))
	}
	q := w.search("a slot moves: "+name, sends, asks...)
	stays := q.stays
	q.stays = func(name string) bool { return name == move || stays(name) }
	q.inspect = nil
	return q
}

// once is an ask that is executed once.
func once(a ask) ask {
	a.runs = 1
	return a
}

// beside is the search of one who reads beside another's write hold, as nobody
// should: the writer keeps the lock, and whoever stays last is right about what he
// has.
func (w readWrite) beside() *search {
	reader, writer := w.releases(a1, 1), w.releases(b1, 1)
	q := w.search("beside a writer", 2, reader, writer)
	q.waits, q.calm = nil, func(*explorer, *store, int16) string { return "" }
	q.seed = []key{
		{name: "lock", kind: "hash", content: []string{ids[a1], "1", ids[b1] + ":write", "1", "mode", "write"}, ttl: usual * tick},
		{name: proof(ids[a1], 1), kind: "string", content: []string{"1"}, ttl: usual * tick},
	}
	for i := range q.asks {
		q.asks[i].may, q.asks[i].truth, q.asks[i].holder = func(*state) bool { return true }, nil, false
	}
	q.inspect = func(_ *explorer, s scene, a *ask, _ int16, r *result) string {
		other, mode := ids[b1]+":write", "write"
		if a.args[0] == ids[b1] {
			other, mode = ids[a1], "read"
		}
		if s.store.field("lock", other) != "" && (r.after.field("lock", other) == "" || r.after.field("lock", "mode") != mode) {
			return "it takes the lock from who has it still"
		}
		return ""
	}
	return q
}

func readWriteSearches() []*search {
	w, f, p := newReadWrite(false), newReadWrite(true), newReadWrite(false)
	p.writers = []string{"writers"}
	tooMany := func(mode, field string, what uint8) *search {
		fields := []string{field, "1", "mode", mode, "somebody", "10001"}
		return refuses("more holds than a lock has", key{name: "lock", kind: "hash", content: fields}, w.releases(a1, 1), w.forces(a1, what))
	}
	return []*search{
		tooMany("read", ids[a1], reads), tooMany("write", ids[a1]+":write", writes),
		refuses("more holds than a lock has", key{name: "lock", kind: "hash", content: many}, w.releases(a1, 1)),
		w.beside(),
		w.moving("readers", 4, []int{a1, b1}, once(w.takes(a1, reads, 1)), once(w.takes(b1, reads, 1)), w.releases(b1, 1), once(w.settles(1, a1)), once(w.takes(b2, writes, 1))),
		w.moving("renewals", 3, []int{a1}, w.takes(a1, reads, 1), w.proves(a1, longer, "0"), w.takes(b2, writes, 1)),
		w.moving("replays", 3, []int{a1}, w.takes(a1, reads, 1), w.stated(a1), w.takes(b1, writes, 1)),
		w.moving("writers", 4, []int{a1}, w.takes(a1, writes, 1), w.reenters(a1, usual), w.renews(a1, longer, "2"), w.proves(a1, longer, "2"), w.downgrades(a1), w.releases(a1, 1), w.takes(b1, reads, 1)),
		w.moving("passing on", 3, []int{a1}, w.takes(a1, writes, 1), w.reenters(a1, usual), w.moves("yield", w.channel, own, "0"), w.moves("transfer"), w.releases(a2, 1), w.takes(b1, writes, 1)),
		w.moving("force", 4, []int{a1, b1}, w.takes(a1, reads, 1), w.takes(b1, reads, 1), w.forces(a1, reads), w.settles(1, b1)),
		w.search("downgrade", 5, w.takes(a1, writes, 1), w.reenters(a1, usual), w.downgrades(a1), w.releases(a1, 1), w.takes(b1, reads, 1)),
		w.search("renewals", 4, w.takes(a1, writes, 1), w.reenters(a1, longer), w.downgrades(a1), w.renews(a1, longer, "2"), w.proves(a1, longer, "2"), w.takes(b1, reads, 1)),
		w.search("counts", 4, w.takes(a1, writes, 1), w.renews(a1, 0, "2"), w.downgrades(a1), w.takes(b1, reads, 1)),
		w.search("readers", 4, w.takes(a1, reads, 1), w.proves(a1, longer, "2"), w.releases(a1, 1), w.takes(b1, reads, 1), w.releases(b1, 1), w.settles(1, a1, b1), w.takes(b2, writes, 1)),
		w.search("passing on", 4, w.takes(a1, writes, 1), w.reenters(a1, usual), w.moves("yield", w.channel, own, "0"), w.renews(a2, longer, "0"), w.releases(a2, 1), w.takes(b1, writes, 1)),
		w.search("yielding", 4, w.takes(a1, writes, 1), w.reenters(a1, usual), w.moves("yield", w.channel, own, "1"), w.releases(a2, 1), w.takes(b1, reads, 1)),
		w.search("transfer", 4, w.takes(a1, writes, 1), w.reenters(a1, usual), w.moves("transfer"), w.renews(a2, longer, "0"), w.releases(a2, 1), w.takes(b1, writes, 1)),
		w.search("Redisson reads", 5, w.redissonReads(2), w.redissonUnreads(), w.redissonReadsOn(), w.takes(a1, reads, 1), w.proves(a1, usual, "0"), w.releases(a1, 1)),
		w.search("Redisson writes", 5, w.redissonWrites(), w.redissonReads(1), w.redissonUnreads(), w.redissonUnwrites(), w.takes(a1, writes, 1), w.takes(b1, reads, 1), w.releases(b1, 1)),
		w.search("force", 4, w.takes(a1, writes, 1), w.reenters(a1, usual), w.forces(a1, writes), w.forces(a1, reads), w.takes(b1, reads, 1), w.downgrades(a1)),
		w.search("force readers", 4, w.takes(a1, reads, 1), w.proves(a1, longer, "0"), w.forces(a1, reads), w.takes(b1, reads, 1)),
		p.search("precedence", 4, p.takes(a1, reads, 1), p.wishes(a2, usual*tick), p.wishes(a2, 0), p.wishes(b2, usual*tick), p.wishes(b2, 0), p.takes(b1, reads, 1)),
		f.search("tokens", 4, f.takes(a1, writes, 2), f.releases(a1, 1), f.takes(b1, writes, 1), f.moves("yield", f.channel, own, "0")),
		f.search("tokens of a transfer", 4, f.takes(a1, writes, 1), f.takes(b1, writes, 1), f.moves("transfer")),
	}
}

func TestSearchReadWrite(t *testing.T) { explore(t, 3_061_068, readWriteSearches()) }
