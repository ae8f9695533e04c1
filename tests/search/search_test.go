package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/tests/internal/redissonlua"
)

const (
	mostMinds  = 6
	mostFlight = 6
	mostAsks   = 20
)

// A state is all that a search tells apart.
type state struct {
	now    int16
	ticked int8 // how often
	sent   int8 // how many requests so far
	flying int8
	asked  [mostAsks]int8 // how often each
	minds  [mostMinds]mind
	flight [mostFlight]flight // in order
	store  *store
	top    int32 // the highest token that anybody was told
}

// A mind is what a client believes of one of its owners, or of what it has else.
type mind struct {
	phase phase
	what  uint8 // what it has, where there is more than one thing to have
	until int16 // it trusts what it has until this tick; 0: it does not
	token int32
}

type phase uint8

const (
	idle    phase = iota
	asking        // it has asked, and had no answer
	refused       // it was told to wait
	has
	over // it has released it, or was told that it is gone
)

// trusts says whether it believes that it has something.
func (m mind) trusts(now int16) bool { return m.phase == has && m.until > now }

// sole returns who believes that it has something, -1 if nobody does, and what is
// wrong if two do.
func (s *state) sole() (who int, wrong string) {
	who = -1
	for i, m := range s.minds {
		if !m.trusts(s.now) {
			continue
		}
		if who >= 0 {
			return who, fmt.Sprintf("%s and %s trust at one time", names[who], names[i])
		}
		who = i
	}
	return who, ""
}

// A flight is a request that may still be executed.
type flight struct {
	ask   int8
	runs  int8  // so many times
	sent  int16 // when
	heard bool  // nobody waits for its answer any more
}

func (f flight) compare(g flight) int {
	return cmp.Or(cmp.Compare(f.ask, g.ask), cmp.Compare(f.runs, g.runs), cmp.Compare(f.sent, g.sent), cmp.Compare(b2i(f.heard), b2i(g.heard)))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An ask is a request that a client may send.
type ask struct {
	name   string
	times  int8   // so often it may be sent
	runs   int8   // and so often each of them executed
	script string // "": it is no request, but something else that a client does
	skips  int16  // and takes so long for
	keys   []string
	args   []string
	dated  func(sent int16) []string // more arguments, which depend on the time
	// may says whether the client may send it, sending what it believes from then on,
	// open whether it still waits for an answer (nil: it does not care for any), and
	// hears what it believes of one; or what is wrong with that.
	may     func(s *state) bool
	sending func(s *state)
	open    func(s *state) bool
	hears   func(s *state, sent int16, r *result) string
	// foreign is Redisson's, which is not ours to judge: who it does not tell, what it
	// answers when there is no memory.
	foreign bool
	// holder says that a client sends it that has something, which it must not lose
	// by a replica's or a full server's fault.
	holder bool
	// frees says that it needs no memory, though it may find nothing to write.
	frees bool
	// batch says that the script is for any number of locks; another has these
	// arguments.
	batch   bool
	another []string
	// carries says that it is no request, but that this key moves to the new node of a
	// slot.
	carries string
	// creates says that it may make a key, which cannot be while a slot moves.
	creates bool
	// truth says whether an answer is true.
	truth func(before, after *store, reply any) bool

	calls map[int16]*call
}

// carries is that a key, or the mark for all of them, comes to the new node of a
// slot that moves.
func carries(key string) ask {
	return ask{name: "the new node gets " + key, carries: key, times: 1, may: func(*state) bool { return true }}
}

// A search is one cast, and what has to be true of it.
type search struct {
	name  string
	unit  int64    // a tick, in ms
	ticks int8     // the time that it lasts
	sends int8     // so many requests in all
	minds []string // whose they are
	asks  []ask
	waits []ask // what those would send who wait: they have to be told when they may have it
	// listens is the channel on which those who wait hear of it; nil: they hear of
	// nothing, and nobody tells them.
	listens func(channel string) bool
	// listeners says how many others listen; or, if there is unheard, what tells that
	// of whom.
	listeners func(s *state) int8
	unheard   func(channel string, listeners int8) bool
	// wrong says what must not be in a state.
	wrong func(s *state) string
	// calm lets everybody release what he has, and says what is wrong then.
	calm func(x *explorer, at *store, now int16) string
	// stays says of a key that it need not end.
	stays func(name string) bool
	// longest is after how many ms every other key has ended.
	longest int64

	// refusal is what every request has to be refused with; "": none is refused.
	refusal string
	// commands is more than any script needs; 0: mostCommands.
	commands int

	// latest is for how many ticks a request can be in flight; 0: for ever.
	latest int16
	// grant says whether an answer is that what was wanted was granted; nil: granted
	// does.
	grant func(reply any) bool

	// seed is what is stored at the beginning.
	seed []key
	// told notes what those hear who are told something; nil: they only ask again.
	told func(s *state, m message)

	// inspect says what is wrong with an execution, and recalls what is wrong with it
	// in the light of what the clients believe; nil: nothing.
	recalls func(s *state, r *result) string
	inspect func(x *explorer, s scene, a *ask, sent int16, r *result) string
}

// An explorer carries out a search.
type explorer struct {
	*search
	*machine
	source map[string]string // of each script
	loader func(name string) *script.Script
	seen   map[state]int32
	states []visited
	calms  map[[2]int32]string
	right  map[execution]bool // with which nothing is wrong
}

// A scene is all of a state that a request can meet with.
type scene struct {
	store  *store
	now    int16
	others int8 // listen
}

// An execution is that of an ask. Every two that are equal have one result, and
// are right or wrong together.
type execution struct {
	scene
	ask  int8
	sent int16 // 0: it does not matter
}

// visited is a state, and how it was come to.
type visited struct {
	state
	from int32
	step step
}

// A step is: 0 a tick, 1+i ask i is sent, and else that a flight is executed.
type step int16

const (
	passes    step = 0
	runsLost  step = 100
	runsHeard step = 200
)

// everything is more states than any search has.
const everything = math.MaxInt32

// explore visits the states, those that take the fewest steps first, and no more
// than most. It returns a story with a bad end, or nothing, and how many states it
// has found: more than most, if it did not visit all.
func (q *search) explore(m *machine, load func(name string) *script.Script, most int) (story string, states int) {
	x := &explorer{search: q, machine: m, source: map[string]string{}, loader: load, seen: map[state]int32{}, calms: map[[2]int32]string{}, right: map[execution]bool{}}
	for _, all := range [][]ask{q.asks, q.waits} {
		for i := range all {
			a := &all[i]
			a.calls = map[int16]*call{}
		}
	}
	m.deafTo, m.perTick, m.most = q.unheard, q.unit, cmp.Or(q.commands, mostCommands)
	defer func() {
		if p := recover(); p != nil {
			story = fmt.Sprintf("%s: an answer, or what is stored, cannot be read: %v", q.name, p)
		}
	}()
	start := state{store: m.intern(q.seed)}
	x.states = append(x.states, visited{state: start, from: -1})
	x.seen[start] = 0
	for at := int32(0); int(at) < min(len(x.states), most); at++ {
		if bad := x.visit(at); bad != "" {
			return x.tell(at, bad), len(x.states)
		}
	}
	return "", len(x.states)
}

// code returns the source of a script: of ours, or of one of Redisson's.
func (x *explorer) code(name string) string {
	source, ok := x.source[name]
	if !ok {
		if source, ok = redissonlua.Scripts[name]; !ok {
			source = x.loader(name).Source()
		}
		x.source[name] = source
	}
	return source
}

// visit looks at a state, and takes every step from there.
func (x *explorer) visit(at int32) string {
	s := x.states[at].state
	if bad := x.look(&s); bad != "" {
		return bad
	}
	if s.ticked < x.ticks {
		next := s
		next.ticked++
		next.now++
		next.store = x.after(s.store, x.unit)
		x.reach(&next, at, passes)
	}
	for i := range x.asks {
		a := &x.asks[i]
		if s.sent == x.sends && a.script != "" || s.asked[i] == a.times || int(s.flying) == mostFlight || !a.may(&s) {
			continue
		}
		next := s
		next.asked[i]++
		if a.script == "" {
			next.now += a.skips
			next.store = x.after(s.store, int64(a.skips)*x.unit)
			if a.carries != "" {
				if next.store = x.carried(s.store, a.carries); next.store == nil {
					continue
				}
			} else {
				a.sending(&next)
			}
			x.reach(&next, at, step(1+i))
			continue
		}
		next.sent++
		next.flight[next.flying] = flight{ask: int8(i), runs: a.runs, sent: s.now}
		next.flying++
		if a.sending != nil {
			a.sending(&next)
		}
		x.reach(&next, at, step(1+i))
	}
	for i := range int(s.flying) {
		if bad := x.executes(&s, at, i); bad != "" {
			return bad
		}
	}
	return ""
}

// executes takes the steps that a flight's execution makes possible.
func (x *explorer) executes(s *state, at int32, i int) string {
	f := s.flight[i]
	a := &x.asks[f.ask]
	e := execution{scene{s.store, s.now, x.whoListens(s)}, f.ask, f.sent}
	if a.dated == nil {
		e.sent = 0
	}
	r := x.run(x.callOf(a, e.sent), s.store, s.now, e.others, healthy)
	if !x.right[e] {
		if bad := x.judge(e.scene, a, e.sent, r); bad != "" {
			return fmt.Sprintf("then %s; %s", x.ran(s, i, r, true), bad)
		}
		x.right[e] = true
	}
	if elsewhere(r) {
		return "" // it is sent again
	}
	if x.recalls != nil {
		if bad := x.recalls(s, r); bad != "" {
			return fmt.Sprintf("then %s; %s", x.ran(s, i, r, true), bad)
		}
	}
	next := *s
	next.store = r.after
	if f.runs--; f.runs > 0 {
		next.flight[i].runs = f.runs
	} else {
		copy(next.flight[i:], next.flight[i+1:])
		next.flying--
		next.flight[next.flying] = flight{}
	}
	for _, m := range r.told {
		if x.told != nil {
			x.told(&next, m)
		}
	}
	if !f.heard {
		heard := next
		if f.runs > 0 {
			heard.flight[i].heard = true
		}
		if bad := a.hears(&heard, f.sent, r); bad != "" {
			return fmt.Sprintf("then %s; %s", x.ran(s, i, r, true), bad)
		}
		x.reach(&heard, at, runsHeard+step(i))
	}
	x.reach(&next, at, runsLost+step(i))
	return ""
}

func (x *explorer) whoListens(s *state) int8 {
	if x.listeners == nil {
		return 0
	}
	return x.listeners(s)
}

// callOf returns what is sent.
func (x *explorer) callOf(a *ask, sent int16) *call {
	if a.dated == nil {
		sent = 0
	}
	c := a.calls[sent]
	if c == nil {
		args := a.args
		if a.dated != nil {
			args = slices.Concat(args, a.dated(sent))
		}
		c = x.call(x.code(a.script), a.keys, args)
		a.calls[sent] = c
	}
	return c
}

// reach notes a state, in its one form.
func (x *explorer) reach(s *state, from int32, by step) {
	for i := range s.minds {
		if m := &s.minds[i]; m.phase == has && m.until <= s.now {
			*m = mind{phase: over} // its window has ended
		}
	}
	for i := range s.flight[:s.flying] {
		f := &s.flight[i]
		a := &x.asks[f.ask]
		f.heard = f.heard || a.open == nil || !a.open(s)
		if f.heard && a.dated == nil && x.latest == 0 {
			f.sent = 0
		}
	}
	if x.latest > 0 {
		left := slices.DeleteFunc(s.flight[:s.flying], func(f flight) bool { return s.now-f.sent > x.latest }) // clears the rest
		s.flying = int8(len(left))
	}
	slices.SortFunc(s.flight[:s.flying], flight.compare)
	if _, ok := x.seen[*s]; ok {
		return
	}
	x.seen[*s] = int32(len(x.states))
	x.states = append(x.states, visited{*s, from, by})
}

// look says what is wrong with a state.
func (x *explorer) look(s *state) string {
	for _, k := range s.store.keys {
		if (k.ttl <= 0 || k.ttl > x.longest) && !x.stays(k.name) {
			return fmt.Sprintf("something is left: %s, for %d ms", k.name, k.ttl)
		}
	}
	if bad := x.wrong(s); bad != "" {
		return bad
	}
	id := [2]int32{s.store.number, int32(s.now)}
	bad, ok := x.calms[id]
	if !ok {
		bad = x.calm(x, s.store, s.now)
		x.calms[id] = bad
	}
	return bad
}

// judge says what is wrong with an execution.
func (x *explorer) judge(s scene, a *ask, sent int16, r *result) string {
	err, fails := r.reply.(error)
	switch {
	case x.refusal == "" && s.store.get(move) == nil && !a.foreign:
		if bad := x.marks(s, a, sent, r); bad != "" {
			return bad
		}
	case elsewhere(r) && r.after != s.store:
		return "it fails in the middle: " + err.Error() + "; stored: " + r.after.String()
	case elsewhere(r):
		return ""
	}
	switch {
	case x.refusal != "" && (!fails || !strings.Contains(err.Error(), x.refusal) || r.after != s.store):
		return "it is to be refused, and to change nothing"
	case x.refusal != "":
		return ""
	case fails:
		return "the script fails: " + err.Error()
	}
	if a.truth != nil && !a.truth(s.store, r.after, r.reply) {
		return "that is not true; stored: " + r.after.String()
	}
	if x.inspect != nil {
		if bad := x.inspect(x, s, a, sent, r); bad != "" {
			return bad
		}
	}
	if a.batch {
		if bad := x.beside(s, a, r); bad != "" {
			return bad
		}
	}
	c := x.callOf(a, sent)
	if s.store.get(move) != nil {
		return ""
	}
	if a.holder || a.frees {
		if err, ok := x.run(c, s.store, s.now, s.others, full).reply.(error); ok {
			return "with no memory left, the script fails: " + err.Error()
		}
	}
	if a.holder {
		if err, ok := x.run(c, s.store, s.now, s.others, "PUBSUB").reply.(error); ok {
			return "without the right to ask who listens, the script fails: " + err.Error()
		}
		if reply := x.run(c, x.nothing, s.now, s.others, behind).reply; !failed(reply) {
			return fmt.Sprintf("a replica that has nothing yet answers %v", reply)
		}
	}
	if x.listens == nil && !a.foreign && len(r.told) > 0 {
		return "nobody listens, and it tells something"
	}
	if x.listens == nil || a.foreign || r.after == s.store || slices.ContainsFunc(r.told, func(m message) bool { return x.listens(m.channel) }) {
		return ""
	}
	for i := range x.waits {
		w := &x.waits[i]
		if !x.grants(w, s.store, s.now) && x.grants(w, r.after, s.now) {
			return fmt.Sprintf("%s would be granted now, and nobody is told", w.name)
		}
	}
	return ""
}

// elsewhere says that a request was not executed, or not to its end: keys are at
// the other node of a slot that moves.
func elsewhere(r *result) bool {
	err, fails := r.reply.(error)
	return fails && (strings.Contains(err.Error(), "TRYAGAIN") || strings.Contains(err.Error(), "non local key"))
}

// marks executes a request when the slot has begun to move, and all keys are at
// the old node.
func (x *explorer) marks(s scene, a *ask, sent int16, r *result) string {
	moves := x.run(x.callOf(a, sent), x.carried(s.store, move), s.now, s.others, healthy)
	if err, fails := moves.reply.(error); fails && !strings.Contains(err.Error(), "TRYAGAIN") {
		if !a.creates || x.settled(moves.after) != s.store {
			return fmt.Sprintf("with a slot that moves it fails: %v; stored: %s", err, moves.after)
		}
	}
	return ""
}

// beside executes a request together with one for a key of another type.
func (x *explorer) beside(s scene, a *ask, alone *result) string {
	other := key{name: "a key of another type", kind: "string", content: []string{"x"}}
	both := x.run(x.call(x.code(a.script), slices.Concat([]string{other.name}, a.keys), slices.Concat(a.another, a.args)), x.with(s.store, other), s.now, s.others, healthy)
	list, ok := both.reply.([]any)
	if !ok || len(list) != 2 || both.after != x.with(alone.after, other) || list[1] != alone.reply.([]any)[0] {
		return fmt.Sprintf("beside a key of another type it answers %v", both.reply)
	}
	if text, ok := list[0].(string); !ok || !strings.Contains(text, "WRONGTYPE") {
		return fmt.Sprintf("of a key of another type it answers %v", list[0])
	}
	return ""
}

// failed says whether a reply is an error, or a list with one.
func failed(reply any) bool {
	switch r := reply.(type) {
	case error:
		return true
	case string: // that is how renewals say it
		return strings.HasPrefix(r, "READONLY") || strings.HasPrefix(r, "ERR")
	case []any:
		return slices.ContainsFunc(r, failed)
	}
	return false
}

// grants says whether a take would be granted.
func (x *explorer) grants(w *ask, at *store, now int16) bool {
	reply := x.run(x.callOf(w, now), at, now, 0, healthy).reply
	if x.grant != nil {
		return x.grant(reply)
	}
	return granted(reply)
}

// lies says whether a take that was refused is told a time that is wrong: too
// long, or if it is to be exact, too short.
func (x *explorer) lies(s scene, a *ask, sent int16, at *store, ttl int64, exact bool) string {
	free := x.unit
	for ; free < 10*x.unit; free += x.unit {
		if granted(x.run(x.callOf(a, sent), x.after(at, free), s.now+int16(free/x.unit), 0, healthy).reply) {
			break
		}
	}
	if ttl <= 0 || ttl > free || exact && ttl < free {
		return fmt.Sprintf("it says that it may have it in %d ms, and that is in %d", ttl, free)
	}
	return ""
}

// do executes a script besides the search.
func (x *explorer) do(name string, at *store, now int16, keys []string, args ...string) *result {
	return x.run(x.call(x.code(name), keys, args), at, now, 0, healthy)
}
