package search

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch/tests/internal/commands"
)

// The scripts' folder.
var scripts = os.DirFS("../../internal/lua")

// A tick of the clock in most searches, in ms, and when the time begins.
const (
	tick  = 1000
	epoch = 1_000_000
)

// A key is one of what is stored. Its content is in a canonical order.
type key struct {
	name, kind string
	content    []string
	ttl        int64 // in ms; 0: none
	moved      bool  // to the new node of a slot that moves
}

// A store is all that is stored. Equal ones are one: they have the same number.
type store struct {
	number int32
	keys   []key
	later  *store // one unit later
	unit   int64
}

// condition is in what condition the server is that executes a request; or the
// name of a command that the user has no right to.
type condition string

const (
	healthy condition = ""
	full    condition = "no memory left"
	behind  condition = "a replica that has nothing yet" // and must not write
	marked  condition = "the slot moves"                 // no key can be made that is not there, nor looked for
	coming  condition = "the slot comes"                 // no command can have several keys that are not all there
)

// refusing are the conditions in which a script may be refused half-way.
var refusing = []condition{full, "PUBLISH", "SET", "DEL", "PEXPIRE", "INCRBY", "DECRBY", "ZADD", "ZREM", "ZREMRANGEBYSCORE"}

// A message is one that a script has published.
type message struct{ channel, text string }

// A result is what became of a request.
type result struct {
	after *store
	reply any // int64, string, []any, nil or error
	told  []message
}

// A machine is the embedded server, put into any state that a search needs. What a
// script did once in some state it is not asked to do again.
type machine struct {
	mini    *miniredis.Miniredis
	stores  map[string]*store
	calls   map[string]*call
	results map[request]*result
	nothing *store
	text    []byte // that intern has made, for the next one

	perTick int64 // a tick, in ms
	most    int   // no script needs more commands

	// deafTo says, of the search that is carried out, to which channels nobody
	// listens; nil: to none.
	deafTo func(channel string, listeners int8) bool

	// of the script that runs
	others     int8
	subscribed int
	condition  condition
	dirty      bool
	looking    bool // for a key
	published  []message
	commands   int
}

// Each client has one subscription itself to the channel that it releases on.
const (
	ownSubscriptions = 1
	own              = "1"
)

// mostCommands is more than any script needs in most searches.
const mostCommands = 300

// A call is a script with its keys and arguments.
type call struct {
	number      int32
	source      string
	keys, args  []string
	timed       bool // it asks for the time
	askListener bool // it asks who listens
}

// A request is a call with all else that it can depend on.
type request struct {
	call, store int32
	now         int16
	listeners   int8
	condition   condition
}

func newMachine() *machine {
	m := &machine{
		mini:    miniredis.NewMiniRedis(),
		stores:  map[string]*store{},
		calls:   map[string]*call{},
		results: map[request]*result{},
	}
	c, err := m.mini.Dial() // which starts it
	if err != nil {
		panic(err)
	}
	_ = c.Close()
	m.mini.Server().SetPreHook(m.hook)
	m.nothing = m.intern(nil)
	return m
}

// has says whether a key is there for the script that runs.
func (m *machine) has(c *server.Peer, key string) bool {
	m.looking = true
	defer func() { m.looking = false }()
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	p := server.NewPeer(w)
	p.Ctx = c.Ctx
	m.mini.Server().Dispatch(p, []string{"EXISTS", key})
	_ = w.Flush()
	return buf.String() == ":1\r\n"
}

// hook stands before every command of a script.
func (m *machine) hook(c *server.Peer, cmd string, args ...string) bool {
	if m.looking {
		return false
	}
	if m.commands++; m.commands > m.most {
		c.WriteError("ERR it never ends")
		return true
	}
	switch {
	case cmd == "EVAL":
		return false
	case m.condition == condition(cmd):
		c.WriteError("NOPERM this user has no permissions to run the '" + cmd + "' command")
		return true
	case m.strays(c, cmd, args):
		c.WriteError("ERR Script attempted to access a non local key in a cluster node")
		return true
	case cmd == "PUBLISH":
		m.published = append(m.published, message{args[0], args[1]})
		c.WriteInt(m.subscribed + 1) // somebody subscribes to a pattern, too, who does not wait
		return true
	case cmd == "PUBSUB":
		c.WriteLen(2)
		c.WriteBulk(args[1])
		if m.deafTo != nil && m.deafTo(args[1], m.others) {
			c.WriteInt(0)
		} else {
			c.WriteInt(m.subscribed)
		}
		return true
	case m.condition == behind && (commands.Growing[cmd] || commands.Writing[cmd]):
		c.WriteError("READONLY You can't write against a read only replica.")
		return true
	case m.condition == full && commands.Growing[cmd] && !m.dirty:
		c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
		return true
	}
	m.dirty = m.dirty || commands.Growing[cmd] || commands.Writing[cmd]
	return false
}

// strays says whether a command is for the other node of a slot that moves, or
// nobody knows for which.
func (m *machine) strays(c *server.Peer, cmd string, args []string) bool {
	if m.condition != marked && m.condition != coming || cmd == "PUBLISH" || cmd == "PUBSUB" || cmd == "TIME" {
		return false
	}
	keys := args[:1]
	if cmd == "DEL" {
		keys = args
	}
	return (m.condition == marked || len(keys) > 1) && slices.ContainsFunc(keys, func(key string) bool { return !m.has(c, key) })
}

// call returns a call, which is always the same one.
func (m *machine) call(source string, keys, args []string) *call {
	id := source + "\x00" + strings.Join(keys, "\x00") + "\x01" + strings.Join(args, "\x00")
	c := m.calls[id]
	if c == nil {
		c = &call{
			number: int32(len(m.calls)), source: source, keys: keys, args: args,
			timed: strings.Contains(source, "'TIME'"), askListener: strings.Contains(source, "'PUBSUB'") || strings.Contains(source, "tell("),
		}
		m.calls[id] = c
	}
	return c
}

// run executes a call.
func (m *machine) run(c *call, at *store, now int16, listeners int8, cond condition) *result {
	if !c.timed {
		now = 0
	}
	if !c.askListener {
		listeners = 0
	}
	req := request{c.number, at.number, now, listeners, cond}
	if r := m.results[req]; r != nil {
		return r
	}
	here, away := at, []key(nil)
	if at.get(move) != nil {
		var old bool
		if here, away, old = m.node(at, c.keys); here == nil {
			r := &result{after: at, reply: errors.New("TRYAGAIN Multiple keys request during rehashing of slot")}
			m.results[req] = r
			return r
		} else if cond = coming; old {
			cond = marked
		}
	}
	m.load(here)
	m.mini.SetTime(time.UnixMilli(epoch + int64(now)*m.perTick))
	m.others = listeners
	m.subscribed, m.condition, m.dirty, m.published, m.commands = int(listeners)+ownSubscriptions, cond, false, nil, 0
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	m.mini.Server().Dispatch(server.NewPeer(w), slices.Concat([]string{"EVAL", c.source, strconv.Itoa(len(c.keys))}, c.keys, c.args))
	_ = w.Flush()
	reply, err := server.ParseReply(bufio.NewReader(&buf))
	if err != nil {
		reply = err
	}
	r := &result{after: m.dump(away, at.get(move) != nil && cond != marked), reply: bare(reply), told: m.published}
	m.results[req] = r
	return r
}

// bare makes a reply one of what result.reply can be.
func bare(reply any) any {
	switch r := reply.(type) {
	case int:
		return int64(r)
	case []byte:
		return string(r)
	case []any:
		for i := range r {
			r[i] = bare(r[i])
		}
	}
	return reply
}

// load puts the server into a state.
func (m *machine) load(s *store) {
	m.mini.FlushAll()
	for _, k := range s.keys {
		switch k.kind {
		case "string":
			_ = m.mini.Set(k.name, k.content[0])
		case "hash":
			m.mini.HSet(k.name, k.content...)
		case "list":
			_, _ = m.mini.Push(k.name, k.content...)
		case "zset":
			for i := 0; i < len(k.content); i += 2 {
				score, err := strconv.ParseFloat(k.content[i+1], 64)
				if err != nil {
					panic(err)
				}
				_, _ = m.mini.ZAdd(k.name, score, k.content[i])
			}
		}
		if k.ttl > 0 {
			m.mini.SetTTL(k.name, time.Duration(k.ttl)*time.Millisecond)
		}
	}
}

// move stands among the keys of a slot that moves. Clients ask the old node, which
// sends them on if it has not all keys of a script; the new one executes the
// script if it has all, or if there is one.
const move = "(the slot moves)"

// node returns what the node has that executes a script with these keys, what it
// has not, and whether it is the old one; nil: none does.
func (m *machine) node(at *store, keys []string) (here *store, away []key, old bool) {
	n := 0
	for _, name := range keys {
		if k := at.get(name); k != nil && !k.moved {
			n++
		}
	}
	old = n == len(keys)
	var there []key
	for _, k := range at.keys {
		if k.name != move && k.moved != old {
			there = append(there, k)
		} else {
			away = append(away, k)
		}
	}
	here = m.intern(there)
	for _, name := range keys {
		if !old && len(keys) > 1 && here.get(name) == nil {
			return nil, nil, false
		}
	}
	return here, away, old
}

// carried returns what is stored when a key, or the mark for all of them, has
// moved; nil if it cannot.
func (m *machine) carried(s *store, name string) *store {
	k := s.get(name)
	switch marks := s.get(move) != nil; {
	case name == move && !marks:
		return m.with(s, key{name: move, kind: "mark"})
	case name == move:
		return m.settled(s)
	case k == nil || !marks || k.moved:
		return nil
	}
	moved := *k
	moved.moved = true
	return m.with(m.without(s, name), moved)
}

// settled returns what is stored when the slot has moved.
func (m *machine) settled(s *store) *store {
	keys := slices.Clone(m.without(s, move).keys)
	for i := range keys {
		keys[i].moved = false
	}
	return m.intern(slices.CompactFunc(keys, func(a, b key) bool { return a.name == b.name }))
}

// dump reads the state that the server is in; away is what is elsewhere.
func (m *machine) dump(away []key, moved bool) *store {
	keys := slices.Clone(away)
	for _, name := range m.mini.Keys() { // they are sorted
		k := key{name: name, moved: moved, kind: m.mini.Type(name), ttl: m.mini.TTL(name).Milliseconds()}
		switch k.kind {
		case "string":
			text, _ := m.mini.Get(name)
			k.content = []string{text}
		case "hash":
			fields, _ := m.mini.HKeys(name)
			slices.Sort(fields)
			for _, f := range fields {
				k.content = append(k.content, f, m.mini.HGet(name, f))
			}
		case "list":
			k.content, _ = m.mini.List(name)
		case "zset":
			members, _ := m.mini.SortedSet(name)
			for member := range members {
				k.content = append(k.content, member)
			}
			slices.Sort(k.content)
			all := k.content
			k.content = nil
			for _, member := range all {
				k.content = append(k.content, member, strconv.FormatFloat(members[member], 'f', -1, 64))
			}
		}
		keys = append(keys, k)
	}
	if away != nil {
		slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.name, b.name) })
	}
	return m.intern(keys)
}

func (m *machine) intern(keys []key) *store {
	b := m.text[:0] // the text of a store: each part after its length
	for _, k := range keys {
		b = binary.AppendUvarint(part(part(b, k.name), k.kind), uint64(len(k.content)))
		for _, c := range k.content {
			b = part(b, c)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(k.ttl)<<1|uint64(b2i(k.moved)))
	}
	m.text = b
	s := m.stores[string(b)]
	if s == nil {
		s = &store{number: int32(len(m.stores)), keys: keys}
		m.stores[string(b)] = s
	}
	return s
}

func part(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// after returns what is stored ms later, if nothing happens.
func (m *machine) after(s *store, ms int64) *store {
	if ms == 0 {
		return s
	}
	if ms == s.unit {
		return s.later
	}
	var keys []key
	for _, k := range s.keys {
		if k.ttl > 0 {
			if k.ttl -= ms; k.ttl <= 0 {
				continue
			}
		}
		keys = append(keys, k)
	}
	later := m.intern(keys)
	if ms == m.perTick {
		s.later, s.unit = later, ms
	}
	return later
}

// with returns what is stored with another key.
func (m *machine) with(s *store, k key) *store {
	keys := append(slices.Clone(s.keys), k)
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return m.intern(keys)
}

// without returns what is stored, less a key.
func (m *machine) without(s *store, name string) *store {
	return m.intern(slices.DeleteFunc(slices.Clone(s.keys), func(k key) bool { return k.name == name }))
}

// get returns a key, or nil.
func (s *store) get(name string) *key {
	for i := range s.keys {
		if s.keys[i].name == name {
			return &s.keys[i]
		}
	}
	return nil
}

// twice says whether both nodes of a slot that moves have a key.
func (s *store) twice(name string) bool {
	n := 0
	for i := range s.keys {
		if s.keys[i].name == name {
			n++
		}
	}
	return n > 1
}

// field returns the value of a hash's field, or a zset's score; "": there is none.
func (s *store) field(name, field string) string {
	if k := s.get(name); k != nil {
		for i := 0; i+1 < len(k.content); i += 2 {
			if k.content[i] == field {
				return k.content[i+1]
			}
		}
	}
	return ""
}

// ttl returns how long a key lasts; 0 if there is none.
func (s *store) ttl(name string) int64 {
	if k := s.get(name); k != nil {
		return k.ttl
	}
	return 0
}

func (s *store) String() string {
	var all []string
	for _, k := range s.keys {
		all = append(all, fmt.Sprintf("%s %v %d ms", k.name, k.content, k.ttl))
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, "; ")
}
