package search

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// permits is how many there are in these searches; minds are one permit each.
const permits = 2

var permitKeys = []string{"free", "timeouts"}

// takesPermits is the ask of one process for a permit for each of some callers,
// who stand in line.
func takesPermits(times int8, who ...int) ask {
	a := ask{
		times: times, runs: 2, script: "expirable.take", keys: permitKeys, args: []string{"channel"},
		may:  func(s *state) bool { return all(s, who, func(m mind) bool { return m.phase <= refused }) },
		open: func(s *state) bool { return all(s, who, func(m mind) bool { return m.phase <= refused }) },
		sending: func(s *state) {
			for _, w := range who {
				s.minds[w].phase = asking
			}
		},
		hears: func(s *state, sent int16, r *result) string {
			for i, w := range who {
				if s.minds[w].phase = refused; int64(i) < first(r.reply) {
					s.minds[w] = mind{phase: has, until: sent + usual}
				}
			}
			return ""
		},
	}
	for i, w := range who {
		a.name += map[bool]string{true: " and "}[i > 0] + names[w]
		a.args = append(a.args, usualMs, "1", ids[w])
	}
	a.name += " take a permit"
	return a
}

func all(s *state, who []int, is func(m mind) bool) bool {
	return !slices.ContainsFunc(who, func(w int) bool { return !is(s.minds[w]) })
}

// first is the first number of an answer; a very small one if it is none.
func first(reply any) int64 {
	if list, ok := reply.([]any); ok && len(list) == 2 {
		return list[0].(int64)
	}
	return -99
}

func renewsPermit(who int, lease int16) ask {
	a := plainLock.renew(who, lease, "")
	a.script, a.keys, a.args, a.another = "expirable.renew", []string{"timeouts"}, []string{ids[who], strconv.Itoa(int(lease) * tick)}, []string{"nobody", usualMs}
	a.name, a.truth = fmt.Sprintf("%s renews its permit for %d ticks", names[who], lease), nil
	return a
}

func releasesPermits(times int8, who ...int) ask {
	a := plainLock.release(who[0], times)
	a.script, a.keys, a.args, a.truth, a.holder = "expirable.release", permitKeys, []string{"channel", own}, nil, false
	a.frees = true
	a.name = "release of the permits of"
	for _, w := range who {
		a.name += " " + names[w]
		a.args = append(a.args, ids[w])
	}
	a.may = func(s *state) bool { return !all(s, who, func(m mind) bool { return m.phase == idle }) }
	a.sending = func(s *state) {
		for _, w := range who {
			s.minds[w] = mind{phase: over}
		}
	}
	return a
}

func countsPermits() ask {
	return ask{
		name: "somebody counts", times: 1, runs: 1, script: "expirable.count", keys: permitKeys, args: []string{"channel"}, frees: true,
		may: func(*state) bool { return true },
	}
}

func redissonTakesPermit() ask {
	a := plainLock.redissonTakes()
	a.script, a.keys, a.args = "redisson.permit", permitKeys, []string{ids[j1], "channel"}
	a.dated = func(sent int16) []string {
		return []string{strconv.Itoa(epoch + int(sent)*tick), strconv.Itoa(epoch + int(sent+usual)*tick)}
	}
	a.hears = func(s *state, sent int16, r *result) string {
		if s.minds[j1].phase = refused; r.reply == "OK" {
			s.minds[j1] = mind{phase: has, until: sent + usual}
		}
		return ""
	}
	return a
}

func redissonReleasesPermit() ask {
	a := plainLock.redissonUnlocks()
	a.script, a.keys, a.args = "redisson.permit.release", permitKeys, []string{ids[j1], "channel"}
	return a
}

// counted returns how many permits are free, and how many given.
func counted(s *store) (free, given int64) {
	if k := s.get("free"); k != nil {
		free = number(k.content[0])
	}
	if k := s.get("timeouts"); k != nil {
		given = int64(len(k.content) / 2)
	}
	return free, given
}

func wrongPermits(s *state) string {
	if free, given := counted(s.store); free+given != permits && s.store.get("free") != nil {
		return fmt.Sprintf("%d permits are free, and %d given", free, given)
	}
	trusting := 0
	for i, m := range s.minds {
		if !m.trusts(s.now) {
			continue
		}
		trusting++
		if score := s.store.field("timeouts", ids[i]); score == "" || number(score) < int64(epoch)+int64(m.until)*tick {
			return fmt.Sprintf("%s trusts until tick %d, and its permit is given until %q", names[i], m.until, score)
		}
	}
	if trusting > permits {
		return fmt.Sprintf("%d trust that they have one of %d permits", trusting, permits)
	}
	return ""
}

func calmPermits(x *explorer, at *store, now int16) string {
	if at.get("free") == nil {
		return ""
	}
	after := x.do("expirable.release", at, now, permitKeys, slices.Concat([]string{"channel", own}, ids[:], []string{"for ever", "and ever"})...).after
	if free, given := counted(after); free != permits || given != 0 {
		return fmt.Sprintf("all have released what they had, and %d are free, and %d given", free, given)
	}
	return ""
}

// halfway says what is wrong with what a request leaves behind that is refused
// half-way: a permit that is neither free nor given.
func halfway(x *explorer, s scene, a *ask, sent int16) string {
	if s.store.get("free") == nil || a.foreign {
		return ""
	}
	free, given := counted(s.store)
	for _, cond := range refusing {
		if f, g := counted(x.run(x.callOf(a, sent), s.store, s.now, s.others, cond).after); f+g != free+given {
			return fmt.Sprintf("refused half-way (%s), it leaves %d permits free and %d given", cond, f, g)
		}
	}
	return ""
}

// judgePermits looks at answers, and at what was done.
func judgePermits(x *explorer, s scene, a *ask, sent int16, r *result) string {
	if bad := halfway(x, s, a, sent); bad != "" {
		return bad
	}
	now := int64(epoch) + int64(s.now)*tick
	free, given := counted(r.after)
	over := 0
	if k := s.store.get("timeouts"); k != nil {
		for i := 1; i < len(k.content); i += 2 {
			if number(k.content[i]) <= now && r.after.field("timeouts", k.content[i-1]) == "" { // or its owner has it anew
				over++
			}
		}
	}
	if swept := r.after.get("timeouts"); a.script == "expirable.take" || a.script == "expirable.count" {
		left := 0
		for i := 1; swept != nil && i < len(swept.content); i += 2 {
			if number(swept.content[i]) <= now {
				left++
			}
		}
		switch {
		case left > 0 && r.after.get("free") != nil:
			return "permits whose time is over are still given"
		case over > 0 && free > 0 && len(r.told) == 0:
			return "permits are free again, and nobody is told"
		}
	}
	switch a.script {
	case "expirable.count":
		if fmt.Sprint(r.reply) != fmt.Sprint([]any{free, given}) {
			return fmt.Sprintf("%d are free and %d given", free, given)
		}
	case "expirable.release":
		live := int64(0)
		for _, id := range a.args[2:] {
			if score := s.store.field("timeouts", id); score != "" && number(score) > now {
				live++
			}
			if r.after.field("timeouts", id) != "" {
				return "it is given still"
			}
		}
		others := int64(0)
		if len(r.told) > 0 {
			others = int64(s.others)
		}
		if fmt.Sprint(r.reply) != fmt.Sprint([]any{live, others}) {
			return fmt.Sprintf("%d of them were live, and %d others are told", live, others)
		}
	case "expirable.renew":
		before, after := s.store.field("timeouts", a.args[0]), r.after.field("timeouts", a.args[0])
		live := before != "" && number(before) > now
		if renewed(r.reply) != live || live && number(after) != max(number(before), now+number(a.args[1])) {
			return "that is not so, or not long enough"
		}
		if r.after.ttl("timeouts") != s.store.ttl("timeouts") {
			return "what is given does not last as it did"
		}
	case "expirable.take":
		return judgeTake(s, a, r, now, free)
	}
	return ""
}

// judgeTake looks at the answer to those who ask for permits.
func judgeTake(s scene, a *ask, r *result, now, free int64) string {
	if s.store.get("free") == nil {
		if first(r.reply) != -1 {
			return "nobody has ever given it permits"
		}
		return ""
	}
	n := first(r.reply)
	for i := 0; 4+3*i <= len(a.args); i++ {
		switch score := r.after.field("timeouts", a.args[3+3*i]); {
		case int64(i) < n && (score == "" || number(score) < now+usual*tick):
			return "that one was not given, or not for long enough"
		case int64(i) == n && (score != "" || free > 0):
			return "that one was given, or could have been"
		}
	}
	soonest := int64(-1)
	if k := r.after.get("timeouts"); k != nil {
		if n > 0 && k.ttl != r.after.ttl("free") {
			return "what is given does not end with the semaphore"
		}
		for i := 1; i < len(k.content); i += 2 {
			if score := number(k.content[i]); score < 922337203685477 && (soonest < 0 || score-now < soonest) {
				soonest = score - now
			}
		}
	}
	if r.reply.([]any)[1] != soonest {
		return fmt.Sprintf("the first of those given is over in %d ms", soonest)
	}
	return ""
}

func permitSearch(name string, ticks, sends int8, asks ...ask) *search {
	w := takesPermits(1, b1)
	w.name, w.args = "somebody", []string{"channel", usualMs, "1", stranger}
	return &search{
		name: "permits: " + name, unit: tick, ticks: ticks, sends: sends, asks: asks, minds: names[:], waits: []ask{w}, longest: longer * tick,
		listens:   func(channel string) bool { return channel == "channel" },
		listeners: waiting,
		wrong:     wrongPermits, calm: calmPermits, inspect: judgePermits,
		stays: func(string) bool { return true },
		seed:  []key{{name: "free", kind: "string", content: []string{strconv.Itoa(permits)}}},
	}
}

func permitSearches() []*search {
	none := permitSearch("none", 1, 2, takesPermits(1, a1), countsPermits())
	none.seed = nil
	ending := permitSearch("that end", 2, 3, takesPermits(1, a1), renewsPermit(a1, 1), takesPermits(1, b1), releasesPermits(1, a1))
	ending.seed[0].ttl = longer * tick
	forever := permitSearch("for ever", 2, 3, takesPermits(1, a1), takesPermits(1, b1), releasesPermits(1, a1))
	forever.seed = []key{
		{name: "free", kind: "string", content: []string{"1"}},
		{name: "timeouts", kind: "zset", content: []string{"for ever", "922337203685477"}},
	}
	taken := permitSearch("all for ever", 1, 2, takesPermits(1, a1))
	taken.seed = []key{
		{name: "free", kind: "string", content: []string{"0"}},
		{name: "timeouts", kind: "zset", content: []string{"and ever", "922337203685477", "for ever", "922337203685477"}},
	}
	outlived := permitSearch("for longer than a TTL that is left", 1, 2, takesPermits(1, a1))
	outlived.seed = []key{forever.seed[0], forever.seed[1]}
	outlived.seed[1].ttl = longest * tick
	return []*search{
		none, ending, forever, taken, outlived,
		permitSearch("one of two", 2, 2, takesPermits(1, a1), releasesPermits(1, a1, a2)),
		permitSearch("in line", 4, 3, takesPermits(2, a1, a2), releasesPermits(1, a1, a2), takesPermits(1, b1), countsPermits()),
		permitSearch("renewed", 4, 4, takesPermits(1, a1), renewsPermit(a1, longer), takesPermits(1, b1, b2), renewsPermit(b1, 1), releasesPermits(2, b1)),
		permitSearch("beside Redisson", 4, 4, takesPermits(1, a1), takesPermits(1, b1), redissonTakesPermit(), redissonReleasesPermit(), releasesPermits(1, b1), countsPermits()),
	}
}

func TestSearchPermits(t *testing.T) { explore(t, 334_991, permitSearches()) }
