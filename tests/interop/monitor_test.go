package interop

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A monitor sees every command that a server runs, those of scripts included.
type monitor struct {
	w       *world
	conn    net.Conn
	lines   *bufio.Scanner
	names   *strings.Replacer // of what differs from run to run
	marks   int
	pending []command
}

// A command as MONITOR shows it.
type command struct {
	inScript bool
	args     []string
}

func newMonitor(w *world, uuid, owner1, owner2 string) *monitor {
	w.t.Helper()
	conn, err := w.server.Dial(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(storyLimit)); err != nil {
		w.t.Fatal(err)
	}
	m := &monitor{
		w: w, conn: conn, lines: bufio.NewScanner(conn),
		names: strings.NewReplacer(owner1, "<uuid>:<t1>", owner2, "<uuid>:<t2>", uuid, "<uuid>"),
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
	_, rest, ok := strings.Cut(line, " [")
	source, rest, ok2 := strings.Cut(rest, "] ")
	if !ok || !ok2 {
		m.w.t.Fatalf("MONITOR says %q", line)
	}
	c := command{inScript: strings.HasSuffix(source, " lua")}
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

// awaitScript waits until a script runs.
func (m *monitor) awaitScript() {
	m.w.t.Helper()
	for {
		c := m.next()
		m.pending = append(m.pending, c)
		if c.inScript {
			return
		}
	}
}

var (
	requestID = regexp.MustCompile(`[0-9a-f]{32}`)
	latch     = "redisson_unlock_latch"
)

// plain replaces what differs from run to run.
func (m *monitor) plain(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = requestID.ReplaceAllString(m.names.Replace(a), "<request>")
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

// note adds to s what was seen since the last note.
func (m *monitor) note(s *goldenStep) {
	m.w.t.Helper()
	for _, c := range m.seen() {
		switch verb := strings.ToLower(c.args[0]); {
		case c.inScript:
			script := &s.Scripts[len(s.Scripts)-1]
			args := m.plain(c.args)
			args[0] = verb
			if len(args) > 1 && strings.HasPrefix(args[1], latch) {
				args = withoutLatchTTL(args)
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
			keys, args := m.plain(c.args[3:3+n]), m.plain(c.args[3+n:])
			if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, latch) }) {
				args = withoutLatchTTL(args)
			}
			s.Scripts = append(s.Scripts, goldenScript{Keys: strings.Join(keys, " "), Args: strings.Join(args, " ")})
		case verb == "subscribe":
			s.Subscribed = append(s.Subscribed, c.args[1:]...)
		}
	}
	// One that the server did not know is sent twice; only the second ran.
	s.Scripts = slices.DeleteFunc(s.Scripts, func(x goldenScript) bool { return len(x.Runs) == 0 })
}

// keys returns what is in Redis, but for unlock latches.
func (m *monitor) keys() map[string]goldenHash {
	m.w.t.Helper()
	all := map[string]goldenHash{}
	list, _ := m.w.server.MustDo("KEYS", "*").([]any)
	for _, key := range list {
		name := key.(string)
		if strings.HasPrefix(name, latch) {
			continue
		}
		h := goldenHash{Fields: map[string]string{}}
		for field, value := range pairs(m.w.server.MustDo("HGETALL", name)) {
			h.Fields[m.names.Replace(field)] = value
		}
		ttl, _ := m.w.server.MustDo("PTTL", name).(int64)
		h.TTLMs = (ttl + 999) / 1000 * 1000
		all[name] = h
	}
	return all
}
