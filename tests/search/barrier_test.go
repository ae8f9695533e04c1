package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A tick of a barrier's searches, in ms. A client is believed to live for two, and
// an end is remembered for two.
const (
	halfMinute = 30_000
	livesMs    = 60_000
	endMs      = 60_000
	useMs      = 600_000
)

// What a caller knows in the end; and while it has no answer, that it has asked
// twice.
const (
	went uint8 = 1 + iota
	broke
	untold     // nobody knows any more
	left       // itself, and it does not know what became of that
	surelyLeft // and the server has heard it
	unanswered
)

// A meeting is a barrier's search: which generation each caller names, and how
// many parties it wants. An id is for one try in one generation. One resets the
// barrier, whose mind's token is the place in names of the generation that it
// names.
type meeting struct {
	tries   map[int]string
	parties map[int]string // "2" of who is not in it
}

var meeters = []string{a1: "a1", a2: "a2", b1: "b1", j1: "who resets", b2: "b2"}

func barrierKeys(generation string) []string {
	return []string{"barrier", "record " + generation, "alive", "ended"}
}

func client(id string) string { return id[:36] }

func (b meeting) number(who int) string {
	if n := b.parties[who]; n != "" {
		return n
	}
	return "2"
}

// list returns an answer's texts, and its last number.
func list(reply any) (texts []string, index int64) {
	all, _ := reply.([]any)
	for _, r := range all {
		if n, ok := r.(int64); ok {
			index = n
			continue
		}
		texts = append(texts, fmt.Sprint(r))
	}
	return append(texts, "", ""), index
}

func (b meeting) arrives(who int, times int8) ask {
	generation := b.tries[who]
	open := func(s *state) bool { return s.minds[who].phase == asking }
	return ask{
		name: meeters[who] + " arrives in " + generation, times: times, runs: 2, script: "barrier.arrive", keys: barrierKeys(generation),
		args: []string{generation, ids[who], client(ids[who]), b.number(who), strconv.Itoa(livesMs), "channel"},
		may: func(s *state) bool {
			known := generation == "" || generationOf(s.store) == generation || endOf(s.store, generation) != nil
			return s.minds[who].phase == asking || s.minds[who].phase == idle && known
		},
		sending: func(s *state) {
			if m := &s.minds[who]; m.phase == asking {
				m.what = unanswered
			} else {
				m.phase = asking
			}
		},
		open: open,
		hears: func(s *state, _ int16, r *result) string {
			m := &s.minds[who]
			told, index := list(r.reply)
			switch told[0] {
			case "waits":
				*m = mind{phase: has, until: 1000, token: int32(index) + 1}
			case "tripped":
				*m = mind{phase: over, what: went, token: int32(index) + 1}
			case "left", "dead", "reset":
				*m = mind{phase: over, what: broke}
			case "forgotten":
				if m.what == unanswered {
					*m = mind{phase: over, what: untold}
					break
				}
				*m = mind{phase: refused}
			case "current", "parties":
				*m = mind{phase: refused}
			default:
				return "that is no answer"
			}
			return ""
		},
	}
}

func (b meeting) leaves(times int8, who ...int) ask {
	generation, args := b.tries[who[0]], []string{b.tries[who[0]], "channel"}
	for _, w := range who {
		args = append(args, ids[w])
	}
	return ask{
		name: meeters[who[0]] + " leaves " + generation, times: times, runs: 2, script: "barrier.leave", keys: barrierKeys(generation), args: args,
		may: func(s *state) bool {
			return all(s, who, func(m mind) bool { return m.phase == asking || m.phase == has || m.what == left })
		},
		sending: func(s *state) {
			for _, w := range who {
				s.minds[w] = mind{phase: over, what: left}
			}
		},
		open: func(s *state) bool { return s.minds[who[0]].what == left },
		hears: func(s *state, _ int16, _ *result) string {
			for _, w := range who {
				s.minds[w].what = surelyLeft
			}
			return ""
		},
	}
}

func (b meeting) polls(who int, times int8) ask {
	generation := b.tries[who]
	return ask{
		name: meeters[who] + " polls " + generation, times: times, runs: 1, script: "barrier.poll", keys: barrierKeys(generation),
		args: []string{generation, client(ids[who]), strconv.Itoa(livesMs), "channel"},
		may:  func(s *state) bool { return s.minds[who].phase == has },
		open: func(s *state) bool { return s.minds[who].phase == has },
		hears: func(s *state, _ int16, r *result) string {
			m := &s.minds[who]
			switch told, _ := list(r.reply); told[0] {
			case "waits":
			case "tripped":
				*m = mind{phase: over, what: went, token: m.token}
			case "left", "dead", "reset":
				*m = mind{phase: over, what: broke}
			case "gone":
				*m = mind{phase: over, what: untold}
			default:
				return "that is no answer"
			}
			return ""
		},
	}
}

// resets are the asks of one reset, which first names the first of these
// generations, and then the one that it is told.
func (b meeting) resets(times int8, generations ...string) []ask {
	var asks []ask
	for i, generation := range generations {
		asks = append(asks, ask{
			name: "reset of " + generation, times: times, runs: 2, script: "barrier.reset", keys: barrierKeys(generation),
			args:    []string{generation, ids[j1], "channel", b.number(j1)},
			may:     func(s *state) bool { return s.minds[j1].phase <= asking && s.minds[j1].token == int32(i) },
			sending: func(s *state) { s.minds[j1].phase = asking },
			open:    func(s *state) bool { return s.minds[j1].phase == asking && s.minds[j1].token == int32(i) },
			hears: func(s *state, _ int16, r *result) string {
				m := &s.minds[j1]
				if r.reply == "done" {
					*m = mind{phase: over}
					return ""
				}
				if r.reply != generationOf(s.store) {
					return "that generation does not gather"
				}
				at := slices.Index(generations, fmt.Sprint(r.reply))
				if m.token = int32(at); at < 0 {
					*m = mind{phase: refused} // that is another story
				}
				return ""
			},
		})
	}
	return asks
}

// An end is how a generation has ended.
type end struct {
	how, who string
	in       map[string]string // the index of each caller
}

// endOf returns how a generation has ended, if that is remembered.
func endOf(s *store, generation string) *end {
	k := s.get("ended")
	if k == nil {
		return nil
	}
	for i := 1; i < len(k.content); i += 2 {
		text := strings.Fields(k.content[i])
		if text[0] != generation {
			continue
		}
		e := &end{how: text[1], who: text[2], in: map[string]string{}}
		for _, in := range text[3:] {
			id, index, _ := strings.Cut(in, "=")
			e.in[id] = index
		}
		return e
	}
	return nil
}

// present returns the index of each caller who has arrived in a generation that
// gathers.
func present(s *store, generation string) map[string]string {
	in := map[string]string{}
	if k := s.get("record " + generation); k != nil {
		for i := 0; i < len(k.content); i += 2 {
			if k.content[i] != "arrived" && k.content[i+1] != "gone" {
				in[k.content[i]] = k.content[i+1]
			}
		}
	}
	return in
}

// someDead says whether a client in the generation that gathers has not been heard
// for too long.
func someDead(s *store, now int64) bool {
	k := s.get("alive")
	for i := 1; k != nil && i < len(k.content); i += 2 {
		if number(k.content[i]) <= now {
			return true
		}
	}
	return false
}

func generationOf(s *store) string { return s.field("barrier", "generation") }

// wrong looks whether all agree.
func (b meeting) wrong(s *state) string {
	gathers := generationOf(s.store)
	for _, k := range s.store.keys {
		if generation, ok := strings.CutPrefix(k.name, "record "); ok && generation != gathers {
			return "of a generation that has ended a record is left"
		}
	}
	in := present(s.store, gathers)
	if (len(in) > 0) != (s.store.get("alive") != nil) {
		return "of who has arrived it is not known whether he lives, or the other way round"
	}
	for i, generation := range b.tries {
		m := s.minds[i]
		e := endOf(s.store, generation)
		index, counted := "", false
		if e != nil {
			index, counted = e.in[ids[i]]
		} else if generation == gathers {
			index, counted = in[ids[i]]
		}
		switch {
		case m.phase == refused && counted:
			return meeters[i] + " was told that it is not counted, and is"
		case m.phase == has && (e != nil || generation == gathers) && (!counted || index != strconv.Itoa(int(m.token-1))):
			return meeters[i] + " waits, and is not counted"
		case m.what == went && e != nil && (e.how != "tripped" || index != strconv.Itoa(int(m.token-1))):
			return meeters[i] + " was told that its generation went"
		case m.phase == over && m.what == broke && e != nil && e.how == "tripped":
			return meeters[i] + " was told that its generation is broken, and it went"
		}
		for j, other := range b.tries {
			n := s.minds[j]
			if i < j && generation == other && m.what == went && n.phase == over && (n.what == broke || n.what == went && n.token == m.token) {
				return "they do not agree how their generation has ended"
			}
		}
	}
	return ""
}

// judge looks at what was done.
func (b meeting) judge(_ *explorer, s scene, a *ask, _ int16, r *result) string {
	now := int64(epoch) + int64(s.now)*halfMinute
	was, is := generationOf(s.store), generationOf(r.after)
	before := present(s.store, was)
	if is == "" {
		return "there is no barrier"
	}
	parties := s.store.field("barrier", "parties")
	switch {
	case was == "":
		want := map[string]string{"barrier.arrive": a.args[1], "barrier.reset": a.args[1]}[a.script] + ":1"
		if is != want || r.after.ttl("barrier") != useMs || a.script == "barrier.arrive" && r.after.field("barrier", "parties") != a.args[3] {
			return "that is not how a barrier is made"
		}
	case is != was:
		if bad := b.ends(s, a, r, was, before, now); bad != "" {
			return bad
		}
	case len(r.told) > 0:
		return "nothing has ended, and somebody is told that"
	}
	switch a.script {
	case "barrier.arrive":
		return judgeArrival(s, a, r, before, parties, now)
	case "barrier.poll":
		told, _ := list(r.reply)
		e := endOf(r.after, a.args[0])
		switch {
		case told[0] == "waits":
			if is != a.args[0] || someDead(s.store, now) || r.after.field("alive", a.args[1]) != strconv.FormatInt(now+livesMs, 10) || !used(r.after, is) {
				return "it does not gather, or not for long enough"
			}
		case told[0] == "gone":
			if e != nil || len(before) > 0 && was == a.args[0] {
				return "it is there"
			}
		case e == nil || e.how != told[0] || e.who != told[1]:
			return "it has not ended so"
		}
	case "barrier.leave":
		if r.reply != int64(b2i(is != was)) {
			return "it says that it was broken, and it was not, or the other way round"
		}
		in := func(id string) bool { return before[id] != "" }
		switch {
		case a.args[0] != was:
		case slices.ContainsFunc(a.args[2:], in):
			if is == was {
				return "who has arrived has left, and breaks nothing"
			}
		case slices.ContainsFunc(a.args[2:], func(id string) bool { return r.after.field("record "+is, id) != "gone" }):
			return "who has left could still arrive"
		case r.after.ttl("record "+is) != useMs:
			return "that is not remembered"
		}
	case "barrier.reset":
		if r.reply == "done" && was == a.args[0] && is == was && was[:strings.LastIndex(was, ":")] != a.args[1] {
			return "it is not done"
		}
		if is != was && r.after.field("barrier", "parties") != a.args[3] {
			return "another number of parties was wanted"
		}
	}
	return ""
}

// used says whether all that a generation has lasts as after a use.
func used(s *store, generation string) bool {
	return s.ttl("barrier") == useMs && s.ttl("alive") == useMs && s.ttl("record "+generation) == useMs
}

// ends looks at the end of a generation.
func (b meeting) ends(s scene, a *ask, r *result, was string, before map[string]string, now int64) string {
	e := endOf(r.after, was)
	switch {
	case e == nil:
		return "how it has ended is not remembered"
	case r.after.ttl("ended") != endMs || r.after.ttl("barrier") != useMs:
		return "that is kept for another time than is promised"
	case !slices.Contains(r.told, message{"channel", was}):
		return "it has ended, and nobody is told"
	case a.args[0] != was:
		return "it is not the generation that was named"
	}
	i := strings.LastIndex(was, ":")
	begun, n := was[:i], number(was[i+1:])+1
	late := someDead(s.store, now)
	switch e.how {
	case "tripped":
		if a.script != "barrier.arrive" || e.who != a.args[1] || late || fmt.Sprint(len(e.in)) != s.store.field("barrier", "parties") || len(before) != len(e.in)-1 || e.in[a.args[1]] != "0" {
			return "not all parties are there, or somebody is dead"
		}
	case "left":
		if a.script != "barrier.leave" || !slices.Contains(a.args[2:], e.who) || before[e.who] == "" {
			return "nobody has left"
		}
	case "dead":
		if score := s.store.field("alive", e.who); score == "" || number(score) > now {
			return "nobody is dead"
		}
	case "reset":
		if a.script != "barrier.reset" || e.who != a.args[1] || begun == e.who {
			return "it breaks a second generation"
		}
		begun = e.who
	}
	for id, index := range before {
		if e.in[id] != index {
			return id + " was in it"
		}
	}
	if e.how != "tripped" && len(e.in) != len(before) {
		return "somebody is in it who was not"
	}
	if is := generationOf(r.after); is != fmt.Sprintf("%s:%d", begun, n) {
		return "the next generation is " + is
	}
	return ""
}

// recalls looks at the end of a generation as those do who know what was before.
func (b meeting) recalls(s *state, r *result) string {
	was := generationOf(s.store)
	if was == "" || was == generationOf(r.after) {
		return ""
	}
	e := endOf(r.after, was)
	if e.how == "reset" && s.minds[j1].phase == over {
		return "it breaks a second generation"
	}
	for i, generation := range b.tries {
		if _, in := e.in[ids[i]]; in && generation == was && s.minds[i].what == surelyLeft {
			return meeters[i] + " has left before"
		}
	}
	return ""
}

// judgeArrival looks at the answer to one who arrives.
func judgeArrival(s scene, a *ask, r *result, before map[string]string, parties string, now int64) string {
	told, index := list(r.reply)
	id, named, is := a.args[1], a.args[0], generationOf(r.after)
	e, in := endOf(r.after, named), present(r.after, is)
	text := strconv.FormatInt(index, 10)
	if parties == "" {
		parties = a.args[3]
	}
	switch told[0] {
	case "waits":
		fresh := before[id] == ""
		switch {
		case is != named || in[id] != text || a.args[3] != parties:
			return "it is not counted so"
		case fresh && (index != number(parties)-int64(len(before))-1 || r.after.field("alive", a.args[2]) != strconv.FormatInt(now+livesMs, 10) || !used(r.after, is) || someDead(s.store, now)):
			return "it is counted wrongly, or not for long enough"
		case len(in) >= int(number(parties)):
			return "all are there, and it did not go"
		}
	case "current", "forgotten":
		counted := e != nil && e.in[id] != "" || in[id] != "" && is == named
		remembered := e != nil || is == named
		switch {
		case told[1] != is || counted || r.after.field("record "+is, id) != s.store.field("record "+is, id):
			return "that is not so"
		case remembered != (told[0] == "current"):
			return "whether it was counted is known, or not"
		case is == named && r.after.field("record "+is, id) != "gone":
			return "it could have been counted"
		}
	case "parties":
		if told[1] != parties || a.args[3] == parties {
			return "that is the right number"
		}
	default:
		if e == nil || e.how != told[0] || e.who != told[1] || e.in[id] != text {
			return "it has not ended so, for this one"
		}
	}
	if len(in) != len(before) && is == generationOf(s.store) && told[0] != "waits" {
		return "somebody is counted, and not told"
	}
	return ""
}

// calmBarrier lets so many others come as are missing: all go on together, and
// hear it. Or somebody has died: then all are told that.
func calmBarrier(x *explorer, at *store, now int16) string {
	generation := generationOf(at)
	if generation == "" {
		return ""
	}
	in, parties := present(at, generation), at.field("barrier", "parties")
	ms := int64(epoch) + int64(now)*halfMinute
	want := "tripped"
	if len(in) > 0 && someDead(at, ms) {
		want = "dead"
	}
	after := at
	for i := len(in); i < int(number(parties)); i++ {
		id := owner('d', i)
		after = x.do("barrier.arrive", after, now, barrierKeys(generation), generation, id, client(id), parties, strconv.Itoa(livesMs), "channel").after
	}
	for id := range in {
		told, _ := list(x.do("barrier.poll", after, now, barrierKeys(generation), generation, client(id), strconv.Itoa(livesMs), "channel").reply)
		if told[0] != want {
			return fmt.Sprintf("when all have come it is %s, and %s is told %q", want, id, told)
		}
	}
	if is := generationOf(after); is == generation || after.get("alive") != nil || after.get("record "+is) != nil {
		return "all have gone, and somebody is left"
	}
	return ""
}

func (b meeting) search(name string, ticks, sends int8, asks ...ask) *search {
	w := b.polls(a1, 1)
	w.name = "a1"
	return &search{
		name: "barrier: " + name, unit: halfMinute, ticks: ticks, sends: sends, asks: asks, minds: meeters, waits: []ask{w}, longest: useMs,
		listens: func(channel string) bool { return channel == "channel" },
		wrong:   b.wrong, inspect: b.judge, recalls: b.recalls, calm: calmBarrier,
		stays: func(string) bool { return false },
		grant: func(reply any) bool { told, _ := list(reply); return told[0] != "waits" },
		seed:  []key{{name: "barrier", kind: "hash", content: []string{"generation", "g:1", "parties", "2"}, ttl: useMs}},
	}
}

func barrierSearches() []*search {
	one := meeting{tries: map[int]string{a1: "g:1", a2: "g:1", b1: "g:1"}}
	two := meeting{tries: map[int]string{a1: "g:1", b1: "g:1", a2: "g:2"}}
	reset := meeting{tries: map[int]string{a1: "g:1", a2: ids[j1] + ":2"}, parties: map[int]string{j1: "3", a2: "3"}}
	made := meeting{tries: map[int]string{a1: ids[a1] + ":1", a2: "", b1: ids[j1] + ":1"}}
	other := meeting{tries: map[int]string{a1: "g:1", b1: "g:1", a2: "g:1"}, parties: map[int]string{b1: "3"}}
	three := meeting{tries: map[int]string{a1: "g:1", a2: "g:1", b1: "g:1"}, parties: map[int]string{a1: "3", a2: "3", b1: "3"}}

	none := made.search("none", 1, 3, append(made.resets(2, "", ids[a2]+":1"), made.arrives(a2, 2), made.arrives(b1, 1))...)
	none.seed = nil
	long := three.search("three", 2, 4, three.arrives(a1, 2), three.arrives(a2, 1), three.arrives(b1, 1), three.leaves(1, a1, a2))
	long.seed[0].content[3] = "3"
	slots := two.search("many", 1, 3, two.arrives(a1, 1), two.arrives(b1, 1), two.leaves(1, a1))
	slots.seed = append(slots.seed, key{name: "ended", kind: "hash", content: []string{"1", "g:-99 tripped x " + ids[a1] + "=0"}, ttl: endMs})
	return []*search{
		none, long, slots,
		one.search("one goes", 1, 4, one.arrives(a1, 2), one.arrives(b1, 1), one.arrives(a2, 1), one.polls(a1, 1)),
		one.search("left", 1, 4, one.arrives(a1, 2), one.leaves(1, a1), one.arrives(b1, 2), one.polls(b1, 1)),
		one.search("dead", 3, 4, one.arrives(a1, 1), one.polls(a1, 1), one.arrives(b1, 2), one.polls(b1, 1)),
		two.search("the next one", 3, 4, two.arrives(a1, 2), two.arrives(b1, 1), two.arrives(a2, 1), two.leaves(1, a1)),
		reset.search("reset", 3, 5, append(reset.resets(2, "g:1", "g:2", ids[j1]+":2"), reset.arrives(a1, 1), reset.polls(a1, 1), reset.arrives(a2, 1))...),
		other.search("another number", 1, 3, other.arrives(a1, 1), other.arrives(b1, 1), other.arrives(a2, 1)),
	}
}

func TestSearchBarriers(t *testing.T) { explore(t, 320_913, barrierSearches()) }
