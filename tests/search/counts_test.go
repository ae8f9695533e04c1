package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// resent is what a client knows that has sent a request again: it does not hear
// the first attempt's answer any more.
const resent uint8 = 2

// counts are the asks of a client's request of that number about a latch or a
// limiter, and of the same again.
func (q session) counts(number int32, script string, keys []string, args ...string) []ask {
	key := "session of " + names[q.who]
	open := func(s *state) bool { return s.minds[q.who].phase == asking && s.minds[q.who].token == number }
	first := ask{
		name: fmt.Sprintf("%s's request %d to %s", names[q.who], number, script), times: 1, runs: 1, script: script,
		keys: append(slices.Clone(keys), key), args: append([]string{strconv.Itoa(int(number)), keptMs}, args...),
		may:     func(s *state) bool { m := s.minds[q.who]; return m.phase != asking && m.token == number-1 },
		sending: func(s *state) { s.minds[q.who] = mind{phase: asking, token: number} },
		open:    func(s *state) bool { return open(s) && s.minds[q.who].what != resent },
		hears: func(s *state, _ int16, r *result) string {
			told, ok := r.reply.([]any)
			if !ok || len(told) != 2 || told[0] != int64(number) {
				return "that is not the answer to this request"
			}
			s.minds[q.who].phase = over
			return ""
		},
	}
	again := first
	again.name, again.times, again.may, again.open = first.name+", once more", 2, open, open
	again.sending = func(s *state) { s.minds[q.who].what = resent }
	again.args = slices.Clone(first.args)
	again.args[0] = "-" + again.args[0]
	return []ask{first, again}
}

var (
	latchKey = []string{"latch"}
	rateKeys = []string{"limiter", "value", "permits", "own value", "own permits", "recount", "own recount"}
)

func (q session) setsLatch(number int32) []ask {
	return q.counts(number, "latch.set", latchKey, "2", "channel")
}

func (q session) countsDown(number int32, callers string) []ask {
	return q.counts(number, "latch.down", latchKey, "channel", callers)
}

func (q session) deletesLatch(number int32) []ask {
	return q.counts(number, "latch.delete", latchKey, "channel")
}

// setsRate is sent by q for the permits that are given in a second; for keep, in
// ms, the limiter is kept.
func (q session) setsRate(number int32, permits, keep string) []ask {
	return q.counts(number, "ratelimiter.tryset", rateKeys, permits, "1000", "0", keep)
}

// changes is a request about how many permits there are.
func (q session) changes(number int32, script string, args ...string) []ask {
	keys := permitKeys
	if !slices.Contains([]string{"expirable.try_set", "expirable.set", "expirable.add", "expirable.delete", "expirable.give_back"}, script) {
		keys = keys[:1]
	}
	return q.counts(number, script, keys, args...)
}

func (q session) deletesLimiter(number int32) []ask {
	return q.counts(number, "ratelimiter.delete", rateKeys)
}

// remembered returns the number and the answer that a session's key has; "-1":
// none.
func remembered(s *store, key string) (n int64, answer string) {
	k := s.get(key)
	if k == nil {
		return -1, ""
	}
	_, _ = fmt.Sscan(k.content[0], &n, &answer)
	return n, answer
}

// judgeCount looks whether a request was executed once, and did what it is for.
func judgeCount(x *explorer, s scene, a *ask, sent int16, r *result) string {
	key, n := a.keys[len(a.keys)-1], number(a.args[0])
	again := n < 0
	n = max(n, -n)
	had, answered := remembered(s.store, key)
	has, now := remembered(r.after, key)
	told, ok := r.reply.([]any)
	if !ok || len(told) != 2 {
		return "that is no answer"
	}
	said := "-"
	if told[1] != nil {
		said = fmt.Sprint(told[1])
	}
	fleeting := a.script == "ratelimiter.tryset"
	done := had < n && (!again || had >= 0 || fleeting) // by this execution
	switch {
	case has >= 0 && r.after.ttl(key) != kept*tick && (!fleeting || again || had >= n):
		return "the answer is not kept for so long"
	case fleeting && !again && has != had:
		return "a key is left"
	case has < n && (!fleeting || again), has >= n && (told[0] != has || said != now), has < n && told[0] != n:
		return "it is not remembered so"
	case had >= n && (has != had || now != answered):
		return "it is remembered anew"
	case !done && had < n && now != "-":
		return "it is answered, and was it executed?"
	}
	object := a.keys[0]
	before, after := s.store.get(object), r.after.get(object)
	if !done {
		if fmt.Sprint(before) != fmt.Sprint(after) || len(r.told) > 0 {
			return "it is executed again"
		}
		return ""
	}
	if a.script == "expirable.give_back" {
		if bad := halfway(x, s, a, sent); bad != "" {
			return bad
		}
	}
	want, tell, answer := effect(s.store, a, again)
	if before != nil && (a.script == "latch.down" || a.script == "latch.delete" || a.script == "expirable.give_back" && answer > 0) {
		if err, fails := x.run(x.callOf(a, sent), s.store, s.now, 0, full).reply.(error); fails {
			return "with no memory left, the script fails: " + err.Error()
		}
	}
	var published []string
	for _, m := range r.told {
		published = append(published, m.text)
	}
	if is := contents(after); fmt.Sprint(is) != fmt.Sprint(want) || !slices.Equal(published, tell) || told[1] != answer {
		return fmt.Sprintf("want %v, told %v, and the answer %d", want, tell, answer)
	}
	begins := before == nil && slices.Contains([]string{"expirable.try_set", "expirable.set", "expirable.add", "ratelimiter.tryset"}, a.script)
	for _, other := range a.keys[1 : len(a.keys)-1] {
		if (begins || strings.HasSuffix(a.script, "delete")) && r.after.get(other) != nil {
			return "something of it is left: " + other
		}
	}
	return ""
}

// effect returns what a request has to make of its object, what it has to tell,
// and what to answer.
func effect(at *store, a *ask, again bool) (want *stored, tell []string, answer int64) {
	want = contents(at.get(a.keys[0]))
	was, arg := int64(0), func(i int) int64 { return number(a.args[i]) }
	if want != nil && len(want.content) == 1 {
		was = number(want.content[0])
	}
	becomes := func(n int64) {
		if want == nil {
			want = &stored{}
		}
		want = &stored{[]string{strconv.FormatInt(n, 10)}, want.ttl}
	}
	say := func(n int64) { tell = []string{strconv.FormatInt(n, 10)} }
	switch a.script {
	case "latch.set":
		if was <= 0 {
			want, answer = nil, 1
			becomes(arg(2))
			say(1)
		}
	case "latch.down":
		switch left := was - arg(3); {
		case was <= 0:
			want, answer = nil, 2
		case left > 0:
			becomes(left)
		default:
			want, answer = nil, 1
			say(0)
		}
	case "semaphore.add":
		if want != nil || a.args[4] == "1" {
			answer = 1
			becomes(was + arg(3))
			say(max(0, was+arg(3)))
		}
	case "semaphore.set", "expirable.try_set":
		if want == nil {
			answer = 1
			becomes(arg(3))
			say(arg(3))
			if len(a.args) > 4 {
				want.ttl = arg(4)
			}
		}
	case "semaphore.drain":
		if answer = was; want != nil {
			becomes(0)
		}
	case "expirable.add":
		answer = was + arg(3)
		becomes(answer)
		if arg(3) > 0 {
			say(arg(3))
		}
	case "expirable.set":
		_, given := counted(at)
		if answer = arg(3) - was - given; want == nil {
			answer = arg(3)
		}
		if answer != 0 || want == nil {
			say(arg(3))
			becomes(was + answer)
		}
	case "expirable.give_back":
		over, back, bits := goesBack(at, a.args[3:])
		if answer = bits; over > 0 && was+over > 0 {
			say(was + over)
		}
		if back > 0 {
			tell = append(tell, strconv.FormatInt(back, 10))
		}
		if over+back > 0 {
			becomes(was + over + back)
		}
	case "ratelimiter.tryset":
		mine := &stored{content: []string{"interval", a.args[3], "keepAliveTime", a.args[5], "rate", a.args[2], "type", a.args[4]}, ttl: arg(5)}
		switch {
		case at.field(a.keys[0], "type") == "":
			want, answer = mine, 1
		case again && slices.Equal(allFields(want.content), mine.content):
			answer = 1
		}
	default: // deletes
		if want != nil {
			want, answer = nil, 1
			if a.script == "latch.delete" {
				say(0)
			}
		}
	}
	return want, tell, answer
}

// goesBack returns how many permits are over, how many are to be given back by
// those who say so, and which of these can give back what they say.
func goesBack(at *store, args []string) (over, back, bits int64) {
	if at.get("free") == nil || at.get("timeouts") == nil {
		return 0, 0, 0
	}
	live := map[string]bool{}
	for given := range slices.Chunk(at.get("timeouts").content, 2) {
		live[given[0]] = number(given[1]) > epoch
		over += int64(b2i(!live[given[0]]))
	}
	for bit := int64(1); len(args) > 0; bit *= 2 {
		n := int(number(args[0]))
		those := args[1 : 1+n]
		args = args[1+n:]
		if slices.ContainsFunc(those, func(id string) bool { return !live[id] }) {
			continue
		}
		for _, id := range those {
			live[id] = false
		}
		back, bits = back+int64(n), bits+bit
	}
	return over, back, bits
}

// stored is what a key has, without its name.
type stored struct {
	content []string
	ttl     int64
}

func contents(k *key) *stored {
	if k == nil {
		return nil
	}
	return &stored{k.content, k.ttl}
}

// allFields returns the fields of a limiter's hash, with those that Redisson's has
// not.
func allFields(content []string) []string {
	if !slices.Contains(content, "keepAliveTime") {
		return slices.Insert(slices.Clone(content), 2, "keepAliveTime", "0")
	}
	return content
}

func countSearch(name string, sends int8, seed []key, asks ...[]ask) *search {
	return &search{
		name: "counts: " + name, unit: tick, ticks: kept, sends: sends, latest: longest, asks: slices.Concat(asks...), minds: names[:],
		longest: kept * tick, listens: func(string) bool { return true },
		inspect: judgeCount,
		wrong:   func(*state) string { return "" },
		calm:    func(*explorer, *store, int16) string { return "" },
		stays: func(name string) bool {
			return slices.Contains(rateKeys, name) || name == "latch" || slices.Contains(permitKeys, name)
		},
		seed: seed,
	}
}

func countSearches() []*search {
	a, b := session{a1}, session{b1}
	latch := func(n string) []key { return []key{{name: "latch", kind: "string", content: []string{n}}} }
	free := func(n string, ttl int64) []key {
		return []key{{name: "free", kind: "string", content: []string{n}, ttl: ttl}}
	}
	given := append(free("3", 0), key{name: "timeouts", kind: "zset", content: []string{"for ever", "922337203685477", "and ever", "922337203685477"}})
	ended := append(free("0", 0), key{name: "timeouts", kind: "zset", content: []string{"and ever", "922337203685477", "for ever", "922337203685477", "long ago", "1"}})
	past := append(free("0", 0), key{name: "timeouts", kind: "zset", content: []string{"long ago", "1"}})
	limiter := func(ttl int64, content ...string) []key {
		return []key{{name: "limiter", kind: "hash", content: content, ttl: ttl}}
	}
	late := countSearch("a rate and a late attempt", 5, nil, a.setsRate(1, "5", "0"), b.deletesLimiter(1))
	late.recalls = func(s *state, r *result) string {
		if s.store.get("limiter") == nil && r.after.get("limiter") != nil && s.minds[a1].phase == over {
			return "it is set again, late"
		}
		return ""
	}
	other := func(name string) key { return key{name: name, kind: "hash", content: []string{"what", "else"}} }
	var state []key
	for _, name := range slices.Sorted(slices.Values(rateKeys[1:])) {
		state = append(state, key{name: name, kind: "string", content: []string{"x"}})
	}
	return []*search{
		late,
		refuses("WRONGTYPE", other("free"), a.changes(1, "semaphore.delete")[0], a.changes(1, "semaphore.drain")[0], a.changes(1, "semaphore.add", "channel", "1", "1")[0]),
		refuses("WRONGTYPE", other("free"), a.changes(1, "expirable.delete")[0]),
		refuses("WRONGTYPE", other("latch"), a.deletesLatch(1)[0], a.countsDown(1, "1")[0], a.setsLatch(1)[0]),
		refuses("WRONGTYPE", other("limiter"), a.setsRate(1, "5", "0")[0], a.deletesLimiter(1)[0]),
		countSearch("down", 4, latch("3"), a.countsDown(1, "2"), a.countsDown(2, "1"), b.countsDown(1, "1")[:1]),
		countSearch("at none", 3, latch("0"), a.countsDown(1, "1"), b.setsLatch(1)),
		countSearch("set already", 3, latch("1"), a.setsLatch(1), b.countsDown(1, "1")[:1]),
		countSearch("set and deleted", 4, nil, a.setsLatch(1), a.deletesLatch(2), b.countsDown(1, "2")[:1]),
		countSearch("a rate and another", 3, limiter(0, "interval", "1000", "rate", "5", "type", "0"), a.setsRate(1, "5", "0"), b.setsRate(1, "6", "2000")),
		countSearch("a rate that ends", 3, state, a.setsRate(1, "5", "2000"), a.deletesLimiter(2)[:1]),
		countSearch("a limiter with all", 2, append(limiter(0, "interval", "1000", "rate", "5", "type", "0"), state...), a.deletesLimiter(1)),
		countSearch("permits that end", 4, free("2", longest*tick), a.changes(1, "semaphore.drain"), b.changes(1, "semaphore.add", "channel", "-3", "0")[:1], a.changes(2, "semaphore.add", "channel", "2", "1")[:1]),
		countSearch("no permits", 4, nil, a.changes(1, "semaphore.set", "channel", "2", "2000"), a.changes(2, "semaphore.delete"), b.changes(1, "semaphore.add", "channel", "1", "0")[:1]),
		countSearch("no permits yet", 3, nil, a.changes(1, "semaphore.add", "channel", "1", "1"), b.changes(1, "semaphore.drain")[:1], b.changes(2, "semaphore.set", "channel", "2", "0")[:1]),
		countSearch("permits with leases", 4, given, a.changes(1, "expirable.set", "channel", "1"), a.changes(2, "expirable.add", "channel", "2"), b.changes(1, "expirable.set", "channel", "5")[:1]),
		countSearch("none but an earlier one's with leases", 2, given[1:], a.changes(1, "expirable.try_set", "channel", "2")[:1], b.changes(1, "expirable.set", "channel", "3")[:1]),
		countSearch("an earlier one's with leases, and more", 2, given[1:], a.changes(1, "expirable.add", "channel", "1")[:1]),
		countSearch("none with leases", 4, nil, a.changes(1, "expirable.try_set", "channel", "2"), a.changes(2, "expirable.delete"), b.changes(1, "expirable.set", "channel", "0")[:1], b.changes(2, "expirable.add", "channel", "-1")[:1]),
		countSearch("given back", 4, given, a.changes(1, "expirable.give_back", "channel", "1", "for ever", "2", "and ever", "nobody's", "1", "for ever"), b.changes(1, "expirable.give_back", "channel", "2", "for ever", "and ever")[:1], b.changes(2, "expirable.give_back", "channel", "1", "and ever", "1", "nobody's")[:1]),
		countSearch("given back, and others are over", 2, ended, a.changes(1, "expirable.give_back", "channel", "1", "long ago", "2", "for ever", "and ever")),
		countSearch("given back, and all are over", 2, past, a.changes(1, "expirable.give_back", "channel", "1", "long ago")),
		countSearch("given back, to an earlier one", 1, given[1:], a.changes(1, "expirable.give_back", "channel", "1", "for ever")[:1]),
		countSearch("all of it goes", 2, given, a.changes(1, "expirable.delete")),
		countSearch("half a limiter", 2, limiter(1000, "rate", "7"), a.setsRate(1, "5", "0")),
	}
}

func TestSearchCounts(t *testing.T) { explore(t, 110_053, countSearches()) }
