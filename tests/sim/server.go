package sim

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/commands"
)

// A node is one embedded server. Links call it without a network, one script at a
// time, and a script takes no time.
type node struct {
	mu   sync.Mutex
	mini *miniredis.Miniredis
	site int
	subs map[string][]*listener // by channel
	born time.Time
	fast float64       // by so much its clock runs faster than time does
	skew time.Duration // by so much its clock was set ahead

	down   bool
	epoch  int       // how often it has ended: it has forgotten the requests of its earlier connections
	paused time.Time // it executes nothing until then
	trial  ailment
	until  time.Time // for which it has it

	dirty     bool // the script that runs has written
	spread    bool // it has given replicas something to do, though it may have changed nothing
	published []message
	execs     int
	latches   openings
	record    *Record  // nil: none is wanted
	replica   *replica // nil: it has none
	cluster   *cluster // nil: it has all keys
}

type message struct{ channel, text string }

// An ailment is what a server answers with, though it can be reached.
type ailment string

// The ailments. The first two refuse commands that write, inside a script; the
// others refuse each script.
const (
	noMemory    ailment = "OOM command not allowed when used memory > 'maxmemory'."
	noDisk      ailment = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."
	loading     ailment = "LOADING Redis is loading the dataset in memory"
	busy        ailment = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	readOnly    ailment = "READONLY You can't write against a read only replica."
	clusterDown ailment = "CLUSTERDOWN The cluster is down"
	noScript    ailment = "NOSCRIPT No matching script. Please use EVAL."
)

func newNode() *node {
	s := &node{mini: miniredis.NewMiniRedis(), subs: map[string][]*listener{}, born: time.Now()}
	c, err := s.mini.Dial() // which starts it
	if err != nil {
		panic(err)
	}
	_ = c.Close()
	s.mini.ClockTTL(true)
	s.mini.Server().SetPreHook(s.hook)
	return s
}

// successor returns a server that has nothing yet, with the clock of this one.
func (s *node) successor() *node {
	next := newNode()
	s.mu.Lock()
	defer s.mu.Unlock()
	next.site, next.born, next.fast, next.skew = s.site, s.born, s.fast, s.skew
	return next
}

// hook stands before every command of a script.
func (s *node) hook(c *server.Peer, cmd string, args ...string) bool {
	if s.record != nil && !s.record.within && cmd != "EVAL" {
		s.record.call(s, c, cmd, args)
		return true
	}
	now := s.ailing()
	switch {
	case cmd == "PUBLISH":
		s.published = append(s.published, message{args[0], args[1]})
		c.WriteInt(len(s.subs[args[0]]))
		return true
	case cmd == "PUBSUB":
		c.WriteLen(2 * (len(args) - 1))
		for _, channel := range args[1:] {
			c.WriteBulk(channel)
			c.WriteInt(len(s.subs[channel]))
		}
		return true
	case now == noMemory && commands.Growing[cmd] && !s.dirty, now == noDisk && (commands.Growing[cmd] || commands.Writing[cmd]):
		c.WriteError(string(now))
		return true
	}
	s.dirty = s.dirty || commands.Growing[cmd] || commands.Writing[cmd]
	s.spread = s.spread || commands.Spreading[cmd]
	return false
}

func (s *node) ailing() ailment {
	if time.Now().Before(s.until) {
		return s.trial
	}
	return ""
}

// serverTime stands before a number of milliseconds, in an argument that is the
// server's time so much later. Redisson sends the time of its host, and no clock
// of a host is set back here between the sending and the execution.
const serverTime = "server time, and ms: "

// datedLocked returns the arguments with the server's time in them.
func (s *node) datedLocked(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if after, ok := strings.CutPrefix(arg, serverTime); ok {
			ms, _ := strconv.ParseInt(after, 10, 64)
			args[i] = strconv.FormatInt(s.clockLocked().UnixMilli()+ms, 10)
		}
	}
	return args
}

// clockLocked returns what its clock shows.
func (s *node) clockLocked() time.Time {
	now := time.Now()
	return now.Add(s.skew + time.Duration(float64(now.Sub(s.born))*s.fast))
}

// tickLocked sets the server's clock, and lets go of the keys whose time is over.
func (s *node) tickLocked() {
	s.mini.SetTime(s.clockLocked())
	s.mini.Exists("")
}

// step sets the server's clock ahead, or back.
func (s *node) step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	s.skew += d
	s.tickLocked()
}

// exec executes a script. It says whether its replica, if it has one, has to be
// sent anything.
func (s *node) exec(script *driver.Script, keys, args []string, asking bool) (r driver.Reply, wrote bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.ailing(); now != "" && now != noMemory && now != noDisk {
		return driver.Reply{}, false, driver.ServerError(string(now), errServer)
	}
	s.tickLocked()
	if text := s.cluster.refuses(s, keys, asking); text != "" {
		return driver.Reply{}, false, driver.ServerError(text, redirected(text))
	}
	args = s.datedLocked(args)
	s.dirty, s.spread, s.published = false, false, nil
	s.execs++
	was := s.sentLocked()
	text, before := script.Source(), []Key(nil)
	if s.record != nil {
		text, before, s.record.calls = Ordered+text, keysOf(s.snapshotLocked()), nil
	}
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	s.mini.Server().Dispatch(server.NewPeer(w), slices.Concat([]string{"EVAL", text, strconv.Itoa(len(keys))}, keys, args))
	_ = w.Flush()
	if s.record != nil {
		s.record.Steps = append(s.record.Steps, Step{
			Script: script, Keys: keys, Args: args, Before: before, After: keysOf(s.snapshotLocked()), Calls: s.record.calls, Reply: parsed(&buf),
		})
	}
	if s.dirty {
		wrote = s.streamLocked(was) || s.spread
	}
	s.deliverLocked(s.published)
	s.cluster.broadcast(s, s.published)
	v, err := server.ParseReply(bufio.NewReader(&buf))
	if err != nil {
		return driver.Reply{}, wrote, driver.ServerError(err.Error(), err)
	}
	r = reply(v)
	if script.Name() == "latch.down" {
		s.latches.down(keys, args, r, len(s.published) > 0)
	}
	return r, wrote, nil
}

func (s *node) deliverLocked(all []message) {
	for _, m := range all {
		for _, x := range s.subs[m.channel] {
			x.send(driver.Notice{Payload: m.text})
		}
	}
}

func reply(v any) driver.Reply {
	switch r := v.(type) {
	case int:
		return driver.Reply{Kind: driver.ReplyInt, Int: int64(r)}
	case int64:
		return driver.Reply{Kind: driver.ReplyInt, Int: r}
	case []byte:
		return driver.Reply{Kind: driver.ReplyString, Str: string(r)}
	case string:
		return driver.Reply{Kind: driver.ReplyString, Str: r}
	case []any:
		list := make([]driver.Reply, len(r))
		for i := range r {
			list[i] = reply(r[i])
		}
		return driver.Reply{Kind: driver.ReplyList, List: list}
	}
	return driver.Reply{}
}

// set changes what a fault changes.
func (s *node) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// reachable says whether it is up, in which epoch, and for how long it will be
// paused.
func (s *node) reachable() (up bool, epoch int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.down, s.epoch, time.Until(s.paused)
}

// arrive waits until it executes requests, and says whether it is still the one
// that a request was sent to.
func (s *node) arrive(epoch int) bool {
	for {
		up, now, pause := s.reachable()
		if !up || now != epoch {
			return false
		}
		if pause <= 0 {
			return true
		}
		time.Sleep(pause)
	}
}

// A snapshot is what a server has stored.
type snapshot struct {
	at   time.Time
	keys []stored
}

type stored struct {
	name, kind string
	content    []string
	scores     map[string]float64
	ttl        time.Duration
}

// over says whether a key lists permits whose time is over, all of them: the next
// take has them back.
func (s *node) over(k stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := float64(s.clockLocked().UnixMilli())
	for _, end := range k.scores {
		if end > now {
			return false
		}
	}
	return len(k.scores) > 0
}

func (s *node) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	return s.snapshotLocked()
}

func (s *node) snapshotLocked() snapshot {
	c := snapshot{at: time.Now()}
	for _, name := range s.mini.Keys() {
		c.keys = append(c.keys, s.getLocked(name))
	}
	return c
}

// getLocked returns what is stored by a name.
func (s *node) getLocked(name string) stored {
	k := stored{name: name, kind: s.mini.Type(name), ttl: s.mini.TTL(name)}
	switch k.kind {
	case "string":
		text, _ := s.mini.Get(name)
		k.content = []string{text}
	case "hash":
		fields, _ := s.mini.HKeys(name)
		slices.Sort(fields)
		for _, f := range fields {
			k.content = append(k.content, f, s.mini.HGet(name, f))
		}
	case "list":
		list, _ := s.mini.List(name)
		k.content = slices.Clone(list)
	case "zset":
		scores, _ := s.mini.SortedSet(name)
		k.scores = maps.Clone(scores)
	default:
		panic("a snapshot of a " + k.kind)
	}
	return k
}

// putLocked stores that by its name, which has nothing yet.
func (s *node) putLocked(k stored) {
	switch k.kind {
	case "string":
		_ = s.mini.Set(k.name, k.content[0])
	case "hash":
		s.mini.HSet(k.name, k.content...)
	case "list":
		_, _ = s.mini.Push(k.name, k.content...)
	case "zset":
		for member, score := range k.scores {
			_, _ = s.mini.ZAdd(k.name, score, member)
		}
	}
	if k.ttl > 0 {
		s.mini.SetTTL(k.name, k.ttl)
	}
}

// load replaces what is stored by a snapshot, in which time has gone on since it
// was taken.
func (s *node) load(c snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	s.mini.FlushAll()
	past := time.Since(c.at)
	for _, k := range c.keys {
		if k.ttl > 0 && k.ttl <= past {
			continue
		}
		if k.ttl > 0 {
			k.ttl -= past
		}
		s.putLocked(k)
	}
	s.copyLocked()
}

// has says whether the lock or semaphore that is claimed belongs to the claim's id
// now.
func (s *node) has(c *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	name, id := c.resource, c.id
	at := float64(s.clockLocked().UnixMilli())
	if c.lock != "" {
		field := wire.GroupField(name)
		expiry, _ := wire.GroupFields(field, id)
		till, err := strconv.ParseFloat(s.mini.HGet(c.lock, expiry), 64)
		return err == nil && till > at && s.mini.HGet(c.lock, field) == id
	}
	if s.mini.Type(name) == "hash" {
		return s.mini.HGet(name, id) != "" || s.mini.HGet(name, id+":write") != ""
	}
	members, err := s.mini.SortedSet("{" + name + "}:timeout")
	raw, bad := hex.DecodeString(id) // as which users see the bytes of a permit's id
	if err != nil || bad != nil {
		return false
	}
	ends, there := members[string(raw)]
	return there && ends > at
}

// keys returns the names of all that is stored.
func (s *node) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	return s.mini.Keys()
}

// evict deletes the keys of an object, but for what numbers its tokens.
func (s *node) evict(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickLocked()
	for _, key := range s.mini.Keys() {
		if strings.Contains(key, name) && !strings.HasPrefix(key, tokens) {
			s.mini.Del(key)
		}
	}
	s.streamLocked(nil)
}

// channels returns to which channels somebody listens.
func (s *node) channels() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range s.subs {
		all = append(all, channel)
	}
	slices.Sort(all)
	return all
}
