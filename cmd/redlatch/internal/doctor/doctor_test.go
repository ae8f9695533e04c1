package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a server with canned answers. The zero fake is one to which nothing
// is missing.
type fake struct {
	t       *testing.T
	address string
	info    map[string]string // instead of what it says when all is well
	config  map[string]string // likewise
	answers map[string]any    // by the command, or its beginning; an error is refused with
	skew    time.Duration
	cluster bool // used as one
	mute    bool // messages do not arrive
	alone   bool // nobody is counted as a listener
	deaf    error

	messages chan string
}

const healthyInfo = `# Server
redis_version:7.0.15
redis_mode:standalone
process_id:7

# Memory
used_memory:1048576
maxmemory:104857600
maxmemory_policy:noeviction
aof_enabled:1
aof_last_write_status:ok
rdb_last_bgsave_status:ok
role:master
connected_slaves:0
master_repl_offset:5000000
connected_clients:3
maxclients:10000
evicted_keys:0
cluster_enabled:0
`

var healthyConfig = map[string]string{
	"appendfsync": "always", "save": "", "stop-writes-on-bgsave-error": "yes", "min-replicas-to-write": "1",
	"timeout": "0", "tcp-keepalive": "300", "client-output-buffer-limit": "normal 0 0 0 pubsub 33554432 8388608 60", "maxclients": "10000",
}

func (f *fake) Address() string { return f.address }

func (f *fake) Single() bool { return !f.cluster }

func (f *fake) Do(_ context.Context, commands ...[]string) (answers []Answer) {
	for _, args := range commands {
		value := f.answer(args)
		if err, ok := value.(error); ok {
			answers = append(answers, Answer{nil, err})
			continue
		}
		answers = append(answers, Answer{value, nil})
	}
	return answers
}

func (f *fake) answer(args []string) any {
	for n := len(args); n > 0; n-- {
		if v, ok := f.answers[strings.Join(args[:n], " ")]; ok {
			return v
		}
	}
	switch args[0] {
	case "INFO":
		text := healthyInfo
		for name, value := range f.info {
			text = regexp.MustCompile(`(?m)^`+name+`:.*\n`).ReplaceAllString(text, "") + name + ":" + value + "\n"
		}
		return strings.ReplaceAll(text, "\n", "\r\n")
	case "CONFIG":
		if value, ok := f.config[args[2]]; ok {
			return []any{args[2], value}
		}
		return []any{args[2], healthyConfig[args[2]]}
	case "PING":
		return "PONG"
	case "TIME":
		now := time.Now().Add(f.skew)
		return []any{fmt.Sprint(now.Unix()), fmt.Sprint(now.Nanosecond() / 1000)}
	case "EVAL":
		switch args[1] {
		case try:
			return []any{}
		case tell, tellSharded:
			if !f.mute {
				f.messages <- args[len(args)-1]
			}
			if f.alone {
				return int64(0)
			}
		}
		return int64(1)
	case "EVALSHA":
		return int64(1)
	case "SCAN":
		return []any{"0", []any{}}
	case "CLUSTER":
		switch args[1] {
		case "MYID":
			return "me"
		case "SLOTS":
			return []any{
				[]any{int64(0), int64(8000), []any{"127.0.0.1", int64(7000), "other"}},
				[]any{int64(8001), int64(16383), []any{"127.0.0.1", int64(7001), "me"}},
			}
		}
		return "cluster_state:ok\r\n"
	case "PUBSUB":
		return []any{}
	case "PTTL":
		return int64(1000)
	case "ACL":
		return "OK"
	case "ROLE":
		return []any{"master", int64(0), []any{}}
	case "EXISTS", "DBSIZE", "WAIT":
		return int64(0)
	case "LINDEX":
		return nil
	case "HLEN":
		return int64(1)
	case "HRANDFIELD", "HGETALL", "ZRANGE":
		return []any{}
	case "GETRANGE":
		return "1"
	}
	return &ReplyError{"ERR", "unknown command " + args[0]}
}

func (f *fake) Listen(context.Context, string, bool) (<-chan string, func(), error) {
	f.messages = make(chan string, 1)
	return f.messages, func() {}, f.deaf
}

// examine wants fake time: in the other one a busy machine has a latency.
func examine(t *testing.T, servers ...*fake) Report {
	t.Helper()
	var all []Server
	for _, f := range servers {
		f.t = t
		if f.address == "" {
			f.address = "here"
		}
		all = append(all, f)
	}
	r, err := Examine(t.Context(), all, Options{MaxClockSkew: time.Second, Keys: 2 * step, Linger: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A healthy server is fine in all respects.
func TestHealthy(t *testing.T) { synctest.Test(t, testHealthy) }

func testHealthy(t *testing.T) {
	r := examine(t, &fake{})
	if r.Severity != OK || len(r.Findings) != 10 {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Findings {
		if f.Severity != OK || f.What == "" || f.Consequence != "" || f.Remedy != "" || !slices.Equal(f.Servers, []string{"here"}) {
			t.Errorf("%+v", f)
		}
	}
}

const (
	java = "5f1b3c2e-6d0a-4d8e-9a51-0123456789ab:1"
	ours = "5f1b3c2e-6d0a-8d8e-9a51-0123456789ab:1"
)

// scanned is a server with these keys, of which SCAN knows.
func scanned(filter string, names []any, answers map[string]any) *fake {
	f := &fake{answers: map[string]any{"SCAN 0 COUNT 1000 " + filter: []any{"0", names}}}
	maps.Copy(f.answers, answers)
	return f
}

func noperm(what string) *ReplyError {
	return &ReplyError{"NOPERM", "NOPERM this user has no permissions to run the '" + what + "' command"}
}

var inScript = map[right]string{
	onCommand: "The user executing the script can't run this command or subcommand script: e1",
	onChannel: "ERR The user executing the script can't access at least one of the channels mentioned in the command",
	onKey:     "The user executing the script can't access at least one of the keys mentioned in the command",
	another:   "OOM command not allowed when used memory > 'maxmemory'.",
}

// failing is a server that refuses some of what scripts do.
func failing(r right, names ...string) *fake {
	var failed []any
	for i, c := range wantedAt(false) {
		if slices.Contains(names, c.name()) {
			failed = append(failed, int64(i), inScript[r])
		}
	}
	return &fake{answers: map[string]any{"EVAL " + try: failed}}
}

// Each finding is found, and everything else stays fine.
func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		name     string
		server   *fake
		check    string
		severity Severity
		what     string
	}{
		{"no INFO", &fake{answers: map[string]any{"INFO": noperm("info")}}, "access", Note, "INFO is refused (NOPERM)"},
		{"no ROLE", &fake{answers: map[string]any{"ROLE": noperm("role")}}, "replicas", Note, "ROLE is refused (NOPERM)"},
		{"no WAIT", &fake{answers: map[string]any{"WAIT": &ReplyError{"ERR", "unknown command"}}}, "replicas", Note, "WAIT is refused (ERR)"},
		{"no CONFIG", &fake{info: map[string]string{"aof_enabled": ""}, answers: map[string]any{"CONFIG": &ReplyError{"ERR", "unknown command"}}}, "access", Note, "CONFIG GET is refused (ERR)"},

		{"old Redis", &fake{info: map[string]string{"redis_version": "6.0.16"}}, "server", Problem, "Redis 6.0.16, standalone; the oldest that is supported is Redis 6.2"},
		{"old Valkey", &fake{info: map[string]string{"valkey_version": "7.0.1"}}, "server", Problem, "Valkey 7.0.1"},
		{"another server", &fake{info: map[string]string{"redis_version": ""}}, "server", Note, "which server"},
		{"replica", &fake{info: map[string]string{"role": "slave"}}, "server", Problem, "this is a replica"},
		{"loading", &fake{info: map[string]string{"loading": "1"}}, "server", Warning, "loading"},
		{"node of a cluster", &fake{
			info:    map[string]string{"cluster_enabled": "1", "connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=0"},
			answers: map[string]any{"EVAL return 1 1": &ReplyError{"MOVED", "MOVED 7 127.0.0.1:7000"}},
		}, "server", Problem, "as a single server"},
		{"endpoint that says what one of its shards says", &fake{
			info:    map[string]string{"cluster_enabled": "1", "connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=0"},
			answers: map[string]any{"EVAL return 1 2": &ReplyError{"CROSSSLOT", "CROSSSLOT Keys in request don't hash to the same slot"}},
		}, "server", OK, "are refused in one request (CROSSSLOT)"},
		{"endpoint in front of shards", &fake{
			info: map[string]string{"cluster_enabled": "1", "connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=0"},
			answers: map[string]any{
				"EVAL return 1 2": &ReplyError{"CROSSSLOT", "CROSSSLOT Keys in request don't hash to the same slot"},
				"CLUSTER SLOTS":   []any{[]any{int64(0), int64(16383), []any{"127.0.0.1", int64(7001), "me"}}},
			},
		}, "server", OK, "are refused in one request (CROSSSLOT)"},
		{"cluster that is down", &fake{
			cluster: true, answers: map[string]any{"CLUSTER INFO": "cluster_enabled:1\r\ncluster_state:fail\r\n"},
			info: map[string]string{"cluster_enabled": "1", "connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=0"},
		}, "server", Problem, "the cluster's state is fail"},

		{"clock ahead", &fake{skew: 3 * time.Second}, "clock", Warning, "the server's clock is 3s ahead of this machine's"},
		{"clock behind", &fake{skew: -3 * time.Second}, "clock", Warning, "the server's clock is 3s behind this machine's"},
		{"no TIME", &fake{answers: map[string]any{"TIME": noperm("time")}}, "clock", Note, "TIME is refused"},

		{"volatile", &fake{info: map[string]string{"maxmemory_policy": "volatile-ttl", "evicted_keys": "17"}}, "eviction", Problem, "maxmemory-policy is volatile-ttl; 1.0 MiB of 100.0 MiB are used, and 17 keys"},
		{"allkeys", &fake{info: map[string]string{"maxmemory_policy": "allkeys-lru"}}, "eviction", Problem, "maxmemory-policy is allkeys-lru"},
		{"allkeys without a limit", &fake{info: map[string]string{"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}}, "eviction", Note, "maxmemory is not set"},
		{"nearly full", &fake{info: map[string]string{"used_memory": "100000000"}}, "memory", Warning, "nearly full: 95.4 MiB of 100.0 MiB"},
		{"full", &fake{info: map[string]string{"used_memory": "104857600"}}, "memory", Problem, "full"},

		{"everysec", &fake{config: map[string]string{"appendfsync": "everysec"}}, "persistence", Note, "once a second"},
		{"fsync that cannot be seen", &fake{config: map[string]string{"appendfsync": ""}}, "persistence", Note, "how often it is synced cannot be seen"},
		{"no fsync while it is rewritten", &fake{config: map[string]string{"no-appendfsync-on-rewrite": "yes"}}, "persistence", Warning, "no-appendfsync-on-rewrite yes"},
		{"log that is not read", &fake{answers: map[string]any{"ACL DRYRUN default PEXPIREAT": "no"}}, "persistence", Warning, "the default user may not use PEXPIREAT"},
		{"log that may not be read", &fake{answers: map[string]any{"ACL": noperm("acl|dryrun")}}, "persistence", Note, "ACL DRYRUN is refused"},
		{"no fsync", &fake{config: map[string]string{"appendfsync": "no"}}, "persistence", Warning, "appendfsync no"},
		{"snapshots", &fake{info: map[string]string{"aof_enabled": "0"}, config: map[string]string{"save": "3600 1"}}, "persistence", Warning, "only snapshots (save 3600 1)"},
		{"nothing", &fake{info: map[string]string{"aof_enabled": "0"}}, "persistence", Warning, "nothing is stored"},
		{"default user without rights", &fake{answers: map[string]any{
			"ACL DRYRUN default PEXPIREAT": "This user has no permissions to run the 'pexpireat' command",
			"ACL DRYRUN default INCRBY":    "This user has no permissions to run the 'incrby' command",
		}}, "persistence", Warning, "the default user may not use INCRBY, PEXPIREAT"},
		{"default user without keys", &fake{answers: map[string]any{
			"ACL DRYRUN default DEL redisson_lock_queue:{redlatch_doctor:}": "This user has no permissions to access the 'redisson_lock_queue:{redlatch_doctor:}' key",
		}}, "persistence", Warning, "the default user may not use keys named redisson_lock_queue:{NAME}"},
		{"default user without SELECT, and keys in another database", &fake{
			info:    map[string]string{"redis_version": "7.2.0", "db0": "keys=1,expires=0", "db7": "keys=1,expires=0"},
			answers: map[string]any{"ACL DRYRUN default SELECT 0": "This user has no permissions to run the 'select' command"},
		}, "persistence", Warning, "the default user may not use SELECT"},
		{"default user with other keys", &fake{answers: map[string]any{
			"ACL DRYRUN default": "User default has no permissions to access the 'redlatch_doctor:' key",
		}}, "persistence", Warning, "the default user may not use keys named NAME, redisson_lock_queue:{NAME}, redisson_lock_timeout:{NAME} and "},
		{"default user without nearly all", &fake{answers: map[string]any{
			"ACL DRYRUN default":      "User default has no permissions to run the 'x' command",
			"ACL DRYRUN default HSET": "OK",
			"ACL DRYRUN default DEL":  "OK",
			"ACL DRYRUN default DEL redisson_lock_token:{redlatch_doctor:}": "User default has no permissions to access the 'redisson_lock_token:{redlatch_doctor:}' key",
		}}, "persistence", Warning, " more, nor keys named redisson_lock_token:{NAME}"},
		{"no DRYRUN", &fake{answers: map[string]any{"ACL DRYRUN": noperm("acl|dryrun")}}, "persistence", Note, "cannot be seen (ACL DRYRUN is refused)"},
		{"log that cannot be written", &fake{info: map[string]string{"aof_last_write_status": "err"}}, "persistence", Problem, "append-only file could not be written"},
		{"snapshot that failed", &fake{info: map[string]string{"rdb_last_bgsave_status": "err"}}, "persistence", Problem, "last snapshot has failed"},
		{"snapshot that failed, and need not", &fake{info: map[string]string{"rdb_last_bgsave_status": "err"}, config: map[string]string{"stop-writes-on-bgsave-error": "no"}}, "persistence", Warning, "last snapshot has failed"},

		{"replica not online", &fake{info: map[string]string{"connected_slaves": "1", "slave0": "ip=h,port=1,state=wait_bgsave,offset=0,lag=0"}}, "replicas", Warning, "replica h:1 is not online: wait_bgsave"},
		{"silent replica", &fake{info: map[string]string{"connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=12"}}, "replicas", Warning, "replica h:1 has not been heard for 12 s"},
		{"slow replica", &fake{info: map[string]string{"connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=1000000,lag=1"}}, "replicas", Warning, "replica h:1 is 3.8 MiB behind"},
		{"writes without replicas", &fake{info: map[string]string{"connected_slaves": "1", "slave0": "ip=h,port=1,state=online,offset=5000000,lag=0"}, config: map[string]string{"min-replicas-to-write": "0"}}, "replicas", Note, "min-replicas-to-write 0"},
		{"cluster without replicas", &fake{cluster: true, info: map[string]string{"cluster_enabled": "1"}}, "replicas", Warning, "this primary has no replica"},

		{"many connections", &fake{info: map[string]string{"connected_clients": "9000"}}, "connections", Warning, "9000 of 10000"},
		{"timeout", &fake{config: map[string]string{"timeout": "5"}}, "connections", Note, "idle for 5 s"},
		{"no keepalive", &fake{config: map[string]string{"tcp-keepalive": "0"}}, "connections", Note, "tcp-keepalive is 0"},
		{"small buffers", &fake{config: map[string]string{"client-output-buffer-limit": "normal 0 0 0 pubsub 65536 8192 60"}}, "connections", Note, "65536 bytes"},

		{"no EVALSHA", &fake{answers: map[string]any{"EVALSHA": noperm("evalsha")}}, "scripts", Problem, "EVALSHA is refused (NOPERM)"},
		{"no HSET", failing(onCommand, "HSET", "PEXPIRE"), "commands", Problem, "refused to the user in scripts: HSET, PEXPIRE"},
		{"no PUBLISH", failing(onCommand, "PUBLISH"), "commands", Problem, "refused to the user in scripts: PUBLISH"},
		{"no ZADD", failing(onCommand, "ZADD"), "commands", Warning, "refused to the user in scripts: ZADD"},
		{"no memory", failing(another, "HSET"), "commands", Note, "commands could not be tried: OOM"},
		{"another key", failing(onKey, "HSET"), "commands", Note, "the user may not touch the key redlatch_doctor:"},
		{"another key at once", &fake{answers: map[string]any{"EVAL " + try: &ReplyError{"NOPERM", "NOPERM No permissions to access a key"}}}, "commands", Note, "the user may not touch the key redlatch_doctor:"},

		{"no SUBSCRIBE", &fake{deaf: noperm("subscribe")}, "pubsub", Warning, "SUBSCRIBE on a lock's channel is refused (NOPERM)"},
		{"no script with PUBLISH", &fake{answers: map[string]any{"EVAL " + tell: &ReplyError{"ERR", "no such thing"}}}, "pubsub", Note, "PUBLISH in a script failed"},
		{"no message", &fake{mute: true}, "pubsub", Problem, "a message did not arrive within 5s"},

		{"message that is not counted", &fake{alone: true}, "pubsub", Note, "a message arrives, but PUBSUB does not count"},

		{"no SCAN", &fake{answers: map[string]any{"SCAN": noperm("scan")}}, "keys", Note, "SCAN is refused (NOPERM)"},
		{"many keys", &fake{answers: map[string]any{"SCAN": []any{"7", []any{}}, "DBSIZE": int64(5_000_000)}}, "keys", Note, "not all of the 5000000 keys were looked at, but about 2000"},
		{"keys that may not be read", scanned("MATCH red[il]*", []any{"redisson_unlock_latch:{a}:1"}, map[string]any{
			"PTTL": &ReplyError{"NOPERM", "NOPERM No permissions to access a key"},
		}), "keys", Note, "may not look at some keys (1 requests were refused)"},
		{"latch for ever", scanned("MATCH red[il]*", []any{"redisson_unlock_latch:{a}:1", "redisson_unlock_latch:{a}:2"}, map[string]any{
			"PTTL redisson_unlock_latch:{a}:2": int64(-1),
		}), "latches", Warning, "no TTL: redisson_unlock_latch:{a}:2"},
		{"many latches", scanned("MATCH red[il]*", numbered("redisson_unlock_latch:{a}:", 1500), nil), "latches", Note, "1500"},
		{"many tokens", scanned("MATCH red[il]*", numbered("redisson_lock_token:", 12_000), map[string]any{"PTTL": int64(-1)}), "tokens", Warning, "12000, of which 12000 have no TTL"},
		{"key of ours for ever", scanned("MATCH red[il]*", []any{"redlatch_writers:{a}", "redlatch_fence:{b}"}, map[string]any{"PTTL": int64(-1)}), "ttl", Warning, "redlatch that have no TTL: redlatch_writers:{a}"},
		{"lock for ever", scanned("TYPE hash", []any{"a", "b", "c"}, map[string]any{
			"PTTL": int64(-1), "PTTL a": int64(5), "HRANDFIELD b 2": []any{"name", "age"}, "HRANDFIELD c 2": []any{"mode", java},
		}), "ttl", Warning, "held and have no TTL: c"},

		{"twin limiters", scanned("TYPE zset", []any{"{a}:permits", "{b}:permits", "{c}d:permits"}, map[string]any{
			"EXISTS a": int64(1), "EXISTS {a}": int64(1), "EXISTS b": int64(1), "EXISTS {c}d": int64(1),
		}), "twins", Warning, "that share side keys: a"},
		{"twin queues", scanned("MATCH red[il]*", []any{"redisson_lock_queue:{a}"}, map[string]any{"EXISTS a": int64(1), "EXISTS {a}": int64(1)}), "twins", Warning, "that share side keys: a"},
		{"score without end", scanned("TYPE zset", []any{"redisson_lock_timeout:{a}", "{b}:timeout", "a user's:timeouts"}, map[string]any{
			"ZRANGE redisson_lock_timeout:{a}": []any{java, "inf"}, "ZRANGE {b}:timeout": []any{"0123456789abcdef", "922337203685477"},
		}), "contents", Warning, "no time or count: redisson_lock_timeout:{a}"},
		{"score without end, in RESP3", scanned("TYPE zset", []any{"redlatch_writers:{a}"}, map[string]any{"ZRANGE": []any{[]any{java, "1e+300"}}}), "contents", Warning, "count: redlatch_writers:{a}"},
		{"value of a group without end", hashed("g", "h:"+java+":expire_time", "1e300"), "contents", Warning, "count: g"},
		{"value of a group until what is no time", hashed("g", "h:"+java+":expire_time", "soon"), "contents", Warning, "count: g"},
		{"interval without end", hashed("g", "rate", "1", "interval", "inf"), "contents", Warning, "count: g"},
		{"rate that nobody can count with", hashed("g", "rate", "nan", "interval", "1"), "contents", Warning, "count: g"},
		{"hold count that is none", hashed("g", java, "1e9x"), "contents", Warning, "count: g"},
		{"reader with very many holds", hashed("g", "mode", "read", java, "100000000"), "contents", Warning, "more than 10000 holds: g"},
		{"very many readers", func() *fake {
			f := hashed("g", "mode", "read", java, "1")
			f.answers["HLEN g"], f.answers["HGET g mode"] = int64(100_000), "read"
			return f
		}(), "contents", Warning, "more than 10000 holds: g"},
		{"token that is none", scanned("MATCH red[il]*", []any{"redisson_lock_token:{a}"}, map[string]any{"GETRANGE": strings.Repeat("9", 21)}), "contents", Warning, "count: redisson_lock_token:{a}"},
		{"long queue", scanned("MATCH red[il]*", []any{"redisson_lock_queue:{a}"}, map[string]any{"EXISTS a": int64(1), "LINDEX redisson_lock_queue:{a} 1000": java}), "queues", Note, "more than 1000 wait for: a"},
		{"long name", scanned("MATCH red[il]*", []any{"redlatch_writers:" + strings.Repeat("x", 1000)}, map[string]any{"PTTL": int64(-1)}), "ttl", Warning, strings.Repeat("x", 100) + "..."},

		{"free, no score", queued("q", java, nil, nil), "queues", Warning, "whose first waiter has no time-out: q"},
		{"free, name with braces", queued("{q}:1", java, nil, nil), "queues", Warning, "no time-out: {q}:1"},
		{"free, time over", queued("q", java, int64(5), nil), "queues", Note, "whose first waiter has died: q"},
		{"free, silent", queued("q", ours, int64(9e15), nil), "queues", Note, "whose first waiter has died: q"},
		{"free, silent for long", queued("q", ours, int64(9e15), int64(5)), "queues", Note, "whose first waiter has died: q"},
		{"free, and not taken", queued("q", ours, int64(9e15), int64(9e15)), "queues", Warning, "that their first waiter does not take: q"},
		{"free, and not taken by Redisson", queued("q", java, int64(9e15), nil), "queues", Warning, "that their first waiter does not take: q"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // for the message that never comes
				r := examine(t, tc.server)
				if r.Severity != tc.severity {
					t.Errorf("severity %s", r.Severity)
				}
				for i, f := range r.Findings {
					switch {
					case f.Severity == OK:
					case i > 0, f.Check != tc.check, f.Severity != tc.severity, !strings.Contains(f.What, tc.what), f.Consequence == "", f.Remedy == "":
						t.Errorf("%+v", f)
					}
				}
			})
		})
	}
}

// queued is a server with a fair lock that is free and has a queue.
func queued(name, first string, until, heard any) *fake {
	key := func(p string) string {
		if strings.Contains(name, "{") {
			return p + ":" + name
		}
		return p + ":{" + name + "}"
	}
	client, _, _ := strings.Cut(first, ":")
	return scanned("MATCH red[il]*", []any{key("redisson_lock_queue")}, map[string]any{
		"LINDEX " + key("redisson_lock_queue") + " 0":          first,
		"ZSCORE " + key("redisson_lock_timeout") + " " + first: until,
		"ZSCORE " + key("redlatch_alive") + " " + client:       heard,
		"EXISTS " + name: int64(0),
	})
}

// hashed is a server with a hash, of which fields and values are given in turn.
func hashed(name string, fields ...any) *fake {
	var names []any
	for i := 0; i < len(fields); i += 2 {
		names = append(names, fields[i])
	}
	return scanned("TYPE hash", []any{name}, map[string]any{"HRANDFIELD": names, "HGETALL": fields, "HLEN": int64(len(names))})
}

func numbered(prefix string, n int) (names []any) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// The indices of those who have arrived at a barrier are no holds.
func TestABarrierIsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived []any
		for i := range 150 {
			arrived = append(arrived, fmt.Sprint(strings.TrimSuffix(ours, "1"), i), strconv.Itoa(i))
		}
		if r := examine(t, hashed("redlatch_barrier:{go}:1", arrived...)); r.Severity != OK {
			t.Errorf("%+v", r)
		}
	})
}

// A hash beside a lock or barrier has its owners, too, and is not to be released
// by force.
func TestASideKeyWithoutATTLIsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"redlatch_revoke:{x}", "redlatch_barrier:{go}:1"} {
			if r := examine(t, scanned("TYPE hash", []any{key}, map[string]any{"PTTL": int64(-1), "HRANDFIELD": []any{ours}})); r.Severity != OK {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A queue that moves on while it is looked at is no finding, nor one whose lock is
// held.
func TestQueuesThatMove(t *testing.T) { synctest.Test(t, testQueuesThatMove) }

func testQueuesThatMove(t *testing.T) {
	f := queued("q", java, int64(9e15), nil)
	taken := &taker{fake: f}
	r, err := Examine(t.Context(), []Server{taken}, Options{MaxClockSkew: time.Second, Keys: step, Linger: time.Millisecond})
	if err != nil || r.Severity != OK || taken.looked < 2 {
		t.Errorf("%+v, %v, %d looks", r, err, taken.looked)
	}
	if last := r.Findings[len(r.Findings)-1]; last.Check != "queues" || !strings.HasPrefix(last.What, "1 looked at") {
		t.Errorf("%+v", last)
	}
}

// A taker is a server whose lock is taken between two looks at it.
type taker struct {
	*fake

	looked int
}

func (s *taker) Do(ctx context.Context, commands ...[]string) []Answer {
	if commands[0][0] == "EXISTS" && commands[0][1] == "q" {
		if s.looked++; s.looked > 1 {
			return []Answer{{int64(1), nil}}
		}
	}
	return s.fake.Do(ctx, commands...)
}

func TestLatency(t *testing.T) {
	for _, tc := range []struct {
		middle, worst time.Duration
		want          Severity
	}{
		{time.Millisecond, 100 * time.Millisecond, OK},
		{20 * time.Millisecond, 30 * time.Millisecond, Note},
		{time.Millisecond, 300 * time.Millisecond, Warning},
	} {
		if got := judgeLatency("latency", []time.Duration{0, tc.worst, tc.middle}); got[0].Severity != tc.want {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// What is not known better than the limit is neither fine nor a warning.
func TestClockInDoubt(t *testing.T) {
	for _, tc := range []struct {
		skew, doubt time.Duration
		want        Severity
	}{
		{900 * time.Millisecond, 50 * time.Millisecond, OK},
		{-900 * time.Millisecond, 150 * time.Millisecond, Note},
		{1100 * time.Millisecond, 150 * time.Millisecond, Note},
		{-1200 * time.Millisecond, 150 * time.Millisecond, Warning},
	} {
		if got := judgeClock("clock", tc.skew, tc.doubt, time.Second); got[0].Severity != tc.want {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// A right that is missing on some channels or keys is not one on all.
func TestRightsOnNames(t *testing.T) {
	wanted := wantedAt(false)
	var failed []any
	for i, c := range wanted {
		if c.name() == "PUBLISH" {
			failed = append(failed, int64(i), inScript[onChannel])
		}
	}
	got := judgeCommands("k", wanted, failed)
	if len(got) != 2 || got[0].Severity != Problem || got[0].What != "refused to the user: channels named redisson_lock__channel:*" ||
		got[1].Severity != Warning || !strings.Contains(got[1].What, "redisson_countdownlatch__channel__*, redisson_lock__channel:*, redisson_rwlock:*, redisson_sc:*") {
		t.Errorf("%+v", got)
	}

	f := &fake{answers: map[string]any{"EVAL return 1 1 redisson_lock_token:{redlatch_doctor:1}": &ReplyError{"NOPERM", "NOPERM No permissions to access a key"}}}
	v := &visit{Server: f, ctx: t.Context()}
	if got := v.keysOf("redlatch_doctor:1"); len(got) != 1 || got[0].Severity != Warning || got[0].What != "refused to the user: keys named redisson_lock_token:{NAME}" ||
		got[0].Consequence != "these fail: fencing tokens" {
		t.Errorf("%+v", got)
	}
}

// In a cluster clients use one of two kinds of Pub/Sub, and must agree.
func TestSharding(t *testing.T) {
	for _, tc := range []struct {
		classic, sharded any
		want             Severity
	}{
		{[]any{}, []any{}, OK},
		{[]any{"redisson_lock__channel:{redlatch_doctor:1}"}, []any{"x"}, OK},
		{[]any{"x"}, []any{}, Note},
		{[]any{"x"}, []any{"y"}, Warning},
		{noperm("pubsub|channels"), []any{}, Note},
	} {
		f := &fake{cluster: true, answers: map[string]any{"PUBSUB CHANNELS": tc.classic, "PUBSUB SHARDCHANNELS": tc.sharded}}
		v := &visit{Server: f, ctx: t.Context(), info: map[string]string{"cluster_enabled": "1"}}
		if got := sharding(v); len(got) != 1 || got[0].Severity != tc.want {
			t.Errorf("%+v: %+v", tc, got)
		}
		f.answers["PUBSUB SHARDNUMSUB"] = &ReplyError{"ERR", "unknown subcommand"}
		if got := sharding(v); got != nil {
			t.Errorf("of an old cluster: %+v", got)
		}
	}
}

// Names lie in the slots that the server has.
func TestNameHasSlotHere(t *testing.T) {
	f := &fake{cluster: true, answers: map[string]any{"CLUSTER SLOTS": []any{[]any{int64(0), int64(16000), []any{"h", int64(1), "other"}}, []any{int64(16001), int64(16383), []any{"h", int64(2), "me"}}}}}
	v := &visit{Server: f, ctx: t.Context(), opt: Options{Prefix: "orders:"}, info: map[string]string{"cluster_enabled": "1"}}
	if name, ok := v.name(); !ok || !strings.HasPrefix(name, "orders:redlatch_doctor:") {
		t.Errorf("%q", name)
	}
	f.answers["EVAL return 1 1"] = &ReplyError{"MOVED", "MOVED 7 h:1"}
	f.answers["CLUSTER MYID"] = "nobody"
	if !v.elsewhere() {
		t.Error("a node that does not tell its slots refuses keys, and that is not noticed")
	}
	if name, ok := v.name(); ok {
		t.Errorf("%q", name)
	}
}

// A node may have nearly all slots. A name of another slot is found all the same.
func TestANodeWithNearlyAllSlotsIsNotOverlooked(t *testing.T) {
	f := &fake{cluster: true, answers: map[string]any{
		"CLUSTER SLOTS":   []any{[]any{int64(0), int64(16367), []any{"h", int64(2), "me"}}, []any{int64(16368), int64(16383), []any{"h", int64(1), "other"}}},
		"EVAL return 1 1": &ReplyError{"MOVED", "MOVED 16370 h:1"},
	}}
	v := &visit{Server: f, ctx: t.Context(), info: map[string]string{"cluster_enabled": "1"}}
	for range 20 {
		if !v.elsewhere() {
			t.Fatal("that a node refuses keys is not noticed")
		}
	}
}

// What several servers have in common stands once; the worst comes first.
func TestSeveralServers(t *testing.T) { synctest.Test(t, testSeveralServers) }

func testSeveralServers(t *testing.T) {
	bad := map[string]string{"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}
	r := examine(t, &fake{address: "a", info: bad}, &fake{address: "b"}, &fake{address: "c", info: bad, skew: time.Minute})
	if r.Severity != Warning || !slices.Equal(r.Servers, []string{"a", "b", "c"}) || r.Findings[0].Check != "clock" {
		t.Fatalf("%+v", r)
	}
	if f := r.Findings[1]; f.Check != "eviction" || !slices.Equal(f.Servers, []string{"a", "c"}) {
		t.Errorf("%+v", f)
	}
	if !slices.IsSortedFunc(r.Findings, func(x, y Finding) int { return y.Severity.rank() - x.Severity.rank() }) {
		t.Errorf("%+v", r.Findings)
	}
}

// A connection that breaks in the middle is an error, whenever it is.
func TestLostServer(t *testing.T) { synctest.Test(t, testLostServer) }

func testLostServer(t *testing.T) {
	gone := errors.New("gone")
	for _, command := range []string{"INFO", "CONFIG", "PING", "TIME", "EVAL", "EVALSHA", "SCAN", "EVAL return 1 1"} {
		_, err := Examine(t.Context(), []Server{&fake{answers: map[string]any{command: gone}}}, Options{Keys: 1})
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", command, err)
		}
	}
	if _, err := Examine(t.Context(), []Server{&fake{deaf: gone}}, Options{}); !errors.Is(err, gone) {
		t.Errorf("SUBSCRIBE: %v", err)
	}
	// Of several the others are looked at.
	r := examine(t, &fake{address: "a", answers: map[string]any{"TIME": gone}}, &fake{address: "b"})
	if f := r.Findings[0]; r.Severity != Problem || f.Check != "server" || !strings.HasSuffix(f.What, "cannot be reached: gone") || !slices.Equal(f.Servers, []string{"a"}) ||
		!slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "pubsub" && slices.Equal(f.Servers, []string{"b"}) }) {
		t.Errorf("%+v", r)
	}
}

// What is tried is cleaned up by what is tried first.
func TestDelIsTriedFirst(t *testing.T) {
	if all := wantedAt(true); all[0].args != "DEL K" {
		t.Errorf("%v", all[0])
	}
}
