package search

import (
	"fmt"
	"slices"
	"testing"
)

// The leases of these searches, in ticks: the usual one, and that of an extension.
const (
	usual   = 2
	longer  = 3
	usualMs = "2000"
	longMs  = "3000"
)

// owner returns the id that one of the minds has in Redis. The client is the first
// 36 characters; a redlatch's has an 8 at the 15th.
func owner(client byte, n int) string {
	return fmt.Sprintf("%c0000000-0000-%c000-a000-000000000000:%d", client, map[bool]byte{true: '8', false: '4'}[client != 'c'], n)
}

// granted says whether an answer to a take is that it was granted.
func granted(reply any) bool {
	if list, ok := reply.([]any); ok && len(list) == 2 { // of permits
		reply = list[0]
		_, ok = list[1].(string)
		if ok {
			return false // a refusal: a TTL and an owner
		}
	}
	n, _ := reply.(int64)
	return n > 0
}

// The minds of the plain lock's searches.
const (
	a1 = iota
	a2 // of the same process as a1
	b1
	j1 // Redisson's
	b2
)

const nobody = a2 // what stays has an id that nobody else has

// A plain is a lock that one owner has at a time.
type plain struct {
	lock, channel string
	prefix        string // of its scripts' names
	keys          []string
	fenced        []string // the keys of an acquisition with a token
	tokenTTL      []string // and what comes last among its arguments
}

var plainLock = plain{lock: "lock", channel: "channel", prefix: "lock.", keys: []string{"lock"}, fenced: []string{"lock"}}

func withTokens(ttl string) plain {
	p := plainLock
	p.fenced, p.tokenTTL = []string{"lock", "token"}, []string{ttl}
	return p
}

var ids = [...]string{a1: owner('a', 1), a2: owner('a', 2), b1: owner('b', 1), j1: owner('c', 1), b2: owner('b', 2)}

// take is the ask to become the owner.
func (p plain) take(who int, times int8) ask {
	return ask{
		name: names[who] + " takes", times: times, runs: 2, script: p.prefix + "take", keys: p.fenced,
		args:    slices.Concat([]string{usualMs, ids[who]}, p.tokenTTL),
		may:     func(s *state) bool { return s.minds[who].phase <= refused },
		sending: func(s *state) { s.minds[who].phase = asking },
		open:    func(s *state) bool { return s.minds[who].phase <= refused },
		hears: func(s *state, sent int16, r *result) string {
			m := &s.minds[who]
			if !granted(r.reply) {
				if m.phase == asking {
					m.phase = refused
				}
				return ""
			}
			return p.hasIt(s, who, sent+usual, r.reply)
		},
		truth: func(before, after *store, reply any) bool {
			had := before.field(p.lock, ids[who]) != ""
			return reply != nil && granted(reply) == (after.field(p.lock, ids[who]) != "") && countsNothing(had, before, after)
		},
	}
}

var names = [...]string{a1: "a1", a2: "a2", b1: "b1", j1: "Redisson", b2: "b2"}

// countsNothing says that whoever had it already has the token that it has.
func countsNothing(had bool, before, after *store) bool {
	was, is := before.get("token"), after.get("token")
	return !had || was == nil || is != nil && slices.Equal(is.content, was.content)
}

// hasIt notes that somebody was told that he has it.
func (p plain) hasIt(s *state, who int, until int16, token any) string {
	m := &s.minds[who]
	if n, _ := token.(int64); p.tokenTTL != nil {
		if int32(n) <= s.top {
			return fmt.Sprintf("the token is %d, and somebody had %d before", n, s.top)
		}
		s.top = int32(n)
	}
	m.phase, m.until = has, until
	return ""
}

// renew is the ask to keep it.
func (p plain) renew(who int, lease int16, count string) ask {
	return ask{
		name: fmt.Sprintf("%s renews for %d ticks, count %s", names[who], lease, count), times: 1, runs: 2, holder: true, batch: true,
		script: p.prefix + "renew", keys: p.keys[:1], args: []string{ids[who], fmt.Sprint(int(lease) * tick), count}, another: []string{"nobody", usualMs, "0"},
		may:  func(s *state) bool { return s.minds[who].trusts(s.now) },
		open: func(s *state) bool { return s.minds[who].trusts(s.now) },
		hears: func(s *state, sent int16, r *result) string {
			m := &s.minds[who]
			if !renewed(r.reply) {
				return fmt.Sprintf("%s is told that what it has is gone", names[who])
			}
			m.until = max(m.until, sent+lease)
			return ""
		},
		truth: func(_, after *store, reply any) bool {
			shown := after.field(p.lock, ids[who])
			return renewed(reply) == (shown != "") && (shown == "" || count == "0" || shown == count)
		},
	}
}

func renewed(reply any) bool {
	list, _ := reply.([]any)
	return len(list) == 1 && list[0] == int64(1)
}

// release is the ask to give it up.
func (p plain) release(who int, times int8) ask {
	return ask{
		name: names[who] + " releases", times: times, runs: 2, holder: true,
		script: p.prefix + "release", keys: p.keys, args: []string{ids[who], p.channel, own},
		may:     func(s *state) bool { return s.minds[who].phase != idle },
		sending: func(s *state) { s.minds[who] = mind{phase: over} },
		truth: func(before, after *store, reply any) bool {
			return freed(reply) == (before.field(p.lock, ids[who]) != "") && after.field(p.lock, ids[who]) == "" && reply != nil
		},
	}
}

// freed says whether a release's answer is that there was something to release.
func freed(reply any) bool {
	n, _ := reply.(int64)
	return n != 0
}

// tells says what is wrong with how many others listen, by an answer of 1 and as
// many.
func (x *explorer) tells(s scene, reply any) string {
	if n, _ := reply.(int64); n > 0 && n != 1+int64(s.others) {
		return fmt.Sprintf("%d others listen", s.others)
	}
	return ""
}

// keep is the ask to give it up, and to let it stay for so long.
func (p plain) keep(who int, rest int16, times int8) ask {
	k := p.release(who, times)
	k.name, k.script = fmt.Sprintf("%s lets it stay for %d ticks", names[who], rest), p.prefix+"keep"
	k.args = []string{ids[who], ids[nobody], p.channel, fmt.Sprint(int(rest) * tick)}
	k.truth = func(before, after *store, reply any) bool {
		had, stayed := before.field(p.lock, ids[who]) != "", before.field(p.lock, ids[nobody]) != ""
		return freed(reply) == (had || stayed) && freed(reply) == (after.field(p.lock, ids[nobody]) != "") && after.field(p.lock, ids[who]) == "" && reply != nil && (!had || after.ttl(p.lock) == int64(rest)*tick)
	}
	return k
}

// staying searches for a lock that is not free when it is to be.
func (p plain) staying(name string, asks ...ask) *search {
	q := p.search(name, 4, asks...)
	q.inspect = func(x *explorer, s scene, a *ask, sent int16, r *result) string {
		if s.store.field(p.lock, ids[nobody]) != "" && r.after.ttl(p.lock) > s.store.ttl(p.lock) {
			return "it is nobody's, and lasts for longer"
		}
		return p.refusals(x, s, a, sent, r)
	}
	return q
}

// force is the ask of somebody else that it ends. Its client is asked before.
func (p plain) force(who int) ask {
	f := p.release(who, 1)
	f.name, f.script, f.args, f.holder = "b forces "+names[who]+" to release", p.prefix+"force", []string{p.channel, "nobody", ids[who], "nobody else"}, false
	f.may = func(s *state) bool { return s.minds[who].phase != idle }
	return f
}

// turn and transfer are the asks to pass it from a1 to a2.
func (p plain) move(name string, args ...string) ask {
	return ask{
		name: "a1 passes it to a2 by a " + name, times: 2, runs: 2, holder: true, script: p.prefix + name, keys: p.fenced,
		args: slices.Concat([]string{ids[a1], ids[a2], usualMs}, args, p.tokenTTL),
		may: func(s *state) bool {
			return s.minds[a1].trusts(s.now) && s.minds[a2].phase == idle || s.minds[a2].phase == asking
		},
		sending: func(s *state) { s.minds[a1], s.minds[a2].phase = mind{phase: over}, asking },
		open:    func(s *state) bool { return s.minds[a2].phase == asking },
		hears: func(s *state, sent int16, r *result) string {
			token := r.reply
			if list, ok := token.([]any); ok {
				token = list[0]
			} else if name == "yield" {
				token = nil
			}
			if n, _ := token.(int64); n > 0 {
				return p.hasIt(s, a2, sent+usual, token)
			}
			s.minds[a2] = mind{phase: over}
			return ""
		},
		truth: func(before, after *store, reply any) bool {
			list, moved := reply.([]any)
			n, _ := reply.(int64)
			left := list == nil && n >= 0
			if name == "transfer" {
				moved, left = n > 0, false
			}
			had := before.field(p.lock, ids[a1])+before.field(p.lock, ids[a2]) != ""
			again := before.field(p.lock, ids[a2]) != ""
			return moved == (after.field(p.lock, ids[a2]) != "") && (moved || had == left) && (list == nil || len(list) == 1) && reply != nil && countsNothing(again, before, after)
		},
	}
}

// Redisson's.
func (p plain) redissonTakes() ask {
	return ask{
		name: "Redisson takes", times: 1, runs: 1, foreign: true, script: "redisson.take", keys: p.keys[:1], args: []string{usualMs, ids[j1]},
		may:     func(s *state) bool { return s.minds[j1].phase != has },
		sending: func(s *state) { s.minds[j1].phase = asking },
		open:    func(s *state) bool { return s.minds[j1].phase == asking },
		hears: func(s *state, sent int16, r *result) string {
			if s.minds[j1].phase = refused; r.reply == nil {
				s.minds[j1].phase, s.minds[j1].until = has, sent+usual
			}
			return ""
		},
	}
}

func (p plain) redissonUnlocks() ask {
	return ask{
		name: "Redisson unlocks", times: 1, runs: 1, foreign: true, script: "redisson.unlock", keys: p.keys[:1], args: []string{ids[j1], p.channel, usualMs},
		may:     func(s *state) bool { return s.minds[j1].phase >= has },
		sending: func(s *state) { s.minds[j1] = mind{phase: over} },
	}
}

func (p plain) redissonRenews() ask {
	return ask{
		name: "Redisson renews", times: 1, runs: 1, foreign: true, script: "redisson.renew", keys: p.keys[:1], args: []string{ids[j1], usualMs},
		may:  func(s *state) bool { return s.minds[j1].trusts(s.now) },
		open: func(s *state) bool { return s.minds[j1].trusts(s.now) },
		hears: func(s *state, sent int16, r *result) string {
			if m := &s.minds[j1]; r.reply == int64(1) {
				m.until = max(m.until, sent+usual)
			}
			return ""
		},
	}
}

// wrong says what must not be.
func (p plain) wrong(s *state) string {
	who, wrong := s.sole()
	if who < 0 || wrong != "" {
		return wrong
	}
	if s.store.field(p.lock, ids[who]) == "" {
		return fmt.Sprintf("%s trusts, and is not the owner", names[who])
	}
	until := s.minds[who].until
	if left := s.store.ttl(p.lock); left < int64(until-s.now)*tick {
		return fmt.Sprintf("%s trusts until tick %d, and the lock ends in %d ms", names[who], until, left)
	}
	return ""
}

// calm has everybody release, and somebody else come then.
func (p plain) calm(x *explorer, at *store, now int16) string {
	for _, id := range ids[:j1] {
		at = x.do(p.prefix+"release", at, now, p.keys, id, p.channel, own).after
	}
	for at.field(p.lock, ids[j1]) != "" {
		at = x.do("redisson.unlock", at, now, p.keys[:1], ids[j1], p.channel, usualMs).after
	}
	newcomer := &x.waits[0]
	r := x.run(x.callOf(newcomer, now), at, now, 0, healthy)
	if !granted(r.reply) {
		return fmt.Sprintf("all have released it, and who takes it is answered %v; stored: %s", r.reply, at)
	}
	at = x.do(p.prefix+"release", r.after, now, p.keys, stranger, p.channel, own).after
	for _, k := range at.keys {
		if k.name != "token" {
			return "all have released it, and something is left: " + at.String()
		}
	}
	return ""
}

// stranger is who comes when all is over.
var stranger = owner('d', 9)

// refusals looks at what takes that are refused are told.
func (p plain) refusals(x *explorer, s scene, a *ask, sent int16, r *result) string {
	switch {
	case a.script == p.prefix+"yield" && s.store.field(p.lock, ids[a1]) != "":
		return x.yields(s, r, p.lock)
	case a.script == p.prefix+"release":
		return x.tells(s, r.reply)
	}
	told, ok := r.reply.([]any)
	if !ok || a.script != p.prefix+"take" {
		return ""
	}
	ttl, holder := told[0].(int64), told[1].(string)
	if r.after.field(p.lock, holder) == "" || holder == a.args[1] {
		return fmt.Sprintf("it names %s as the owner", holder)
	}
	return x.lies(s, a, sent, r.after, ttl, true)
}

// yields says what is wrong with a turn that was, or was not, left to those who
// wait.
func (x *explorer) yields(s scene, r *result, lock string) string {
	n, left := r.reply.(int64)
	switch {
	case s.others > 0 && r.after.get(lock) != nil:
		return "others wait, and it is not their turn"
	case left && n != int64(s.others):
		return fmt.Sprintf("it is the turn of %d others", s.others)
	}
	return ""
}

// waiting counts those of other processes than a's who wait.
func waiting(s *state) (n int8) {
	for _, who := range []int{b1, j1} {
		if s.minds[who].phase == refused {
			n++
		}
	}
	return n
}

// newcomers are those who wait.
func (p plain) newcomers() []ask {
	t := p.take(b1, 1)
	t.truth, t.name, t.args = nil, "somebody", slices.Concat([]string{usualMs, stranger}, p.tokenTTL)
	return []ask{t}
}

func (p plain) search(name string, sends int8, asks ...ask) *search {
	return &search{
		name: name, unit: tick, ticks: 4, sends: sends, asks: asks, minds: names[:], waits: p.newcomers(), longest: longer * tick,
		listens:   func(channel string) bool { return channel == p.channel },
		listeners: waiting, wrong: p.wrong, calm: p.calm, inspect: p.refusals,
		stays: func(name string) bool { return name == "token" && !slices.Equal(p.tokenTTL, []string{longMs}) },
	}
}

func plainSearches() []*search {
	p, f, e, r, n := plainLock, withTokens("0"), withTokens(longMs), withTokens("-1"), plainLock
	n.channel = ""
	silent := n.search("no channel", 4, n.take(a1, 1), n.take(b1, 1), n.release(a1, 1), n.force(b1), n.move("yield", "", own, "0"))
	silent.listens, silent.listeners = nil, nil
	return []*search{
		silent,
		refuses("more fields than a lock has", key{name: "lock", kind: "hash", content: many}, p.take(a1, 1)),
		p.search("two processes", 4, p.take(a1, 2), p.renew(a1, longer, "0"), p.release(a1, 2), p.take(b1, 2), p.release(b1, 1)),
		p.search("counts", 4, p.take(a1, 1), p.renew(a1, 0, "2"), p.release(a1, 1), p.take(b1, 1)),
		p.search("passing on", 4, p.take(a1, 1), p.move("yield", p.channel, own, "0"), p.renew(a2, longer, "0"), p.release(a1, 1), p.release(a2, 1), p.take(b1, 1)),
		p.search("yielding", 4, p.take(a1, 1), p.move("yield", p.channel, own, "1"), p.release(a2, 1), p.take(b1, 2)),
		p.search("transfer", 4, p.take(a1, 1), p.move("transfer"), p.renew(a2, longer, "0"), p.release(a1, 1), p.release(a2, 1), p.take(b1, 1)),
		p.search("beside Redisson", 5, p.take(a1, 1), p.renew(a1, usual, "2"), p.release(a1, 1), p.redissonTakes(), p.redissonUnlocks(), p.redissonRenews(), p.move("yield", p.channel, own, "0")),
		p.staying("staying", p.take(a1, 2), p.keep(a1, longer, 2), p.take(b1, 2), p.release(b1, 1), p.redissonTakes()),
		p.staying("staying for less", p.take(a1, 2), p.renew(a1, longer, "0"), p.keep(a1, 1, 2), p.release(a1, 1), p.take(b1, 1)),
		p.search("force", 4, p.take(a1, 1), p.force(a1), p.renew(a1, usual, "0"), p.take(b1, 1), p.redissonTakes()),
		f.search("tokens", 4, f.take(a1, 2), f.release(a1, 1), f.take(b1, 1), f.move("yield", f.channel, own, "0")),
		f.search("tokens of a transfer", 4, f.take(a1, 1), f.take(b1, 1), f.move("transfer")),
		r.search("tokens from the clock", 4, r.take(a1, 2), r.release(a1, 1), r.take(b1, 1), r.move("transfer")),
		e.search("tokens that end", 4, e.take(a1, 2), e.release(a1, 1), e.take(b1, 1), e.move("transfer")),
	}
}

func TestSearchPlain(t *testing.T) { explore(t, 1_860_334, plainSearches()) }
