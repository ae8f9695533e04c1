package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/doctor"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
)

// examined is what doctor says of a server, as JSON, with this exit code.
func examined(t *testing.T, code int, url string, args ...string) doctor.Report {
	t.Helper()
	r := &redis{url: url}
	res := r.run(t, append([]string{"doctor", "-o", "json"}, args...)...)
	got := res.code
	res.code = 0 // document wants that
	report := document[doctor.Report](t, res)
	if slices.Contains(worse(report), "latency warning") { // this machine is busy
		code = max(code, exitWarning)
	}
	if got != code {
		t.Errorf("exit code %d, want %d: %+v", got, code, report)
	}
	if report.Severity == "" || len(report.Servers) == 0 || len(report.Findings) == 0 {
		t.Fatalf("%+v", report)
	}
	return report
}

// worse returns what is not fine, as "check severity".
func worse(r doctor.Report) (all []string) {
	for _, f := range r.Findings {
		if f.Severity != doctor.OK {
			all = append(all, f.Check+" "+string(f.Severity))
		}
	}
	return all
}

func wantWorse(t *testing.T, r doctor.Report, want ...string) {
	t.Helper()
	// What a busy machine does is none of this test's business.
	got := slices.DeleteFunc(worse(r), func(s string) bool { return strings.HasPrefix(s, "latency ") })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q:\n%+v", got, want, r)
	}
}

var safe = []string{"--appendonly", "yes", "--appendfsync", "always"}

// eachKind runs a test with each of the servers, side by side.
func eachKind(t *testing.T, f func(t *testing.T, k testserver.Kind)) {
	t.Helper()
	for _, k := range testserver.EveryKind() {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			f(t, k)
		})
	}
}

// letDoctorIn lets the default user do what doctor does, and no more.
func letDoctorIn(servers ...*testserver.Server) {
	for _, s := range servers {
		words := testserver.Rule(s.Kind(), acl.Rule{Doctor: true}).Words()
		words = append(words, "+pexpireat") // without which a restart would not read the append-only file
		s.MustDo(append([]string{"ACL", "SETUSER", "default"}, words...)...)
	}
}

func TestDoctorOfHealthyServer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, append(safe, "--requirepass", password)...)
		letDoctorIn(s)
		url := "redis://:" + password + "@" + s.Addr()
		for _, protocol := range []string{"2", "3"} {
			r := examined(t, 0, url+"?protocol="+protocol)
			wantWorse(t, r)
			if len(r.Findings) < 10 {
				t.Errorf("%+v", r)
			}
		}
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}

		res := (&redis{url: url}).run(t, "doctor")
		if res.err != "" || strings.Contains(res.out, "\x1b") {
			t.Errorf("%+v", res)
		}
		busy := strings.Contains(res.out, "note     latency") || strings.Contains(res.out, "warning  latency")
		for line := range strings.Lines(res.out) {
			if !strings.HasPrefix(line, "ok ") && !busy {
				t.Errorf("%q", line)
			}
		}
	})
}

// Where a restart drops what scripts have written, because the default user might
// not write it himself, doctor says so before.
func TestDoctorKnowsWhetherTheAppendOnlyFileIsRead(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		for _, tc := range []struct{ rights, database string }{
			{"~* &* +@all", "0"},
			{"~* &* +@all", "3"},
			{"~* &* +@all -pexpireat", "0"},
			{"~other:* &* +@all", "0"},
			{"~* &* +@all -decrby", "0"},
			{"~* &* +@write", "0"},
			{"~* &* +@write", "3"},
			{"~* &* +@write +select", "3"},
		} {
			t.Run(tc.rights+" in "+tc.database, func(t *testing.T) {
				t.Parallel()
				s := testserver.Start(t, k, append(strings.Fields("--user ann on >"+password+" ~* &* +@all --user default on nopass "+tc.rights), safe...)...)
				r := &redis{url: "redis://ann:" + password + "@" + s.Addr() + "/" + tc.database}
				for _, args := range []string{"acquire x --lease 1h", "latch set l 3", "latch down l"} {
					if res := r.run(t, strings.Fields(args)...); res.code != 0 {
						t.Fatalf("%s: %+v", args, res)
					}
				}
				res := r.run(t, "doctor", "-o", "json")
				res.code = 0
				report := document[doctor.Report](t, res)
				warns := slices.Contains(worse(report), "persistence warning")
				for _, f := range report.Findings {
					if strings.Contains(tc.rights, "+@all") && strings.Contains(f.What, "HSET") || len(f.What) > 250 {
						t.Errorf("of a user who may use HSET: %s", f.What)
					}
				}
				s.Restart()
				l := document[overview.Lock](t, r.run(t, "show", "x", "-o", "json"))
				count := r.run(t, "latch", "down", "l").out
				if warns != (!l.Held || l.TTL < 0 || count != "1\n") {
					t.Errorf("doctor warns: %v; after a restart: %+v, and a count of %s", warns, l, count)
				}
			})
		}
	})
}

// The commands that doctor asks about for the default user are those of scripts
// that write.
func TestCommandsThatWriteAreKnown(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		for _, c := range acl.InScripts {
			name, _, _ := strings.Cut(c.Args, " ")
			info, _ := s.MustDo("COMMAND", "INFO", name).([]any)
			if len(info) == 0 || info[0] == nil { // this version does not know it
				continue
			}
			if flags := fmt.Sprint(info[0].([]any)[2]); strings.Contains(flags, "write") != c.Writes {
				t.Errorf("%s writes: %v; its flags: %s", name, c.Writes, flags)
			}
		}
	})
}

func TestDoctorOfServerThatForgets(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
		letDoctorIn(s)
		wantWorse(t, examined(t, exitProblem, "redis://"+s.Addr()), "eviction problem", "persistence warning")
		s.MustDo("CONFIG", "SET", "maxmemory-policy", "noeviction")
		wantWorse(t, examined(t, exitWarning, "redis://"+s.Addr()), "persistence warning")

		res := (&redis{url: "redis://" + s.Addr()}).run(t, "doctor")
		if res.code != exitWarning || res.err != "" {
			t.Errorf("%+v", res)
		}
		lines := strings.Split(res.out, "\n")
		if len(lines) < 5 || !strings.HasPrefix(lines[0], "warning  persistence  nothing is stored") ||
			!strings.HasPrefix(lines[1], strings.Repeat(" ", 22)+"so: ") || !strings.HasPrefix(lines[2], strings.Repeat(" ", 22)+"fix: ") {
			t.Errorf("%s", res.out)
		}
	})
}

func TestDoctorOfRights(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, safe...)
		letDoctorIn(s)
		for _, tc := range []struct {
			rights, args string
			code         int
			want         []string
		}{
			{"~* &* +@all", "", 0, nil},
			{"~* &* +@all -publish", "", exitProblem, []string{"commands problem"}},
			{"~* &* +@all -zadd", "", exitWarning, []string{"commands warning"}},
			{"~* &* +@all -subscribe", "", exitWarning, []string{"pubsub warning"}},
			{"~* &* +@all -eval", "", exitProblem, []string{"scripts problem"}},
			{"~* &* +@all -config -info", "", 0, []string{"access note", "access note"}},
			{"~* &* +@all -del", "", exitProblem, []string{"commands problem"}},
			{"~orders:* &* +@all", "", 0, []string{"commands note"}},
			{"~orders:* &* +@all", "orders:", exitWarning, []string{"commands warning"}},
			{"~* resetchannels &redisson_lock__channel:* +@all", "", exitWarning, []string{"commands warning"}},
			{"~* resetchannels +@all", "", exitProblem, []string{"commands problem", "commands warning", "pubsub warning"}},
		} {
			s.MustDo(append([]string{"ACL", "SETUSER", "ann", "reset", "on", ">" + password}, strings.Fields(tc.rights)...)...)
			r := examined(t, tc.code, "redis://ann:"+password+"@"+s.Addr(), "--prefix", tc.args)
			t.Log(tc.rights, tc.args)
			wantWorse(t, r, tc.want...)
			if keys := s.Keys(); len(keys) > 0 {
				t.Errorf("%s: left behind: %q", tc.rights, keys)
			}
		}
	})
}

func TestDoctorOfReplicas(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		args := append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, safe...)
		primary := testserver.Start(t, k, args...)
		letDoctorIn(primary)
		replica := testserver.StartReplica(t, primary, args...)
		letDoctorIn(replica)
		eventually(t, "the replica is online", func() bool {
			info, _ := primary.MustDo("INFO", "replication").(string)
			return strings.Contains(info, "state=online") && strings.Contains(info, "lag=0")
		})
		wantWorse(t, examined(t, 0, "redis://"+primary.Addr()), "replicas note")
		primary.MustDo("CONFIG", "SET", "min-replicas-to-write", "1")
		wantWorse(t, examined(t, 0, "redis://"+primary.Addr()))

		r := examined(t, exitProblem, "redis://"+replica.Addr())
		if r.Findings[0].Check != "server" || r.Findings[0].What != "this is a replica" {
			t.Errorf("%+v", r)
		}
	})
}

func TestDoctorOfLeftovers(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, safe...)
		letDoctorIn(s)
		later := "9000000000000"
		s.MustDo("RPUSH", "redisson_lock_queue:{timeless}", holder)
		s.MustDo("RPUSH", "redisson_lock_queue:{stuck}", holder)
		s.MustDo("ZADD", "redisson_lock_timeout:{stuck}", later, holder)
		s.MustDo("RPUSH", "redisson_lock_queue:{over}", holder)
		s.MustDo("ZADD", "redisson_lock_timeout:{over}", "1", holder)
		s.MustDo("RPUSH", "redisson_lock_queue:{held}", holder)
		s.MustDo("ZADD", "redisson_lock_timeout:{held}", later, holder)
		s.MustDo("HSET", "held", holder, "1")
		s.MustDo("PEXPIRE", "held", "100000")
		s.MustDo("HSET", "a user's hash", "name", "Ann")
		s.MustDo("HSET", "for\x1b[31mever", holder, "1")
		s.MustDo("SET", "redisson_unlock_latch:{x}:1", "1")
		s.MustDo("SET", "redisson_lock_token:{x}", "1")
		s.MustDo("SET", "redisson_lock_queue:{a string}", "1")
		s.MustDo("ZADD", "redlatch_alive:{x}", "1", "x")
		r := examined(t, exitWarning, "redis://"+s.Addr())
		wantWorse(t, r, "queues warning", "queues warning", "latches warning", "ttl warning", "ttl warning", "queues note")
		for _, want := range []string{"timeless", "stuck", "redisson_unlock_latch:{x}:1", "for\x1b[31mever", "redlatch_alive:{x}", "over"} {
			if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return strings.HasSuffix(f.What, ": "+want) }) {
				t.Errorf("%q is not found:\n%+v", want, r)
			}
		}
		wantWorse(t, examined(t, 0, "redis://"+s.Addr(), "--keys", "0"))
		if res := (&redis{url: "redis://" + s.Addr()}).run(t, "doctor"); strings.Contains(res.out, "\x1b") || !strings.Contains(res.out, `for\x1b[31mever`) {
			t.Errorf("%s", res.out)
		}
	})
}

// What nobody expects in the keys of locks and synchronizers.
func TestDoctorOfContents(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, safe...)
		letDoctorIn(s)
		for _, name := range []string{"limiter", "{limiter}"} {
			s.MustDo("HSET", name, "rate", "1", "interval", "1000", "type", "0")
		}
		s.MustDo("ZADD", "{limiter}:permits", "1", "a record")
		s.MustDo("HSET", "group", "h", holder, "h:"+holder+":expire_time", "1e300", "h:"+holder+":lock_count", "1")
		s.MustDo("HSET", "endless", "rate", "1", "interval", "inf", "type", "0")
		s.MustDo("ZADD", "redlatch_writers:{prefer}", "+inf", holder)
		s.MustDo("PEXPIRE", "redlatch_writers:{prefer}", "100000")
		s.MustDo("SET", "redisson_lock_token:{fenced}", strings.Repeat("9", 1<<20))
		s.MustDo("HSET", "wild", "mode", "read", holder, "100000000")
		s.MustDo("EVAL", `redis.call('HSET', KEYS[1], 'mode', 'read')
for i = 1, 10000 do redis.call('HSET', KEYS[1], '285475da-9152-4c83-822a-67ee2f116a79:' .. i, 1) end`, "1", "many")
		s.MustDo("EVAL", `for i = 1, 1001 do redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('ZADD', KEYS[2], '9000000000000', ARGV[1]) end`,
			"2", "redisson_lock_queue:{long}", "redisson_lock_timeout:{long}", holder)
		s.MustDo("HSET", "long", holder, "1")
		for _, key := range []string{"group", "wild", "many", "long"} {
			s.MustDo("PEXPIRE", key, "100000")
		}
		for _, protocol := range []string{"2", "3"} {
			r := examined(t, exitWarning, "redis://"+s.Addr()+"?protocol="+protocol)
			wantWorse(t, r, "twins warning", "contents warning", "contents warning", "queues note")
			for _, want := range []string{": limiter", ": long", ": endless, group, redisson_lock_token:{fenced} and 1 more", ": many, wild"} {
				if !slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return strings.HasSuffix(f.What, want) }) {
					t.Errorf("%q is not found:\n%+v", want, r)
				}
			}
		}
	})
}

// A cluster is looked at node by node, and one of its nodes is no server to lock
// at.
func TestDoctorOfCluster(t *testing.T) {
	long(t)
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		c := testserver.StartCluster(t, k, append(safe, "--min-replicas-to-write", "1")...)
		letDoctorIn(c.Nodes...)
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: c.Addrs(), DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		servers, r := examinedAll(t, client, "", 3)
		wantWorse(t, r)
		if len(r.Servers) != 3 || k.Sharded() != slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == "sharding" && len(f.Servers) == 3 }) {
			t.Errorf("%+v", r)
		}

		node := c.PrimaryOf("orders:1")
		r = examined(t, exitProblem, "redis://"+node.Addr())
		wantWorse(t, r, "server problem")

		// A client that listens as Redisson 3.18 does, and one as later ones do where
		// the server knows how.
		want, listen := []string{"server problem"}, []string{"SUBSCRIBE"}
		if k.Sharded() {
			want, listen = append(want, "sharding warning"), append(listen, "SSUBSCRIBE")
		}
		for _, subscribe := range listen {
			conn, err := node.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(subscribe + " redisson_lock__channel:{orders:1}\r\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		wantWorse(t, examined(t, exitProblem, "redis://"+node.Addr()), want...)

		// One that has died is a finding; the others are looked at.
		c.Nodes[0].Kill()
		r, err = doctor.Examine(t.Context(), servers, doctor.Options{MaxClockSkew: time.Second})
		if err != nil || r.Findings[0].Check != "server" || !slices.Equal(r.Findings[0].Servers, []string{c.Nodes[0].Addr()}) ||
			!slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == "scripts" && len(f.Servers) == 2 }) {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

// examinedAll finds so many servers through a client, and examines them.
func examinedAll(t *testing.T, client rueidis.Client, address string, want int) ([]doctor.Server, doctor.Report) {
	t.Helper()
	servers, err := doctor.Servers(t.Context(), client, address, strings.ToUpper)
	if err != nil || len(servers) != want {
		t.Fatalf("%v, %v", servers, err)
	}
	r, err := doctor.Examine(t.Context(), servers, doctor.Options{MaxClockSkew: time.Second, Keys: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return servers, r
}

// Behind sentinels it is the primary that is looked at.
func TestDoctorOfSentinels(t *testing.T) {
	long(t)
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.StartSentinels(t, k, safe...)
		letDoctorIn(s.Data...)
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.Addrs(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name}, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, r := examinedAll(t, client, "sentinels", 1)
		wantWorse(t, r, "replicas note")
	})
}

// A server that knows little is looked at as far as it goes, and one that does
// not answer is an error as always.
func TestDoctorOfLimitedServers(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	res := r.run(t, "doctor", "-o", "json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(res.out), &report); err != nil || res.err != "" || res.code == exitSoftware || report.Findings == nil {
		t.Errorf("%v: %+v", err, res)
	}
	for _, want := range []string{"access note", "server note"} {
		if !slices.Contains(worse(report), want) {
			t.Errorf("%s is missing: %+v", want, report)
		}
	}
	r.Close()
	if res := r.run(t, "doctor"); res.code != exitUnavailable || res.out != "" || !strings.Contains(res.err, "REDLATCH_URL") {
		t.Errorf("%+v", res)
	}
	if res := r.run(t, "doctor", "--keys", "-1"); res.code != exitUsage {
		t.Errorf("%+v", res)
	}
}

// What people read: colours and line breaks on a terminal, one line for what is
// fine at several servers, and where what is not is.
func TestDoctorPage(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	report := doctor.Report{Servers: []string{"a:1", "b:1", "c:1"}, Findings: []doctor.Finding{
		{Check: "clock", Severity: doctor.Warning, Servers: []string{"b:1"}, What: "it is late", Consequence: "one word after another until the line is full", Remedy: "wait"},
		{Check: "clock", Severity: doctor.OK, Servers: []string{"a:1"}, What: "right"},
		{Check: "scripts", Severity: doctor.OK, Servers: []string{"a:1", "b:1", "c:1"}, What: "work"},
		{Check: "clock", Severity: doctor.OK, Servers: []string{"c:1"}, What: "nearly right"},
		{Check: "clock", Severity: doctor.OK, Servers: []string{"a:1", "c:1"}, What: "right in another way"},
	}}
	if err := (&ui{out: &out}).findings(report); err != nil {
		t.Fatal(err)
	}
	const want = `warning  clock    it is late (b:1)
                  so: one word after another until the line is full
                  fix: wait
ok       clock    right (a:1; fine at 1 more)
ok       scripts  work
`
	if out.String() != want {
		t.Errorf("\n%s\nwant\n%s", out.String(), want)
	}

	out.Reset()
	page := reportPage{report: report, checks: 5, width: 60, color: true}
	page.write(&out, report.Findings[0])
	const onTerminal = "\x1b[33mwarning\x1b[m  clock  it is late (b:1)\n" +
		"                so: one word after another until the line is\n                full\n                fix: wait\n"
	if out.String() != onTerminal {
		t.Errorf("\n%q\nwant\n%q", out.String(), onTerminal)
	}
}
