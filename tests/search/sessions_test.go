package search

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// A session's key is kept for so many ticks, which is longer than a request can be
// in flight.
const (
	kept    = 3
	keptMs  = "3000"
	longest = 2
)

// lost is what a client knows of a request whose outcome nobody can tell any more.
const lost uint8 = 1

// A session is a client's way to a semaphore with one permit. Its requests go one
// by one; each has a number, and one that is sent again has a minus before it. A
// mind's token is the number of its last request.
type session struct{ who int }

// exchange are the asks of one request, and of the same again.
func (q session) exchange(number int32, name string, may func(m mind) bool, give, turn string, wants ...string) []ask {
	key := "session of " + names[q.who]
	open := func(s *state) bool { return s.minds[q.who].phase == asking && s.minds[q.who].token == number }
	first := ask{
		name: names[q.who] + " " + name, times: 1, runs: 1, script: "semaphore.exchange", keys: []string{"semaphore", key},
		args: slices.Concat([]string{strconv.Itoa(int(number)), keptMs, "channel", give, turn, own}, wants),
		may:  func(s *state) bool { return s.minds[q.who].what != lost && may(s.minds[q.who]) },
		sending: func(s *state) {
			s.minds[q.who] = mind{phase: asking, token: number}
		},
		open: open,
		hears: func(s *state, _ int16, r *result) string {
			m := &s.minds[q.who]
			told, ok := r.reply.([]any)
			if !ok || len(told) != 2 || told[0] != int64(number) {
				return "that is not the answer to this request"
			}
			switch n, known := told[1].(int64); {
			case !known:
				m.phase, m.what = over, lost
			case n > 0:
				m.phase, m.until = has, 100
			case wants != nil:
				m.phase = refused
			default:
				m.phase = over
			}
			return ""
		},
	}
	first.holder = give != "0"
	again := first
	again.holder = false // of a session that it does not know it has to take a note
	again.name, again.times, again.may, again.sending = first.name+", once more", 2, open, nil
	again.args = slices.Clone(first.args)
	again.args[0] = "-" + again.args[0]
	return []ask{first, again}
}

func (q session) takesPermit() []ask {
	return q.exchange(1, "wants a permit", func(m mind) bool { return m.phase == idle }, "0", "0", "1")
}

func (q session) givesPermit() []ask {
	return q.exchange(2, "gives its permit back", func(m mind) bool { return m.phase == has && m.token == 1 }, "1", "0")
}

func (q session) gives(turn string) []ask {
	return q.exchange(2, "gives its permit back and wants one ("+turn+")", func(m mind) bool { return m.phase == has && m.token == 1 }, "1", turn, "1")
}

// wantsMore asks for what there is not, after something that there is.
func (q session) wantsMore() []ask {
	return q.exchange(1, "wants a permit, then two", func(m mind) bool { return m.phase == idle }, "0", "0", "1", "2")
}

func freePermits(s *store) int64 {
	if k := s.get("semaphore"); k != nil {
		return number(k.content[0])
	}
	return 0
}

func wrongExchange(s *state) string {
	held, settled := int64(0), true
	for _, m := range s.minds {
		if m.phase == has {
			held++
		}
		settled = settled && m.phase != asking && m.what != lost
	}
	switch free := freePermits(s.store); {
	case free < 0, free+held > 1:
		return fmt.Sprintf("there is one permit, %d are free and %d held", free, held)
	case settled && free+held != 1:
		return "the permit is lost"
	}
	return ""
}

// judgeExchange looks at what was done.
func judgeExchange(x *explorer, s scene, a *ask, _ int16, r *result) string {
	before, after := freePermits(s.store), freePermits(r.after)
	told, ok := r.reply.([]any)
	if !ok || len(told) != 2 {
		return "that is no answer"
	}
	if key := r.after.get(a.keys[1]); key == nil || key.ttl != kept*tick {
		return "the answer is not remembered"
	}
	if was := s.store.get(a.keys[1]); was != nil && was.content[0] == r.after.get(a.keys[1]).content[0] {
		if before != after {
			return "it is executed again"
		}
		return ""
	}
	n, known := told[1].(int64)
	if !known {
		return ""
	}
	if s.store.get("semaphore") == nil {
		if n != -1<<31 || r.after.get("semaphore") != nil {
			return "nobody is told that there is no semaphore"
		}
		return ""
	}
	wants, others := a.args[6:], int64(s.others)
	switch {
	case a.args[4] == "2" && others == 0:
		others = 1
	case a.args[4] == "0" && len(wants) > 0:
		others = 0
	}
	if others != max(0, -n) {
		return fmt.Sprintf("it is the turn of %d others", others)
	}
	left := before + number(a.args[3])
	for _, want := range wants[:max(0, n)] {
		left -= number(want)
	}
	if left != after || n >= 0 && int(n) < len(wants) && number(wants[n]) <= left {
		return fmt.Sprintf("%d are free, and it was granted %d wants", after, n)
	}
	if a.args[3] != "0" && !slices.Contains(r.told, message{"channel", strconv.Itoa(int(after))}) {
		return "how many are free is not told"
	}
	return ""
}

func (q session) search(name string, sends int8, asks ...[]ask) *search {
	w := session{b2}.exchange(1, "", nil, "0", "0", "1")[0]
	w.name = "somebody"
	return &search{
		name: "sessions: " + name, unit: tick, ticks: kept + 2, sends: sends, latest: longest, asks: slices.Concat(asks...), minds: names[:],
		waits: []ask{w}, longest: kept * tick, listens: func(string) bool { return true },
		listeners: waiting,
		wrong:     wrongExchange, inspect: judgeExchange,
		calm:  func(*explorer, *store, int16) string { return "" },
		stays: func(name string) bool { return name == "semaphore" },
		seed:  []key{{name: "semaphore", kind: "string", content: []string{"1"}}},
		grant: func(reply any) bool { list, ok := reply.([]any); return ok && list[1] == int64(1) },
	}
}

// withoutSemaphore is of those who want permits of a semaphore that nobody has set
// up.
func (q session) withoutSemaphore() *search {
	s := q.search("no semaphore", 4, q.takesPermit())
	s.seed, s.waits, s.wrong = nil, nil, func(*state) string { return "" }
	return s
}

func sessionSearches() []*search {
	a, b := session{a1}, session{b1}
	return []*search{
		refuses("is not what a session of redlatch is", key{name: "session of a1", kind: "string", content: []string{"x"}}, a.takesPermit()[0]),
		a.search("one", 5, a.takesPermit(), a.givesPermit()),
		a.search("two", 4, a.takesPermit(), a.givesPermit(), b.takesPermit()[:1]),
		a.search("turn", 4, a.takesPermit()[:1], a.gives("1"), b.takesPermit()[:1]),
		a.search("turn of whoever", 4, a.takesPermit()[:1], a.gives("2"), b.takesPermit()[:1]),
		a.search("no turn", 4, a.takesPermit()[:1], a.gives("0"), b.takesPermit()[:1]),
		a.search("too much", 4, a.wantsMore(), a.givesPermit()),
		a.withoutSemaphore(),
	}
}

func TestSearchSessions(t *testing.T) { explore(t, 46_806, sessionSearches()) }
