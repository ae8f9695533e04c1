package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// skew is by how many ms the clock of a Redisson client may differ from the
// server's.
const skew = tick

// A group is a lock of several values at once.
type group struct{ plain }

func newGroup(fenced bool) group {
	p := plainLock
	p.lock, p.prefix, p.keys, p.fenced = "group", "grouplock.", []string{"group"}, []string{"group"}
	if fenced {
		p.fenced, p.tokenTTL = []string{"group", "token"}, []string{"0"}
	}
	return group{p}
}

// wanted is what each of them wants.
var wanted = [...][]string{a1: {"v1", "v2"}, a2: {"v1"}, b1: {"v2"}, j1: {"v2"}, b2: {"v2", "v3"}}

// with returns arguments and then those values.
func withValues(values []string, args ...string) []string {
	return slices.Concat(args, []string{strconv.Itoa(len(values))}, values, []string{strconv.Itoa(skew)})
}

// all says whether somebody has all that he wants.
func (g group) all(s *store, who int) bool {
	return !slices.ContainsFunc(wanted[who], func(v string) bool { return s.field("group", v) != ids[who] })
}

// traces says whether anything is stored of somebody.
func (g group) traces(s *store, who int) bool {
	return slices.ContainsFunc(wanted[who], func(v string) bool {
		return s.field("group", v) == ids[who] || s.field("group", v+":"+ids[who]+":expire_time")+s.field("group", v+":"+ids[who]+":lock_count") != ""
	})
}

func (g group) takes(who int, times int8) ask {
	a := g.take(who, times)
	a.args = slices.Concat(withValues(wanted[who], usualMs, ids[who]), g.tokenTTL)
	a.truth = func(before, after *store, reply any) bool {
		shown := !slices.ContainsFunc(wanted[who], func(v string) bool { return after.field("group", v+":"+ids[who]+":lock_count") == "" })
		return reply != nil && granted(reply) == g.all(after, who) && (granted(reply) && shown || before == after) && countsNothing(g.all(before, who), before, after)
	}
	return a
}

func (g group) renews(who int, lease int16, count string) ask {
	a := g.renew(who, lease, count)
	a.args, a.another = withValues(wanted[who], a.args...), withValues([]string{"v4", "v5", "v6"}, a.another...)
	a.truth = func(before, after *store, reply any) bool {
		wrong := slices.ContainsFunc(wanted[who], func(v string) bool {
			return count != "0" && after.field("group", v+":"+ids[who]+":lock_count") != count
		})
		return renewed(reply) == g.all(before, who) && (!renewed(reply) || !wrong)
	}
	return a
}

func (g group) releases(who int, times int8) ask {
	a := g.release(who, times)
	a.args = withValues(wanted[who], ids[who], g.channel, own)
	a.truth = func(before, after *store, reply any) bool {
		return reply != nil && freed(reply) == g.all(before, who) && !g.traces(after, who)
	}
	return a
}

func (g group) forces(who int) ask {
	a := g.force(who)
	a.args = []string{g.channel}
	for _, v := range wanted[who] {
		a.args = append(a.args, v, ids[who])
	}
	a.truth = func(before, after *store, reply any) bool {
		had := slices.ContainsFunc(wanted[who], func(v string) bool { return before.field("group", v) == ids[who] })
		return reply != nil && (reply == int64(1)) == had && (!had || !g.traces(after, who))
	}
	return a
}

// Redisson's, whose clock is off by so many ticks.
func (g group) redissonTakesValues(off int) ask {
	a := g.redissonTakes()
	a.script, a.args = "redisson.group", []string{usualMs, ids[j1], wanted[j1][0]}
	a.dated = func(sent int16) []string { return []string{strconv.Itoa(epoch + (int(sent)+off)*tick)} }
	return a
}

func (g group) redissonUnlocksValues(off int) ask {
	a := g.redissonUnlocks()
	a.script, a.args = "redisson.group.unlock", []string{ids[j1], g.channel, wanted[j1][0]}
	a.dated = func(sent int16) []string { return []string{strconv.Itoa(epoch + (int(sent)+off)*tick)} }
	return a
}

func (g group) wrong(s *state) string {
	for i, m := range s.minds {
		if !m.trusts(s.now) {
			continue
		}
		for j, other := range s.minds[:i] {
			if other.trusts(s.now) && slices.ContainsFunc(wanted[i], func(v string) bool { return slices.Contains(wanted[j], v) }) {
				return fmt.Sprintf("%s and %s trust at one time", names[j], names[i])
			}
		}
		left := int64(m.until-s.now) * tick
		for _, v := range wanted[i] {
			if s.store.field("group", v) != ids[i] || s.store.ttl("group") < left {
				return fmt.Sprintf("%s trusts until tick %d, and %s is stored for %d ms", names[i], m.until, v, s.store.ttl("group"))
			}
			// Redisson judges by its own clock, which may be ahead.
			if till := s.store.field("group", v+":"+ids[i]+":expire_time"); i != j1 && (till == "" || number(till) < int64(epoch)+int64(s.now)*tick+left+skew) {
				return fmt.Sprintf("%s trusts until tick %d, and a Redisson client may take %s before", names[i], m.until, v)
			}
		}
	}
	for _, other := range []string{"somebody else", "mode"} { // another type's lock
		if s.store.field("group", other) != "" && len(s.store.get("group").content) != 2*map[string]int{"somebody else": 1, "mode": 3}[other] {
			return "another type's lock is broken into"
		}
	}
	return ""
}

func (g group) calm(x *explorer, at *store, now int16) string {
	if at.field("group", "somebody else")+at.field("group", "mode") != "" {
		return ""
	}
	for who, id := range ids {
		if who != j1 {
			at = x.do("grouplock.release", at, now, g.keys, withValues(wanted[who], id, g.channel, own)...).after
		}
	}
	at = x.do("grouplock.force", at, now, g.keys, g.channel, wanted[j1][0], ids[j1]).after
	r := x.run(x.callOf(&x.waits[0], now), at, now, 0, healthy)
	if !granted(r.reply) {
		return fmt.Sprintf("all have released it, and who takes it is answered %v; stored: %s", r.reply, at)
	}
	at = x.do("grouplock.release", r.after, now, g.keys, withValues(wanted[a1], stranger, g.channel, own)...).after
	for _, k := range at.keys {
		if k.name == "group" && slices.ContainsFunc(k.content, func(field string) bool { return strings.HasPrefix(field, "v1") || len(field) > 17 && field[17] == '8' }) {
			return "all have released it, and something is left: " + at.String()
		}
	}
	return ""
}

// refusals looks at what takes that are refused are told.
func (g group) refusals(x *explorer, s scene, a *ask, _ int16, r *result) string {
	if a.script == "grouplock.release" {
		return x.tells(s, r.reply)
	}
	if a.script != "grouplock.take" || granted(r.reply) {
		return ""
	}
	told, ok := r.reply.([]any)
	if !ok || len(told) != 2 {
		return "that is no answer"
	}
	ms, whose := told[0].(int64), told[1].(string)
	if s.store.field("group", "somebody else")+s.store.field("group", "mode") != "" {
		if ms != s.store.ttl("group") {
			return "that is not the TTL"
		}
		return ""
	}
	var most int64
	for _, v := range a.args[3 : 3+int(number(a.args[2]))] {
		holder := s.store.field("group", v)
		if till := s.store.field("group", v+":"+holder+":expire_time"); holder != "" && holder != a.args[1] && till != "" {
			left := number(till) - epoch - int64(s.now)*tick
			if holder == ids[j1] {
				left += skew
			}
			most = max(most, left)
		}
	}
	if ms != most || whose == "" || whose == a.args[1] {
		return fmt.Sprintf("it is free in %d ms", most)
	}
	return ""
}

func (g group) search(name string, ticks, sends int8, asks ...ask) *search {
	some, one := g.takes(a1, 1), g.takes(b1, 1)
	some.name, one.name, some.truth, one.truth = "somebody, for two values,", "somebody, for one value,", nil, nil
	some.args = slices.Concat(withValues(wanted[a1], usualMs, stranger), g.tokenTTL)
	one.args = slices.Concat(withValues(wanted[b1], usualMs, stranger), g.tokenTTL)
	q := g.plain.search("group: "+name, sends, asks...)
	q.ticks, q.waits, q.wrong, q.calm, q.inspect = ticks, []ask{some, one}, g.wrong, g.calm, g.refusals
	return q
}

func groupSearches() []*search {
	g, f := newGroup(false), newGroup(true)
	seeded := func(name string, content ...string) *search {
		q := g.search("beside "+name, 3, 3, g.takes(a1, 2), g.releases(a1, 1), g.takes(b1, 1))
		q.seed = []key{{name: "group", kind: "hash", content: content, ttl: tick}}
		return q
	}
	part := g.search("what is left of it", 1, 2, g.releases(a1, 1), g.forces(a1))
	part.seed = []key{{name: "group", kind: "hash", ttl: usual * tick, content: []string{"v1", ids[a1], "v1:" + ids[a1] + ":expire_time", strconv.Itoa(epoch + usual*tick), "v1:" + ids[a1] + ":lock_count", "1"}}}
	for i := range part.asks {
		part.asks[i].may, part.asks[i].holder = func(*state) bool { return true }, false
	}
	return []*search{
		part,
		seeded("a lock", "somebody else", "1"),
		seeded("a read-write lock", "mode", "write", "somebody", "1", "somebody:write", "1"),
		g.search("two", 4, 4, g.takes(a1, 2), g.releases(a1, 1), g.takes(b1, 1), g.releases(b1, 1)),
		g.search("renewals", 4, 4, g.takes(a1, 1), g.renews(a1, longer, "2"), g.renews(a1, 0, "3"), g.takes(b1, 1)),
		g.search("some of it", 3, 4, g.takes(a2, 1), g.renews(a2, longer, "0"), g.takes(b1, 1), g.releases(b1, 1), g.takes(a1, 1)),
		g.search("parts of it", 4, 4, g.takes(a1, 1), g.takes(b2, 1), g.releases(b2, 1), g.releases(a1, 1), g.takes(b1, 1)),
		g.search("beside Redisson, behind", 4, 4, g.takes(a1, 1), g.renews(a1, usual, "0"), g.redissonTakesValues(-1), g.redissonUnlocksValues(-1), g.releases(a1, 1)),
		g.search("beside Redisson, ahead", 4, 4, g.takes(a1, 1), g.renews(a1, usual, "0"), g.redissonTakesValues(1), g.redissonUnlocksValues(1), g.releases(a1, 1)),
		g.search("force", 3, 4, g.takes(a1, 1), g.forces(a1), g.takes(b1, 1)),
		f.search("tokens", 3, 4, f.takes(a1, 2), f.releases(a1, 1), f.takes(b1, 1)),
	}
}

func TestSearchGroup(t *testing.T) { explore(t, 339_433, groupSearches()) }
