package real

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchtest"
	"github.com/redlatch/redlatch/tests/internal/commands"
)

// An asker is a connection to a server, a real one or the embedded one.
type asker func(args ...string) any

func embedded(t *testing.T) asker {
	t.Helper()
	c, err := redlatchtest.NewServer(t).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return over(t, c)
}

func over(t *testing.T, c net.Conn) asker {
	in := bufio.NewReader(c)
	return func(args ...string) any {
		if _, err := c.Write([]byte(request(args))); err != nil {
			t.Fatal(err)
		}
		v, err := server.ParseReply(in)
		if err != nil {
			return told(err)
		}
		return told(v)
	}
}

func request(args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// dialled returns a connection to a real server, on which everything is allowed.
func dialled(t *testing.T, s *testserver.Server) asker {
	t.Helper()
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ask := over(t, c)
	if answer := ask("AUTH", testserver.Admin, testserver.AdminPassword); answer != "+OK" {
		t.Fatal(answer)
	}
	return ask
}

// An example is a command, with what is there before it: each key ends in 1000000
// ms.
type example struct{ there, command string }

const long = "1000000"

// The examples have each command that scripts give and that a TTL may matter to.
var examples = []example{
	{"", "SET k v"},
	{"SET k 1", "SET k 2"},
	{"SET k 1", "SET k 2 PX 2000000"},
	{"", "SET k 2 PX 2000000"},
	{"SET k 1", "GET k"},
	{"SET k 1", "INCR k"},
	{"", "INCR k"},
	{"SET k 1", "INCRBY k 0"},
	{"SET k 1", "INCRBY k -3"},
	{"SET k 1", "DECR k"},
	{"SET k 1", "DECRBY k 4"},
	{"SET k text", "INCR k"},
	{"HSET k a 1", "INCR k"},
	{"SET k 1", "DEL k"},
	{"", "DEL k"},
	{"SET k 1", "UNLINK k"},
	{"SET k 12345", "GETRANGE k 1 2"},
	{"", "GETRANGE k 0 1"},
	{"SET k 1", "EXISTS k"},
	{"SET k 1", "TYPE k"},
	{"", "TYPE k"},
	{"SET k 1", "PTTL k"},
	{"", "PTTL k"},
	{"SET k 1", "PERSIST k"},
	{"", "PERSIST k"},
	{"SET k 1", "PEXPIRE k 2000000"},
	{"", "PEXPIRE k 2000000"},
	{"SET k 1", "PEXPIRE k 0"},
	{"SET k 1", "PEXPIRE k -5"},
	{"HSET k a 1", "PEXPIRE k 0"},
	{"SET k 1", "PEXPIRE k 1.5"},
	{"SET k 1", "PEXPIREAT k 1"},
	{"SET k 1", "PEXPIREAT k 4102444800000"},
	{"HSET k a 1", "HSET k a 2"},
	{"HSET k a 1", "HSET k a 2 b 3"},
	{"", "HSET k a 1"},
	{"SET k 1", "HSET k a 1"},
	{"HSET k a 1", "HSETNX k a 2"},
	{"HSET k a 1", "HSETNX k b 2"},
	{"HSET k a 1", "HINCRBY k a -1"},
	{"HSET k a 1", "HINCRBY k b 1"},
	{"HSET k a text", "HINCRBY k a 1"},
	{"HSET k a 1 b 2", "HDEL k a"},
	{"HSET k a 1", "HDEL k a b"},
	{"HSET k a 1", "HDEL k b"},
	{"HSET k a 1", "HGET k b"},
	{"HSET k a 1", "HMGET k a b"},
	{"", "HMGET k a b"},
	{"SET k 1", "HGET k a"},
	{"HSET k a 1", "HEXISTS k a"},
	{"HSET k a 1", "HLEN k"},
	{"HSET k a 1", "HKEYS k"},
	{"HSET k a 1", "HGETALL k"},
	{"HSET k a 1", "HRANDFIELD k 2"},
	{"", "HRANDFIELD k 2"},
	{"RPUSH k a b", "RPUSH k c"},
	{"", "RPUSH k c"},
	{"RPUSH k a b", "LPOP k"},
	{"RPUSH k a", "LPOP k"},
	{"", "LPOP k"},
	{"RPUSH k a b a", "LREM k 0 a"},
	{"RPUSH k a", "LREM k 0 a"},
	{"RPUSH k a b", "LSET k 1 c"},
	{"RPUSH k a", "LSET k 1 c"},
	{"", "LSET k 0 c"},
	{"RPUSH k a b", "LINDEX k 0"},
	{"", "LINDEX k 0"},
	{"RPUSH k a b", "LINDEX k -1"},
	{"RPUSH k a b", "LRANGE k 0 -1"},
	{"RPUSH k a b", "LLEN k"},
	{"ZADD k 1 a", "ZADD k 2 a 3 b"},
	{"", "ZADD k 1.5 a"},
	{"ZADD k 1 a", "ZADD k XX 2 b"},
	{"ZADD k 1 a", "ZADD k XX 2 a"},
	{"ZADD k 1 a", "ZADD k XX INCR 2 a"},
	{"ZADD k 1 a", "ZADD k XX INCR 2 b"},
	{"", "ZADD k XX INCR 2 b"},
	{"ZADD k 1 a", "ZINCRBY k -2 a"},
	{"ZADD k 1 a 2 b", "ZREM k a"},
	{"ZADD k 1 a", "ZREM k a"},
	{"ZADD k 1 a 2 b", "ZREMRANGEBYSCORE k -inf 1"},
	{"ZADD k 1 a", "ZREMRANGEBYSCORE k -inf (1"},
	{"ZADD k 1 a", "ZREMRANGEBYSCORE k -inf 1"},
	{"ZADD k 1 a 2 b 3 c", "ZREMRANGEBYRANK k 0 1"},
	{"ZADD k 1 a", "ZREMRANGEBYRANK k 0 -1"},
	{"", "ZREMRANGEBYRANK k 0 -1"},
	{"ZADD k 946685400591.5 a", "ZSCORE k a"},
	{"ZADD k 9007199254740991 a", "ZSCORE k a"},
	{"ZADD k 1 a", "ZSCORE k b"},
	{"ZADD k 1 a", "ZMSCORE k a b"},
	{"ZADD k 1 a 2 b", "ZCARD k"},
	{"ZADD k 1 a 2 b", "ZCOUNT k (1 +inf"},
	{"ZADD k 1 b 1 a", "ZRANGE k 0 -1 WITHSCORES"},
	{"ZADD k 1 b 1 a", "ZRANGE k -1 -1"},
	{"ZADD k 1 b 2 a", "ZRANGEBYSCORE k (1 +inf WITHSCORES LIMIT 0 1"},
	{"ZADD k 1 b 1 a", "ZRANK k b"},
	{"", "ZRANGE k 0 -1"},
}

// TestCommandsLeaveWhatRealOnesLeave asks the embedded server and each real one
// for each example.
func TestCommandsLeaveWhatRealOnesLeave(t *testing.T) {
	mini := embedded(t)
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			ask := dialled(t, testserver.Start(t, kind))
			for _, x := range examples {
				a, b := x.try(mini), x.try(ask)
				if !equal(b.answer, a.answer) || a.there != b.there || math.Abs(a.ttl-b.ttl) > float64(time.Minute.Milliseconds()) {
					t.Errorf("%s, then %s: %+v, in the embedded server %+v", x.there, x.command, b, a)
				}
			}
		})
	}
}

// TestSpreadingCommandsAlwaysReachReplicas has each command write what is there
// already: what a server counts as a change it sends to its replicas. Simulations
// have WAIT ask only for what was sent.
func TestSpreadingCommandsAlwaysReachReplicas(t *testing.T) {
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			ask := dialled(t, testserver.Start(t, kind))
			changes := func() string {
				_, after, _ := strings.Cut(fmt.Sprint(ask("INFO", "persistence")), "rdb_changes_since_last_save:")
				n, _, _ := strings.Cut(after, "\r")
				return n
			}
			seen := map[string]bool{}
			for _, x := range append(slices.Clone(examples), example{"HSET k a 1", "HSET k a 1"}, example{"SET k 1", "PEXPIRE k " + long},
				example{"RPUSH k a", "LSET k 0 a"}, example{"HSET k a 1", "HINCRBY k a 0"}) {
				x.prepare(ask)
				before := changes()
				answer := fmt.Sprint(ask(strings.Fields(x.command)...))
				cmd, _, _ := strings.Cut(x.command, " ")
				switch spreads := changes() != before; {
				case x.there == "" || strings.HasPrefix(answer, "-"):
				case commands.Spreading[cmd] && !spreads:
					t.Errorf("%s, then %s: no replica hears of it", x.there, x.command)
				default:
					seen[cmd] = true
				}
			}
			for cmd := range commands.Spreading {
				if !seen[cmd] && slices.Contains(given(t), cmd) {
					t.Errorf("%s has no example", cmd)
				}
			}
		})
	}
}

// A result is what became of an example.
type result struct {
	answer any
	there  string // the type of the key
	ttl    float64
}

func (x example) prepare(ask asker) {
	ask("DEL", "k", "other")
	if x.there != "" {
		ask(strings.Fields(x.there)...)
		ask("PEXPIRE", "k", long)
	}
}

func (x example) try(ask asker) (r result) {
	x.prepare(ask)
	r.answer = ask(strings.Fields(x.command)...)
	if strings.HasPrefix(x.command, "PTTL") && lives(r.answer) {
		r.answer = ":left"
	}
	r.there = fmt.Sprint(ask("TYPE", "k"))
	_, _ = fmt.Sscanf(fmt.Sprint(ask("PTTL", "k")), ":%g", &r.ttl)
	return r
}

// TestAKeyThatHasEndedIsNotThere waits for the end of a key of each type.
func TestAKeyThatHasEndedIsNotThere(t *testing.T) {
	mini := embedded(t)
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			ask := dialled(t, testserver.Start(t, kind))
			for _, x := range []struct{ there, later, want string }{
				{"SET k 5", "GET k", "_"},
				{"SET k 5", "INCR k", ":1"},
				{"HSET k a 5", "HGET k a", "_"},
				{"HSET k a 5", "HINCRBY k a 1", ":1"},
				{"HSET k a 5", "HSET k a 1", ":1"},
				{"RPUSH k a", "RPUSH k b", ":1"},
				{"ZADD k 1 a", "ZCARD k", ":0"},
				{"ZADD k 1 a", "ZADD k XX INCR 1 a", "_"},
				{"SET k 5", "PTTL k", ":-2"},
				{"SET k 5", "PEXPIRE k 1000", ":0"},
			} {
				for name, ask := range map[string]asker{"real": ask, "embedded": mini} {
					ask("DEL", "k")
					ask(strings.Fields(x.there)...)
					ask("PEXPIRE", "k", "1")
					for end := time.Now().Add(time.Minute); ask("EXISTS", "k") != ":0"; {
						if time.Now().After(end) {
							t.Fatalf("%s, %s: it never ends", name, x.there)
						}
					}
					if got := ask(strings.Fields(x.later)...); got != x.want {
						t.Errorf("%s, %s, then %s: %v, not %v", name, x.there, x.later, got, x.want)
					}
					if ttl := fmt.Sprint(ask("PTTL", "k")); ttl != ":-1" && ttl != ":-2" {
						t.Errorf("%s, %s, then %s: it has the TTL %s", name, x.there, x.later, ttl)
					}
				}
			}
		})
	}
}

// TestListenersAreCountedAsRealServersDo has two listeners to one channel, and
// none to another.
func TestListenersAreCountedAsRealServersDo(t *testing.T) {
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			s := testserver.Start(t, kind)
			one := redlatchtest.NewServer(t)
			mini := func() asker {
				c, err := one.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return over(t, c)
			}
			for name, connect := range map[string]func() asker{"real": func() asker { return dialled(t, s) }, "embedded": mini} {
				ask := connect()
				for range 2 {
					connect()("SUBSCRIBE", "both")
				}
				for command, want := range map[string]string{
					"PUBLISH both x": ":2", "PUBLISH none x": ":0",
					"PUBSUB NUMSUB both none": "[$both :2 $none :0]", "PUBSUB NUMSUB": "[]",
				} {
					if got := fmt.Sprint(ask(strings.Fields(command)...)); got != want {
						t.Errorf("%s, %s: %s, not %s", name, command, got, want)
					}
				}
			}
		})
	}
}

// given returns the commands that scripts give.
func given(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../../internal/lua/*.lua*")
	if err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	call := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestEachCommandOfAScriptHasAnExample(t *testing.T) {
	apart := []string{"PUBLISH", "PUBSUB", "TIME"}
	for _, cmd := range given(t) {
		if !slices.Contains(apart, cmd) && !slices.ContainsFunc(examples, func(x example) bool { return strings.HasPrefix(x.command, cmd+" ") }) {
			t.Errorf("%s has none", cmd)
		}
	}
}

// TestServersRefuseWhatTheListsSay has real servers refuse each command inside a
// script: for want of memory, and again behind another command that writes; for
// want of a disk; and as a replica. Simulations refuse what package commands
// lists.
func TestServersRefuseWhatTheListsSay(t *testing.T) {
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			s := testserver.Start(t, kind, "--dbfilename", "in-the-way")
			ask := dialled(t, s)
			script := func(x example, before string) string {
				text := before + "local answer = redis.pcall(unpack(ARGV)) return type(answer) == 'table' and answer.err or 'done'"
				return code(fmt.Sprint(ask(append([]string{"EVAL", text, "0"}, strings.Fields(x.command)...)...)))
			}
			each := func(what, before, want string, refused func(cmd string) bool) {
				t.Helper()
				for _, x := range examples {
					cmd, _, _ := strings.Cut(x.command, " ")
					if got := script(x, before) == want; got != refused(cmd) {
						t.Errorf("%s, %s: refused is %v", what, x.command, got)
					}
				}
			}
			writes := func(cmd string) bool { return commands.Growing[cmd] || commands.Writing[cmd] }
			ask("CONFIG", "SET", "maxmemory", "1")
			each("no memory", "", "OOM", func(cmd string) bool { return commands.Growing[cmd] })
			each("no memory, after a write", "redis.call('DEL', 'other') ", "OOM", func(string) bool { return false })
			ask("CONFIG", "SET", "maxmemory", "0")

			if err := os.Mkdir(filepath.Join(s.Dir(), "in-the-way"), 0o700); err != nil {
				t.Fatal(err)
			}
			ask("CONFIG", "SET", "save", "3600 1000000")
			ask("BGSAVE")
			for end := time.Now().Add(time.Minute); !strings.Contains(fmt.Sprint(ask("INFO", "persistence")), "rdb_last_bgsave_status:err"); {
				if time.Now().After(end) {
					t.Fatal("it can save")
				}
				time.Sleep(10 * time.Millisecond)
			}
			each("no disk", "", "MISCONF", writes)
			ask("CONFIG", "SET", "save", "")
			if err := os.Remove(filepath.Join(s.Dir(), "in-the-way")); err != nil {
				t.Fatal(err)
			}

			ask("REPLICAOF", "127.0.0.1", "1")
			each("a replica", "", "READONLY", writes)
		})
	}
}
