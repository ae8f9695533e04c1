package interop

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// A monitor sees every command that a server runs, those of scripts included.
type monitor struct {
	w       *world
	conn    net.Conn
	lines   *bufio.Scanner
	names   *strings.Replacer // of what differs from run to run
	ids     map[string]string // likewise, of permits
	marks   int
	pending []command
}

// A command as MONITOR shows it.
type command struct {
	at       time.Time
	inScript bool
	args     []string
}

// newMonitor starts one that calls the owners by their threads' names.
func newMonitor(w *world, uuid string, owners map[string]string) *monitor {
	w.t.Helper()
	var names []string
	for _, thread := range slices.Backward(slices.SortedFunc(maps.Keys(owners), func(a, b string) int {
		return cmp.Compare(len(owners[a]), len(owners[b])) // "x:12" has to be tried before "x:1"
	})) {
		names = append(names, owners[thread], "<uuid>:<"+thread+">")
	}
	conn, err := w.server.Dial(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(storyLimit)); err != nil {
		w.t.Fatal(err)
	}
	m := &monitor{
		w: w, conn: conn, lines: bufio.NewScanner(conn), ids: map[string]string{},
		names: strings.NewReplacer(append(names, uuid, "<uuid>")...),
	}
	m.lines.Buffer(nil, 1<<20) // scripts are long
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		w.t.Fatal(err)
	}
	if !m.lines.Scan() || m.lines.Text() != "+OK" {
		w.t.Fatalf("MONITOR: %q, %v", m.lines.Text(), m.lines.Err())
	}
	return m
}

// next returns the next command.
func (m *monitor) next() command {
	m.w.t.Helper()
	if !m.lines.Scan() {
		m.w.t.Fatalf("the monitor has ended: %v", m.lines.Err())
	}
	line := m.lines.Text() // +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
	at, rest, ok := strings.Cut(line, " [")
	source, rest, ok2 := strings.Cut(rest, "] ")
	if !ok || !ok2 {
		m.w.t.Fatalf("MONITOR says %q", line)
	}
	at, us, ok3 := strings.Cut(strings.TrimPrefix(at, "+"), ".")
	sec, err1 := strconv.ParseInt(at, 10, 64)
	usec, err2 := strconv.ParseInt(us, 10, 64)
	if !ok3 || err1 != nil || err2 != nil {
		m.w.t.Fatalf("MONITOR says %q", line)
	}
	c := command{at: time.Unix(sec, usec*1000), inScript: strings.HasSuffix(source, " lua")}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			m.w.t.Fatalf("MONITOR says %q: %v", line, err)
		}
		arg, err := strconv.Unquote(quoted)
		if err != nil {
			m.w.t.Fatalf("MONITOR says %q: %v", line, err)
		}
		c.args = append(c.args, arg)
		rest = rest[len(quoted):]
	}
	return c
}

// seen returns the commands since the last call.
func (m *monitor) seen() []command {
	m.w.t.Helper()
	m.marks++
	mark := "mark " + strconv.Itoa(m.marks)
	m.w.server.MustDo("ECHO", mark)
	for {
		c := m.next()
		if len(c.args) == 2 && c.args[1] == mark {
			all := m.pending
			m.pending = nil
			return all
		}
		m.pending = append(m.pending, c)
	}
}

// published returns what was published since the last look, as "channel message".
func (m *monitor) published() []string {
	m.w.t.Helper()
	var all []string
	for _, c := range m.seen() {
		// Sentinels talk to each other by the servers that they watch.
		if strings.EqualFold(c.args[0], m.w.publish()) && c.args[1] != "__sentinel__:hello" {
			all = append(all, strings.Join(c.args[1:], " "))
		}
	}
	return all
}

// awaitScripts waits until n scripts have run since the last look.
func (m *monitor) awaitScripts(n int) {
	m.w.t.Helper()
	for called := false; n > 0; {
		c := m.next()
		m.pending = append(m.pending, c)
		switch {
		case !c.inScript:
			called = called || strings.HasPrefix(strings.ToLower(c.args[0]), "eval")
		case called: // and the server knew it
			called = false
			n--
		}
	}
}

var (
	requestID   = regexp.MustCompile(`[0-9a-f]{32}`)
	unlockLatch = "redisson_unlock_latch"
)

// plain replaces what differs from run to run.
func (m *monitor) plain(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = requestID.ReplaceAllString(m.names.Replace(m.random(a)), "<request>")
	}
	return out
}

// withoutLatchTTL hides the TTL of unlock latches, which Redisson rolls dice
// for: between 10 and 20 s, and no lease of ours is.
func withoutLatchTTL(args []string) []string {
	for i, a := range args {
		if n, err := strconv.Atoi(a); err == nil && n > 10_000 && n < 30_000 {
			args[i] = "<latch-ttl>"
		}
	}
	return args
}

// epoch is a wall clock in milliseconds, as arguments, scores and values have.
var epoch = regexp.MustCompile(`^[12][0-9]{12}$`)

// sinceNow writes wall clocks as what they are from the first of args on: that
// is the "now" of a script's call. To the nearest ten seconds: a life lasts some.
func sinceNow(now int64, args []string) []string {
	for i, a := range args {
		if epoch.MatchString(a) {
			at, _ := strconv.ParseInt(a, 10, 64)
			args[i] = fmt.Sprintf("<now>%+d", 10_000*int64(math.Round(float64(at-now)/10_000)))
		}
	}
	return args
}

// now returns the wall clock among the arguments of a script: the first one that
// there is, or the earliest, where until when a permit is given comes before it.
func (m *monitor) now(args []string) (now int64) {
	for _, a := range args {
		if !epoch.MatchString(a) {
			continue
		}
		at, _ := strconv.ParseInt(a, 10, 64)
		if now == 0 || m.w.kind == peer.Permits {
			now = min(at, cmp.Or(now, at))
		}
	}
	return now
}

// note adds to s what was seen since the last note.
func (m *monitor) note(s *golden.Step) {
	m.w.t.Helper()
	var now int64
	for _, c := range m.seen() {
		switch verb := strings.ToLower(c.args[0]); {
		case c.inScript:
			script := &s.Scripts[len(s.Scripts)-1]
			args := sinceNow(now, m.plain(c.args))
			args[0] = verb
			switch {
			case len(args) > 1 && strings.HasPrefix(args[1], unlockLatch):
				args = withoutLatchTTL(args)
			case verb == "pexpire":
				ttl, _ := strconv.ParseInt(args[2], 10, 64)
				args[2] = strconv.FormatInt(golden.RoundUp(ttl), 10)
			}
			run := strings.Join(args, " ")
			script.Runs = append(script.Runs, run)
			if message, ok := strings.CutPrefix(run, "publish "); ok {
				s.Messages = append(s.Messages, message)
			}
		case verb == "eval", verb == "evalsha":
			n, err := strconv.Atoi(c.args[2])
			if err != nil {
				m.w.t.Fatal(err)
			}
			args := m.withoutRandom(c.args[3+n:])
			now = m.now(args)
			keys, args := m.plain(c.args[3:3+n]), sinceNow(now, m.plain(args))
			if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, unlockLatch) }) {
				args = withoutLatchTTL(args)
			}
			s.Scripts = append(s.Scripts, golden.Script{Keys: strings.Join(keys, " "), Args: strings.Join(args, " ")})
		case verb == "subscribe":
			s.Subscribed = append(s.Subscribed, m.plain(c.args[1:])...)
		}
	}
	// One that the server did not know is sent twice; only the second ran.
	s.Scripts = slices.DeleteFunc(s.Scripts, func(x golden.Script) bool { return len(x.Runs) == 0 })
}

// keys returns what is in Redis, but for unlock latches, and the notes of clients
// who they are.
func (m *monitor) keys() map[string]golden.Hash {
	m.w.t.Helper()
	all := map[string]golden.Hash{}
	now := time.Now().UnixMilli() // the server and Java are on this machine
	list, _ := m.w.server.MustDo("KEYS", "*").([]any)
	for _, k := range list {
		key := k.(string)
		if strings.HasPrefix(key, unlockLatch) || strings.HasPrefix(key, "redlatch_client:") {
			continue
		}
		h := m.value(key, now)
		ttl, _ := m.w.server.MustDo("PTTL", key).(int64)
		h.TTLMs = golden.RoundUp(ttl)
		all[m.names.Replace(key)] = h
	}
	return all
}

// value returns what stands at a key.
func (m *monitor) value(key string, now int64) golden.Hash {
	m.w.t.Helper()
	h := golden.Hash{Fields: map[string]string{}}
	switch kind := m.w.server.MustDo("TYPE", key); kind {
	case "hash":
		h.Fields = m.plainPairs(m.w.server.MustDo("HGETALL", key), now)
	case "zset":
		h.Scores = m.plainPairs(m.w.server.MustDo("ZRANGE", key, "0", "-1", "WITHSCORES"), now)
	case "list":
		list, _ := m.w.server.MustDo("LRANGE", key, "0", "-1").([]any)
		for _, e := range list {
			h.List = append(h.List, m.names.Replace(e.(string)))
		}
	case "string":
		h.Value, _ = m.w.server.MustDo("GET", key).(string)
	default:
		m.w.t.Fatalf("%q is a %v", key, kind)
	}
	return h
}

func (m *monitor) plainPairs(reply any, now int64) map[string]string {
	out := map[string]string{}
	for field, value := range pairs(reply) {
		out[m.names.Replace(m.random(field))] = m.names.Replace(sinceNow(now, []string{value})[0])
	}
	return out
}
