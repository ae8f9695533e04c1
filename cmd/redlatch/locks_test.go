package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/heldport"
)

// document decodes the JSON on standard output, and refuses fields that the
// contract does not have.
func document[T any](t *testing.T, res result) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(res.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || d.More() || res.code != 0 || res.err != "" {
		t.Fatalf("%v: %+v", err, res)
	}
	return v
}

// heldByOther is what the JSON says of a lock that hold gave away, but for the
// TTL.
func heldByOther(name string) lockJSON {
	return lockJSON{
		Name: name, Kind: "lock", Held: true,
		Holders: []holderJSON{{Owner: holder, Client: strings.TrimSuffix(holder, ":1"), Count: 1}},
		Queue:   []waiterJSON{},
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if got := document[[]lockJSON](t, r.run(t, "ls", "-o", "json")); got == nil || len(got) != 0 {
		t.Errorf("an empty list is %v", got)
	}
	r.hold("orders:2", time.Hour)
	r.hold("orders:1", time.Hour)
	r.hold("other\x1b[31m", time.Hour)
	r.HSet("a user's hash", "name", "Ann")

	got := document[[]lockJSON](t, r.run(t, "ls", "orders:*", "-o", "json"))
	for i := range got {
		if ms := got[i].TTL; ms < 3_500_000 || ms > 3_600_000 {
			t.Errorf("ttl_ms %d", ms)
		}
		got[i].TTL, got[i].Holders[0].TTL = 0, 0
	}
	if want := []lockJSON{heldByOther("orders:1"), heldByOther("orders:2")}; !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}

	res := r.run(t, "ls")
	if res.code != 0 || strings.Contains(res.out, "Ann") || strings.Contains(res.out, "user") || strings.Contains(res.out, "\x1b") {
		t.Errorf("%+v", res)
	}
	lines := strings.Split(res.out, "\n")
	if len(lines) != 5 || strings.Join(strings.Fields(lines[0]), " ") != "NAME KIND TTL COUNT BY OWNER" {
		t.Errorf("%+v", res)
	}
	contains(t, res.out, `other\x1b[31m`, "redisson", holder)
	column := strings.Index(lines[0], "KIND")
	for _, line := range lines[1:4] {
		if !strings.HasPrefix(line[column:], "lock ") {
			t.Errorf("columns do not line up:\n%s", res.out)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	got := document[lockJSON](t, r.run(t, "show", "x", "--output=json"))
	got.TTL, got.Holders[0].TTL = 0, 0
	if want := heldByOther("x"); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	contains(t, r.run(t, "show", "x").out, "held   yes\n", "owner  "+holder+"\n", "by     redisson\n", "count  1\n")

	free := r.run(t, "show", "y", "-o", "json")
	if got := document[lockJSON](t, free); got.Held || got.Holders == nil || len(got.Holders) != 0 || got.TTL != 0 {
		t.Errorf("free: %+v", got)
	}
	contains(t, free.out, `"holders": []`, `"queue": []`) // and not null
	contains(t, r.run(t, "show", "y").out, "held  no\n")

	r.HSet("forever", holder, "2")
	if got := document[lockJSON](t, r.run(t, "show", "forever", "-o", "json")); got.TTL != -1 || got.Holders[0].Count != 2 {
		t.Errorf("without a TTL: %+v", got)
	}
	contains(t, r.run(t, "show", "forever").out, "ttl    none\n")
}

// Every type as Redisson stores it.
func TestListAndShowEveryKind(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	client := strings.TrimSuffix(holder, ":1")
	put := func(key string, pairs ...string) {
		r.HSet(key, pairs...)
		r.SetTTL(key, time.Hour)
	}
	must := func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	soon := time.Now().Add(30 * time.Minute).UnixMilli()
	put("fair", holder, "1")
	must(r.RPush("redisson_lock_queue:{fair}", client+":7", client+":3"))
	must(r.ZAdd("redisson_lock_timeout:{fair}", float64(soon), client+":7"))
	put("fenced", holder, "2")
	must(nil, r.Set("redisson_lock_token:{fenced}", "31"))
	put("rw", "mode", "write", holder+":write", "1", holder, "1")
	must(nil, r.Set("{rw}:"+holder+":rwlock_timeout:1", "1"))
	r.SetTTL("{rw}:"+holder+":rwlock_timeout:1", 30*time.Minute)
	const value = "Bt/D4wylKYCgzX0jVwjowg"
	put("group", value, holder, value+":"+holder+":expire_time", strconv.FormatInt(soon, 10), value+":"+holder+":lock_count", "1")

	owner := func(thread, mode, value string, count int) holderJSON {
		return holderJSON{Owner: client + ":" + thread, Client: client, Count: count, Mode: mode, Value: value}
	}
	want := []lockJSON{
		{Name: "fair", Kind: "fair lock", Held: true, Holders: []holderJSON{owner("1", "", "", 1)}, Queue: []waiterJSON{
			{Owner: client + ":7", Client: client, Until: soon}, {Owner: client + ":3", Client: client},
		}},
		{Name: "fenced", Kind: "fenced lock", Held: true, Token: 31, Holders: []holderJSON{owner("1", "", "", 2)}, Queue: []waiterJSON{}},
		{Name: "group", Kind: "group lock", Held: true, Holders: []holderJSON{owner("1", "", value, 1)}, Queue: []waiterJSON{}},
		{Name: "rw", Kind: "read-write lock", Held: true, Holders: []holderJSON{owner("1", "write", "", 1), owner("1", "read", "", 1)}, Queue: []waiterJSON{}},
	}
	got := document[[]lockJSON](t, r.run(t, "ls", "-o", "json"))
	for i := range got {
		one := document[lockJSON](t, r.run(t, "show", got[i].Name, "-o", "json"))
		for _, l := range []*lockJSON{&got[i], &one} {
			most, least := l.TTL, int64(3_500_000)
			l.TTL = 0
			for n := range l.Holders {
				h := &l.Holders[n]
				if h.Mode == "read" || h.Value != "" {
					most, least = 1_800_000, 1_700_000
				}
				if h.TTL > most || h.TTL < least {
					t.Errorf("%s: ttl_ms %d of %s", l.Name, h.TTL, h.Owner)
				}
				h.TTL = 0
			}
		}
		if !reflect.DeepEqual(one, got[i]) {
			t.Errorf("show %+v\n  ls %+v", one, got[i])
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}

	list := r.run(t, "ls").out
	contains(t, list, "fair lock, 2 waiting ", "fenced lock ", "group lock, "+value+" ", "read-write lock, write ", "read-write lock, read ")
	contains(t, r.run(t, "show", "fair").out, "waiter 1  "+client+":7\n", "waiter 2  "+client+":3\n", "until     20")
	contains(t, r.run(t, "show", "fenced").out, "token  31\n")
	contains(t, r.run(t, "show", "rw").out, "mode   write\nttl    ", "mode   read\nttl    ")
	contains(t, r.run(t, "show", "group").out, "value  "+value+"\n")
}

func TestRelease(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("it's", time.Hour)
	res := r.run(t, "release", "it's")
	if res.code != 64 || res.out != "" || !r.Exists("it's") {
		t.Errorf("without --force: %+v", res)
	}
	contains(t, res.err, `redlatch release --force 'it'\''s'`+"\n")

	if res := r.run(t, "release", "--force", "it's"); res.code != 0 || res.out != "it's released\n" || r.Exists("it's") {
		t.Errorf("%+v", res)
	}
	if res := r.run(t, "release", "it's", "--force"); res.code != 0 || res.out != "it's was not held\n" {
		t.Errorf("a free one: %+v", res)
	}
	value := "Bt/D4wylKYCgzX0jVwjowg"
	r.HSet("group", value, holder, value+":"+holder+":expire_time", "9999999999999", value+":"+holder+":lock_count", "1")
	if res := r.run(t, "release", "--force", "group"); res.code != 65 || !r.Exists("group") || !strings.Contains(res.err, "group of locks") {
		t.Errorf("a group: %+v", res)
	}
	type released struct {
		Name     string `json:"name"`
		Released bool   `json:"released"`
	}
	r.hold("x", time.Hour)
	for _, want := range []released{{"x", true}, {"x", false}} {
		if got := document[released](t, r.run(t, "release", "--force", "x", "-o", "json")); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := &redis{}
	got := document[versionJSON](t, r.run(t, "version", "-o", "json"))
	if got.Version == "" || !strings.HasPrefix(got.Go, "go1.") || !strings.Contains(got.Platform, "/") {
		t.Errorf("%+v", got)
	}
	if res := r.run(t, "version"); res.code != 0 || !strings.HasPrefix(res.out, "redlatch "+got.Version) {
		t.Errorf("%+v", res)
	}
}

// The other commands' mistakes, and that none of them shows a password. The
// helpers look for it in all that is ever written.
func TestOtherFailures(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	addr := heldport.Refusing(t)
	nowhere := "redis://ann:" + password + "@" + addr
	wrong := "redis://wrong-" + password + "@" + r.Addr()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"lss"}, 64, "unknown command"},
		{[]string{nowhere, "ls"}, 64, "unknown command"},
		{[]string{"ls", "a", "b"}, 64, "at most 1"},
		{[]string{"ls", "-o", "yaml"}, 64, "table, json"},
		{[]string{"ls", "--" + nowhere}, 64, "unknown flag"},
		{[]string{"show"}, 64, "arg"},
		{[]string{"show", ""}, 64, "empty"},
		{[]string{"release", "--force"}, 64, "arg"},
		{[]string{"release", "--force", ""}, 64, "empty"},
		{[]string{"version", "x"}, 64, "unknown command"},
		{[]string{"demo", "--url", nowhere}, 64, "server of its own"},
		{[]string{"demo", "--workers", "1"}, 64, "between 2 and 8"},
		{[]string{"ls", "--url", "redis://:" + password + "/@h"}, 64, "%2F"},
		{[]string{"ls", "--url", "redis://:1/" + password + "@h"}, 64, "%2F"},
		{[]string{"ls", "--url", "redis+sentinel://:" + password + "@h"}, 64, "no master name"},
		{[]string{"ls", "--url", wrong}, 69, "WRONGPASS"},
		{[]string{"show", "x", "--url", wrong}, 69, "WRONGPASS"},
		{[]string{"ls", "--url", "redis://" + r.Addr()}, 69, "NOAUTH"},
		{[]string{"ls", "--url", nowhere}, 69, addr},
		{[]string{"show", "x", "--url", nowhere}, 69, addr},
		{[]string{"release", "--force", "x", "--url", nowhere}, 69, addr},
	} {
		t.Run(strings.ReplaceAll(strings.Join(tc.args, " "), password, "..."), func(t *testing.T) {
			t.Parallel()
			res := r.run(t, tc.args...)
			if res.code != tc.code || res.out != "" || !strings.Contains(res.err, tc.want) || strings.Contains(res.err, "ann:") {
				t.Errorf("%+v; want exit %d and %q", res, tc.code, tc.want)
			}
		})
	}
}

// --url before REDLATCH_URL before REDIS_URL.
func TestWhichServer(t *testing.T) {
	t.Parallel()
	a, b := newRedis(t), newRedis(t)
	a.hold("on-a", time.Hour)
	b.hold("on-b", time.Hour)
	for _, tc := range []struct{ flag, redlatch, redis, want string }{
		{a.url, b.url, b.url, "on-a"},
		{"", a.url, b.url, "on-a"},
		{"", "", a.url, "on-a"},
		{b.url, a.url, a.url, "on-b"},
	} {
		cmd := a.command("ls")
		if tc.flag != "" {
			cmd.Args = append(cmd.Args, "--url", tc.flag)
		}
		cmd.Env = append(environ(), "REDLATCH_URL="+tc.redlatch, "REDIS_URL="+tc.redis)
		if res := finish(t, cmd); res.code != 0 || !strings.Contains(res.out, tc.want) {
			t.Errorf("%+v: %+v", tc, res)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, args := range [][]string{{}, {"--help"}, {"help"}} {
		res := r.run(t, args...)
		contains(t, res.out, "run ", "ls ", "show ", "release ", "demo ", "version ")
		if res.code != 0 || strings.Contains(res.out, "demo-worker") || strings.Contains(res.out, "__guard") {
			t.Errorf("%q: %+v", args, res)
		}
	}
}
