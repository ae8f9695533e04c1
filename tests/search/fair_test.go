package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// In these searches a tick is 2 s, and the lease as long as a waiter may be
// silent.
const (
	fairTick  = 2000
	fairLease = 3
	silence   = 3
	fairMs    = "6000"
	allowance = 300_000 // what Redisson allows each waiter
	ages      = 80      // the ticks that a long time has
)

// What a waiter of the fair lock knows.
const (
	queued  uint8 = 1 << iota // it was told that it waits
	asks                      // it has asked since
	twice                     // it may have been put into the queue twice
	given                     // there is a message for it that it has the lock
	unheard                   // its subscription is broken
)

// able is to ask for a place in the queue, and to say that one can be given the
// lock.
const able = "able"

// nonces are the messages that give each of them the lock.
var nonces = [...]string{a1: "2251799813685249", a2: "2251799813685250", b1: "2251799813685251", j1: "none", b2: "2251799813685252"}

// nonce is what says that somebody can be given the lock, and how.
func nonce(id string) string { return "nonce " + id + " lock" }

// ableIn says whether somebody is said to be able to be given the lock.
func ableIn(s *store, id string) bool { return s.field("alive", nonce(id)) != "" }

var allowed = strconv.Itoa(allowance)

var fairKeys = []string{"lock", "queue", "timeouts", "alive"}

// A fair is a lock that is had in the order in which it was asked for. A mind's
// token is when the last request was sent that was answered.
type fair struct{ plain }

func newFair() fair {
	p := plainLock
	p.prefix, p.keys, p.fenced = "fairlock.", fairKeys, fairKeys
	return fair{p}
}

// lineUp is the ask for it, or for a place in the queue. It is executed once at
// most, as an attempt of the library is: that is why one can rely on a message.
func (f fair) lineUp(who int, times int8, enqueue string) ask {
	a := f.take(who, times)
	a.name, a.runs = fmt.Sprintf("%s takes (%s)", names[who], enqueue), 1
	if enqueue == able {
		enqueue = nonces[who]
	}
	a.args = slices.Concat([]string{fairMs, ids[who], f.channel, ids[who][:36], enqueue, allowed}, f.tokenTTL)
	a.sending = func(s *state) {
		m := &s.minds[who]
		if m.what&asks > 0 {
			m.what |= twice
		}
		m.phase, m.what = asking, m.what|asks
	}
	a.hears = func(s *state, sent int16, r *result) string {
		m := &s.minds[who]
		if granted(r.reply) {
			m.what &= unheard
			m.token = 0
			return f.hasIt(s, who, sent+fairLease, r.reply)
		}
		if told := r.reply.([]any); told[3] == int64(1) && m.what&queued > 0 {
			m.what |= twice
		}
		m.phase, m.what, m.token = refused, m.what&^asks, int32(sent)
		if enqueue != "0" {
			m.what |= queued
		}
		return ""
	}
	return a
}

// hearsOf is what a waiter does that is told that it has the lock: it believes it
// for as long as it may be silent after its last request that was answered.
func (f fair) hearsOf(who int) ask {
	return ask{
		name: names[who] + " hears that it was given the lock", times: 1,
		may: func(s *state) bool { return s.minds[who].what&given > 0 },
		sending: func(s *state) {
			m := &s.minds[who]
			m.what &^= given
			if until := int16(m.token) + silence; m.phase <= refused && m.what&queued > 0 && m.what&twice == 0 && until > s.now {
				*m = mind{phase: has, until: until}
			}
		},
	}
}

// told notes a message.
func (f fair) told(s *state, m message) {
	for who, id := range ids {
		if m.channel == f.channel+":"+id && m.text == nonces[who] && s.minds[who].phase <= refused && s.minds[who].what&unheard == 0 {
			s.minds[who].what |= given
		}
	}
}

// breaks is that the subscription of a waiter breaks, and heals that it subscribes
// again. A waiter asks again then.
func (f fair) breaks(who int) ask {
	return ask{
		name: names[who] + "'s subscription breaks", times: 1,
		may:     func(s *state) bool { return s.minds[who].what&(queued|unheard) == queued },
		sending: func(s *state) { s.minds[who].what |= unheard },
	}
}

func (f fair) heals(who int) ask {
	return ask{
		name: names[who] + " subscribes again", times: 1,
		may:     func(s *state) bool { return s.minds[who].what&unheard > 0 },
		sending: func(s *state) { s.minds[who].what &^= unheard },
	}
}

// deaf says whether a waiter is passed over: it was counted among those who
// listen, and is not any more. Who asks itself is not.
func (f fair) deaf(s scene, me, id string) bool {
	who := slices.Index(ids[:], id)
	return id != me && who >= 0 && s.others&(1<<who) > 0 && loose(s.store.field("alive", nonce(id)))
}

// leaves is the ask to give it up, or the place in the queue.
func (f fair) leaves(who int, times int8) ask { return f.leave(times, who) }

// leave is leaves of several at once. To name one of them twice changes nothing.
func (f fair) leave(times int8, all ...int) ask {
	a := f.release(all[0], times)
	a.runs, a.name, a.args = 1, "", []string{f.channel, allowed}
	for _, who := range all {
		a.name += names[who] + " "
		a.args = append(a.args, ids[who])
	}
	a.name += "leave"
	a.may = func(s *state) bool {
		return !slices.ContainsFunc(all, func(who int) bool { return s.minds[who].phase == idle })
	}
	a.sending = func(s *state) {
		for _, who := range all {
			s.minds[who] = mind{phase: over}
		}
	}
	a.truth = func(before, after *store, reply any) bool {
		had := int64(0)
		for i, who := range all {
			if had == 0 && before.field("lock", ids[who]) != "" {
				had = int64(i + 1)
			}
			if after.field("lock", ids[who]) != "" || slices.Contains(queue(after), ids[who]) || ableIn(after, ids[who]) {
				return false
			}
		}
		return reply == had
	}
	return a
}

func (f fair) forces(who int) ask {
	a := f.force(who)
	a.runs, a.args = 1, slices.Insert(a.args, 1, allowed)
	a.truth = func(before, after *store, reply any) bool {
		return reply != nil && (reply == int64(1)) == (before.field("lock", ids[who]) != "") && after.field("lock", ids[who]) == ""
	}
	return a
}

func (f fair) renews(who int) ask {
	a := f.renew(who, fairLease, "0")
	a.script, a.args[1] = "lock.renew", fairMs
	return a
}

func queue(s *store) []string {
	if k := s.get("queue"); k != nil {
		return k.content
	}
	return nil
}

// Redisson's. Its clock is right.
func (f fair) redissonLinesUp(times int8) ask {
	a := f.redissonTakes()
	a.name, a.times, a.script, a.keys = "Redisson takes", times, "redisson.fair", fairKeys[:3]
	a.args = []string{fairMs, ids[j1], strconv.Itoa(allowance)}
	a.dated = func(sent int16) []string { return []string{strconv.Itoa(epoch + int(sent)*fairTick)} }
	a.may = func(s *state) bool { return s.minds[j1].phase == idle || s.minds[j1].phase == refused }
	a.hears = func(s *state, sent int16, r *result) string {
		if s.minds[j1].phase = refused; r.reply == nil {
			s.minds[j1].phase, s.minds[j1].until = has, sent+fairLease
		}
		return ""
	}
	return a
}

func (f fair) redissonUnlocksFair() ask {
	a := f.redissonUnlocks()
	a.script, a.keys, a.args = "redisson.fair.unlock", fairKeys[:3], []string{ids[j1], f.channel}
	a.may = func(s *state) bool { return s.minds[j1].phase == has }
	a.dated = func(sent int16) []string { return []string{strconv.Itoa(epoch + int(sent)*fairTick)} }
	return a
}

func (f fair) wrong(s *state) string {
	who, wrong := s.sole()
	if who < 0 || wrong != "" {
		return wrong
	}
	until := s.minds[who].until
	if left := s.store.ttl("lock"); s.store.field("lock", ids[who]) == "" || left < int64(until-s.now)*fairTick {
		return fmt.Sprintf("%s trusts until tick %d, and the lock is stored for %d ms", names[who], until, left)
	}
	return ""
}

// dead says whether a waiter has no right to its place any more.
func (f fair) dead(s *store, id string, now int16) bool {
	ms := int64(epoch) + int64(now)*fairTick
	score := s.field("timeouts", id)
	if score == "" {
		return true
	}
	if id[14] != '8' {
		return number(score) <= ms
	}
	heard := s.field("alive", id[:36])
	return heard == "" || number(heard) <= ms-silence*fairTick
}

func number(text string) int64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return int64(n)
}

// loose says whether a score says that only it counts.
func loose(score string) bool { return strings.Contains(score, ".") }

// order looks at who has come to the front, and who has gone.
func (f fair) order(x *explorer, s scene, a *ask, _ int16, r *result) string {
	if a.foreign || a.script == "lock.renew" {
		return ""
	}
	before, after := queue(s.store), queue(r.after)
	me := a.args[slices.IndexFunc(a.args, func(arg string) bool { return len(arg) > 36 })]
	alive := s.store
	if a.script == "fairlock.take" && len(before) > 0 && a.args[4] != "0" { // which says that its client lives
		alive = x.with(x.without(s.store, "alive"), heard(s.store, a.args[3], s.now))
	}
	owner := ""
	for _, id := range append(slices.Clone(before), me) {
		if r.after.field("lock", id) != "" && s.store.field("lock", id) == "" {
			owner = id
		}
	}
	for i, id := range before {
		if id == owner {
			owner = ""
		}
		lives := !f.dead(alive, id, s.now) && (a.script == "fairlock.take" || !slices.Contains(a.args, id))
		if deaf := f.deaf(s, me, id); deaf && owner != "" {
			lives = false // others pass it,
		} else if deaf { // and it goes if Redisson's is the next
			next := slices.IndexFunc(before[i:], func(id string) bool { return !f.deaf(s, me, id) && !f.dead(alive, id, s.now) })
			lives = lives && (next < 0 || before[i+next][14] == '8')
		}
		if owner != "" && lives {
			return fmt.Sprintf("%s has it, and %s was to have it before", owner, id)
		}
		if lives && !slices.Contains(after, id) && r.after.field("lock", id) == "" {
			return fmt.Sprintf("%s is no more in the queue", id)
		}
	}
	if bad := f.chain(r.after, s.now, !f.passesBy(s.store, a, r, me)); bad != "" {
		return bad
	}
	for _, id := range append(ids[:], stranger) {
		if ableIn(r.after, id) && !slices.Contains(after, id) {
			return id + " can be given the lock, and does not wait"
		}
	}
	return f.next(s, a, r, me)
}

// heard returns who is alive after a client was heard.
func heard(s *store, client string, now int16) key {
	k := key{name: "alive", kind: "zset"}
	if old := s.get("alive"); old != nil {
		k.ttl = old.ttl
		for i := 0; i < len(old.content); i += 2 {
			if old.content[i] != client {
				k.content = append(k.content, old.content[i], old.content[i+1])
			}
		}
	}
	k.content = append(k.content, client, strconv.Itoa(epoch+int(now)*fairTick))
	return k
}

// passesBy says whether a script had no reason to look who stands at the front.
func (f fair) passesBy(s *store, a *ask, r *result, me string) bool {
	switch a.script {
	case "fairlock.take":
		return s.field("lock", me) != "" // it is a replay
	case "fairlock.force":
		return r.reply == int64(0)
	}
	return false
}

// chain looks at the scores: each waiter's is an allowance above the one's before
// it, and nobody can be evicted soon who stands at the front. While all are of
// redlatch, the last one's says where the chain ends, and nobody's is above the
// chain.
func (f fair) chain(s *store, now int16, looked bool) string {
	all, ms := queue(s), int64(epoch)+int64(now)*fairTick
	isLoose := len(all) > 0 && loose(s.field("timeouts", all[len(all)-1])) && all[len(all)-1][14] == '8'
	for i, id := range all {
		score := s.field("timeouts", id)
		lives := id[14] == '8' && !f.dead(s, id, now)
		switch {
		case score == "":
			return fmt.Sprintf("%s stands in the queue without a score", id)
		case looked && i == 0 && lives && number(score) < ms+allowance/2:
			return fmt.Sprintf("Redisson could evict %s, which lives", id)
		case number(score) > ms+fairLease*fairTick+int64(i+1)*allowance:
			return fmt.Sprintf("Redisson would wait too long for %s", id)
		case looked && isLoose && id[14] != '8':
			return fmt.Sprintf("%s is of Redisson, and the chain is loose", id)
		case isLoose && i == len(all)-1:
			if looked && lives && number(score) < ms+int64(i)*allowance+allowance/2 {
				return fmt.Sprintf("%s is too near for Redisson", id)
			}
		case isLoose && (loose(score) || number(score) > ms+allowance):
			return fmt.Sprintf("%s is above the chain", id)
		case !isLoose && looked && i > 0 && (number(score)-number(s.field("timeouts", all[i-1]))-allowance)/2 != 0: // but for half a millisecond
			return fmt.Sprintf("%s is not an allowance behind the one before it", id)
		}
	}
	if k := s.get("timeouts"); k != nil && len(k.content) != 2*len(all) {
		return "somebody has a score and does not stand in the queue"
	}
	return ""
}

// next looks at what follows when the lock is free, or becomes it.
func (f fair) next(s scene, a *ask, r *result, me string) string {
	after := queue(r.after)
	if len(after) == 0 && a.script == "fairlock.release" && r.told == nil && r.after.get("alive") != nil {
		return "nobody waits, and something is left"
	}
	if a.script == "fairlock.release" && r.reply == int64(0) && s.store.get("lock") != nil && len(after) > 0 && f.dead(r.after, after[0], s.now) {
		return after[0] + ", who is dead, stands first"
	}
	if r.after.get("lock") == nil {
		if len(after) == 0 {
			return ""
		}
		first := slices.IndexFunc(after, func(id string) bool { return !f.deaf(s, me, id) && (id == after[0] || !f.dead(r.after, id, s.now)) })
		if first < 0 {
			if a.script == "fairlock.take" {
				return "it is refused, and nobody hears that it may take the lock"
			}
			return ""
		}
		whose := after[first]
		was := queue(s.store)
		changed := s.store.get("lock") != nil || len(was) == 0 || was[0] != after[0]
		if (changed || a.script == "fairlock.take") && !slices.Contains(r.told, message{f.channel + ":" + whose, "0"}) {
			return fmt.Sprintf("it is the turn of %s, and it is not told", whose)
		}
		if at := r.after.field("alive", whose[:36]); changed && a.script != "fairlock.take" && ableIn(r.after, whose) && at != "" && number(at) > int64(epoch)+int64(s.now)*fairTick-fairTick*3/2 {
			return fmt.Sprintf("it is the turn of %s, which can be given the lock, and it is not given it", whose)
		}
		return ""
	}
	for who, id := range ids {
		if s.store.field("lock", id) == "" && r.after.field("lock", id) != "" && f.deaf(s, me, id) {
			return fmt.Sprintf("%s was given the lock, and hears nothing", id)
		}
		if id != me && s.store.field("lock", id) == "" && r.after.field("lock", id) != "" && !slices.Contains(r.told, message{f.channel + ":" + id, nonces[who]}) {
			return fmt.Sprintf("%s was given the lock, and is not told", id)
		}
	}
	return ""
}

// calm has everybody release, and somebody else come then; or everybody die.
func (f fair) calm(x *explorer, at *store, now int16) string {
	at = x.settled(at)
	if s := x.after(at, 500*fairTick); !granted(x.run(x.call(x.code("fairlock.take"), fairKeys, []string{fairMs, stranger, f.channel, stranger[:36], "1", allowed}), s, now+500, 0, healthy).reply) {
		return "everybody has died long ago, and nobody can have it"
	}
	if s := x.after(at, (silence+1)*fairTick); len(queue(at)) > 0 && !slices.Contains(queue(at), ids[j1]) && at.field("lock", ids[j1]) == "" {
		if !granted(x.run(x.call(x.code("fairlock.take"), fairKeys, []string{fairMs, stranger, f.channel, stranger[:36], "1", allowed}), s, now+silence+1, 0, healthy).reply) {
			return "everybody has died, and nobody can have it"
		}
	}
	for range 2 { // one that is given it meanwhile releases it, too
		for who, id := range ids {
			if who != j1 {
				at = x.do("fairlock.release", at, now, fairKeys, f.channel, allowed, id).after
			}
		}
		at = x.do("redisson.fair.leave", at, now, fairKeys[:3], ids[j1], strconv.Itoa(allowance)).after
		if at.field("lock", ids[j1]) != "" {
			at = x.do("redisson.fair.unlock", at, now, fairKeys[:3], ids[j1], f.channel, strconv.Itoa(epoch+int(now)*fairTick)).after
		}
		at = x.do("fairlock.release", at, now, fairKeys, f.channel, allowed, "a remnant").after
	}
	r := x.run(x.call(x.code("fairlock.take"), fairKeys, []string{fairMs, stranger, f.channel, stranger[:36], "1", allowed}), at, now, 0, healthy)
	if !granted(r.reply) {
		return fmt.Sprintf("all have released it, and who takes it is answered %v; stored: %s", r.reply, at)
	}
	if at = x.do("fairlock.release", r.after, now, fairKeys, f.channel, allowed, stranger).after; at.get("lock") != nil || len(queue(at)) > 0 || at.get("timeouts") != nil || at.get("alive") != nil {
		return "all have released it, and something is left: " + at.String()
	}
	return ""
}

// refusals looks at what takes that are refused are told.
func (f fair) refusals(x *explorer, s scene, a *ask, sent int16, r *result) string {
	if bad := f.order(x, s, a, sent, r); bad != "" || a.script != "fairlock.take" || granted(r.reply) {
		return bad
	}
	told, ok := r.reply.([]any)
	if !ok || len(told) != 4 {
		return "that is no answer"
	}
	owner, head, id, after := told[1].(string), told[2].(string), a.args[1], queue(r.after)
	wants := a.args[4] != "0"
	fresh := slices.Contains(after, id) && s.store.field("timeouts", id) == ""
	switch {
	case owner != "" && r.after.field("lock", owner) == "", owner == "" && r.after.get("lock") != nil:
		return fmt.Sprintf("it names %q as the owner", owner)
	case head != "" && (len(after) == 0 || after[0] != head), head == "" && len(after) > 0:
		return fmt.Sprintf("it names %q as the first", head)
	case owner != "" && told[0] != r.after.ttl("lock"):
		return "that is not the TTL"
	case wants != slices.Contains(after, id):
		return "that it waits is not what it asked for"
	case (told[3] == int64(1)) != fresh && !slices.Contains(queue(s.store), id):
		return "that it was put into the queue is wrong"
	case wants && r.after.field("alive", a.args[3]) != strconv.Itoa(epoch+int(s.now)*fairTick):
		return "that its client lives is not noted"
	case wants && f.forgets(s.store, a) && f.forgotten(r.after, s.now):
		return "who has been silent for long is not forgotten"
	case len(a.args[4]) > 1 && len(queue(s.store)) > 0 && r.after.field("alive", nonce(id)) != f.mark(s, a.args[4], id):
		return "that it can be given the lock is not noted"
	case a.args[4] == "1" && ableIn(r.after, id):
		return "that it can be given the lock is not so"
	}
	return ""
}

// mark is what says that somebody can be given the lock, and whether it listens.
func (f fair) mark(s scene, nonce, id string) string {
	if s.others&(1<<slices.Index(ids[:], id)) > 0 {
		return nonce
	}
	return nonce + ".5"
}

// forgets says whether a waiter is to forget who has been silent: it is not, if
// there is nothing new but its nonce.
func (f fair) forgets(s *store, a *ask) bool {
	added := 0
	for _, member := range []string{a.args[3], nonce(a.args[1])} {
		if s.field("alive", member) == "" && (member == a.args[3] || len(a.args[4]) > 1) {
			added++
		}
	}
	return added != 1
}

// forgotten says whether somebody is said to live who has been silent for too
// long.
func (f fair) forgotten(s *store, now int16) bool {
	k := s.get("alive")
	for i := 1; k != nil && i < len(k.content); i += 2 {
		if number(k.content[i]) <= int64(epoch)+int64(now-silence)*fairTick {
			return true
		}
	}
	return false
}

func (f fair) search(name string, ticks, sends int8, all ...ask) *search {
	for _, who := range []int{a1, a2, b1} {
		if slices.ContainsFunc(all, func(a ask) bool { return strings.HasPrefix(a.name, names[who]+" takes ("+able) }) {
			all = append(all, f.hearsOf(who))
		}
	}
	return &search{
		name: "fair: " + name, unit: fairTick, ticks: ticks, sends: sends, asks: all, minds: names[:], longest: 12_000,
		listens: func(string) bool { return true },
		wrong:   f.wrong, calm: f.calm, inspect: f.refusals, told: f.told,
		stays: func(name string) bool { return name == "queue" || name == "timeouts" || name == "token" },
		listeners: func(s *state) (broken int8) {
			for who := range ids {
				if s.minds[who].what&unheard > 0 {
					broken |= 1 << who
				}
			}
			return broken
		},
		unheard: func(channel string, broken int8) bool {
			who := slices.IndexFunc(ids[:], func(id string) bool { return channel == f.channel+":"+id })
			return who >= 0 && broken&(1<<who) > 0
		},
	}
}

// moving is a search in which the slot moves, one key after the other, and has
// moved in the end.
func (f fair) moving(name string, ticks, sends int8, all ...ask) *search {
	for i := range all {
		all[i].batch = false // in a batch all is refused, and sent one by one
	}
	moves := carries(move)
	moves.times = 2
	all = append(all, moves)
	for _, key := range fairKeys {
		all = append(all, carries(key))
	}
	q := f.search("a slot moves: "+name, ticks, sends, all...)
	stays := q.stays
	q.stays = func(name string) bool { return name == move || stays(name) }
	return q
}

// twins is the search of two locks with one queue, as "x" and "{x}" have: who
// waits for one of them is not given the other. Of what a2 has, the twin, it
// believes nothing.
func twins() *search {
	f, g := newFair(), newFair()
	g.keys = append([]string{"twin"}, fairKeys[1:]...)
	g.lock, g.fenced = "twin", g.keys
	takes, leaves := g.lineUp(a2, 1, "1"), g.leaves(a2, 1)
	takes.hears, leaves.truth = func(*state, int16, *result) string { return "" }, nil
	q := f.search("twin names", 3, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(b1, 2, able), takes, leaves)
	q.calm = func(*explorer, *store, int16) string { return "" }
	q.inspect = func(_ *explorer, _ scene, _ *ask, _ int16, r *result) string {
		if r.after.field("lock", ids[a2])+r.after.field("twin", ids[a1])+r.after.field("twin", ids[b1]) != "" {
			return "it has the lock of the other name"
		}
		return ""
	}
	return q
}

// waitsLong is what all do meanwhile.
func waitsLong() ask {
	return ask{
		name: "a long time passes", times: 2, skips: ages,
		may:     func(*state) bool { return true },
		sending: func(*state) {},
	}
}

// score is that of so many allowances after the beginning.
func score(allowances int, more float64) string {
	return strconv.FormatFloat(float64(epoch+allowances*allowance)+more, 'f', -1, 64)
}

func fairSearches() []*search {
	f, t := newFair(), newFair()
	t.fenced, t.tokenTTL = append(slices.Clone(fairKeys), "token"), []string{"0"}
	remnant := f.search("a remnant", 1, 3, f.lineUp(a1, 2, "1"), f.leaves(a1, 1), f.lineUp(b1, 1, "1"))
	remnant.seed = []key{{name: "queue", kind: "list", content: []string{"a remnant"}}}
	own := f.moving("its own remnant", 0, 3, f.lineUp(a1, 2, able), f.leaves(a1, 1), f.leaves(b2, 1))
	own.seed = []key{
		{name: "lock", kind: "hash", content: []string{ids[b2], "1"}, ttl: 6000},
		{name: "queue", kind: "list", content: []string{ids[a1]}},
		{name: "alive", kind: "zset", ttl: 12_000, content: []string{ids[a1][:36], score(0, 0)}},
	}
	own.asks[2].may = func(s *state) bool { return s.minds[b2].phase == idle }
	several := f.moving("several have it, and are forced", 0, 2, f.forces(a1), f.lineUp(b1, 1, "1"))
	several.seed = []key{
		{name: "lock", kind: "hash", content: []string{ids[a1], "1", ids[a2], "1"}, ttl: 6000},
		{name: "queue", kind: "list", content: []string{ids[b1]}},
		{name: "timeouts", kind: "zset", content: []string{ids[b1], score(1, 0.5)}},
		{name: "alive", kind: "zset", ttl: 12_000, content: []string{ids[b1][:36], score(0, 0)}},
	}
	several.asks[0].args = append(several.asks[0].args, ids[a2])
	several.asks[0].may = func(*state) bool { return true }
	several.calm = func(*explorer, *store, int16) string { return "" } // nobody of them releases it
	chain := f.search("a loose chain", 1, 4, f.lineUp(b1, 1, "1"), f.leaves(b1, 1), f.redissonLinesUp(1), f.lineUp(a1, 1, "1"), f.lineUp(a2, 1, able), f.leaves(a2, 1))
	chain.seed = []key{
		{name: "queue", kind: "list", content: []string{ids[b1], ids[a2], ids[b2]}},
		{name: "timeouts", kind: "zset", content: []string{ids[a2], score(1, 0), ids[b1], score(1, 0), ids[b2], score(3, 0.5)}},
		{name: "alive", kind: "zset", ttl: 12_000, content: []string{ids[a1][:36], score(0, 0), ids[b1][:36], score(0, 0), nonce(ids[a2]), nonces[a2]}},
	}
	chain.calm = func(*explorer, *store, int16) string { return "" } // who has died long ago may have it until later
	died := f.moving("who dies", 3, 3, f.lineUp(a1, 1, able), f.leaves(a1, 1), f.leaves(b2, 1))
	died.seed = []key{
		{name: "lock", kind: "hash", content: []string{ids[b2], "1"}, ttl: 8000},
		{name: "queue", kind: "list", content: []string{ids[b1]}},
		{name: "timeouts", kind: "zset", content: []string{ids[b1], score(0, allowance/3+0.5)}},
		{name: "alive", kind: "zset", ttl: 12_000, content: []string{ids[b1][:36], score(0, 0), nonce(ids[b1]), nonces[b1]}},
	}
	died.asks[2].may = func(s *state) bool { return s.minds[b2].phase == idle }
	both := f.search("who is dead, and who hears nothing, before Redisson", 3, 3, f.lineUp(b1, 1, able), f.breaks(b1), f.leaves(b2, 1))
	both.seed = []key{
		{name: "lock", kind: "hash", content: []string{ids[b2], "1"}, ttl: 12_000},
		{name: "queue", kind: "list", content: []string{ids[a1], ids[b1], ids[j1]}},
		{name: "timeouts", kind: "zset", content: []string{ids[a1], score(1, 0), ids[b1], score(2, 0), ids[j1], score(3, 0)}},
		{name: "alive", kind: "zset", ttl: 12_000, content: []string{ids[a1][:36], score(0, 0), ids[b1][:36], score(0, 0), nonce(ids[a1]), nonces[a1], nonce(ids[b1]), nonces[b1]}},
	}
	both.asks[2].may = died.asks[2].may
	old := f.search("a long time", 1, 4, f.lineUp(b1, 2, "1"), f.lineUp(a1, 1, "1"), f.redissonLinesUp(1), waitsLong())
	return []*search{
		remnant, own, several, chain, dead(f), long(f), mixed(f), twins(),
		refuses("more fields than a lock has", key{name: "lock", kind: "hash", content: many}, f.lineUp(a1, 1, "1")),
		refuses("WRONGTYPE", key{name: "queue", kind: "hash", content: []string{"what", "else"}}, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.forces(a1)),
		f.moving("giving", 1, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(b1, 2, able), f.leaves(b1, 1), f.renews(a1)),
		f.moving("two wait", 0, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(a2, 1, able), f.leaves(a2, 1), f.lineUp(b1, 1, "1")),
		died, both,
		f.moving("force", 0, 4, f.lineUp(a1, 1, "1"), f.forces(a1), f.lineUp(b1, 2, able), f.leaves(b1, 1)),
		f.search("giving", 4, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(b1, 2, able), f.leaves(b1, 1), f.renews(a1)),
		f.search("who dies", 3, 4, f.lineUp(a1, 1, "1"), f.lineUp(b1, 1, able), f.lineUp(a2, 2, "1")),
		f.search("two wait", 2, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(a2, 1, able), f.leaves(a2, 1), f.lineUp(b1, 2, "1")),
		f.search("three wait", 0, 5, f.lineUp(a1, 1, "1"), f.lineUp(b1, 1, "1"), f.lineUp(a2, 1, "1"), f.lineUp(b2, 1, "1"), f.leaves(a2, 1)),
		f.search("leaving together", 1, 6, f.lineUp(a1, 1, "1"), f.lineUp(a2, 1, able), f.lineUp(b1, 2, able), f.lineUp(b2, 1, "1"), f.leave(1, a2, a1, a2), f.leaves(b1, 1)),
		f.search("who does not wait", 4, 4, f.lineUp(a1, 1, "0"), f.leaves(a1, 1), f.lineUp(b1, 2, "1"), f.lineUp(a2, 1, "0")),
		f.search("beside Redisson", 3, 5, f.lineUp(a1, 2, able), f.leaves(a1, 1), f.redissonLinesUp(2), f.redissonUnlocksFair()),
		f.search("behind Redisson", 2, 4, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.redissonLinesUp(1), f.lineUp(b1, 2, "1")),
		f.search("force", 3, 4, f.lineUp(a1, 1, "1"), f.forces(a1), f.lineUp(b1, 2, able), f.redissonLinesUp(1)),
		f.search("who hears nothing", 1, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(a2, 2, able), f.breaks(a2), f.heals(a2), f.lineUp(b1, 2, able), f.breaks(b1), f.leaves(b1, 1)),
		f.search("who hears nothing beside Redisson", 1, 5, f.lineUp(a1, 1, "1"), f.leaves(a1, 1), f.lineUp(b1, 1, able), f.breaks(b1), f.lineUp(a2, 1, able), f.redissonLinesUp(1)),
		t.search("tokens", 3, 4, t.lineUp(a1, 2, "1"), t.leaves(a1, 1), t.lineUp(b1, 2, "1")),
		old,
		f.search("a long time of one client", 0, 4, f.lineUp(b2, 1, "1"), f.lineUp(b1, 1, "1"), f.lineUp(a2, 1, "1"), f.lineUp(a1, 1, "1"), waitsLong()),
	}
}

func TestSearchFair(t *testing.T) { explore(t, 1_144_513, fairSearches()) }
