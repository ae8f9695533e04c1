package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/doctor"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
)

// shownIn returns a page of the docs, and what is printed into it.
func shownIn(t *testing.T, page string) (doc string, out *strings.Builder, u *ui) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	out = new(strings.Builder)
	return string(text), out, &ui{out: out, err: io.Discard}
}

const (
	shownClient = "2628bb85-29a0-8bdd-8b35-e7415bb697b1"
	shownJava   = "5f1b3c2e-6d0a-4d8e-9a51-0123456789ab"
)

// shownLocks are what docs/cli.md lists, in a row.
func shownLocks() []overview.Lock {
	told := func(by string, ms int64) overview.Told { return overview.Told{By: by, For: new(ms)} }
	holder := func(client, thread string, count int, ttl int64, mode string, t overview.Told) overview.Holder {
		return overview.Holder{
			Owner: client + ":" + thread, Client: client, Count: count, Redlatch: client == shownClient, TTL: ttl, Mode: mode, Told: t,
		}
	}
	report := told("report.sh@host-7 pid 4121", 12_300)
	report.Renewed = new(true)
	waits := func(n int) overview.Who { return overview.Who{Others: &n, Silent: new(0)} }
	orders := overview.Lock{
		Name: "orders:42", Kind: redlatch.KindLock, Held: true, Exists: true, TTL: 28_312, Who: waits(0),
		Holders: []overview.Holder{holder(shownClient, "1", 1, 28_312, "", report)},
	}
	orders.Waiting = []overview.Claim{{Kind: redlatch.KindLock, Told: told("billing@host-8 pid 77", 3_200)}}
	queue := make([]overview.Waiter, 3)
	return []overview.Lock{
		{Name: "api", Kind: redlatch.KindRateLimiter, Exists: true, TTL: -1, Count: new(98), Total: new(100)},
		{Name: "encoder", Kind: redlatch.KindExpirable, Exists: true, TTL: -1, Count: new(1), Total: new(3), Who: waits(0), Holders: []overview.Holder{
			{Owner: "13c73ceaa151215bd0ea31f31d2b3a93", TTL: 28_500}, {Owner: "9f8fc8fe081e3f142ad0278840c6e2da", TTL: 12_100},
		}},
		{Name: "gate", Kind: redlatch.KindBarrier, Exists: true, TTL: 598_200, Count: new(2), Total: new(3), Queue: queue[:2]},
		orders,
		{Name: "orders:7", Kind: redlatch.KindFair, Held: true, Exists: true, TTL: 12_100, Queue: queue, Holders: []overview.Holder{
			holder(shownJava, "63", 2, 12_100, "", overview.Told{}),
		}},
		{Name: "orders:8", Kind: redlatch.KindReadWrite, Held: true, Exists: true, TTL: 25_500, Who: waits(0), Holders: []overview.Holder{
			holder(shownJava, "64", 1, 25_500, "read", overview.Told{}),
		}},
	}
}

// What docs/cli.md shows is what the commands print: ls, show, its JSON, a
// deadlock, and watch.
func TestTheDocsShowWhatIsPrinted(t *testing.T) {
	t.Parallel()
	doc, out, u := shownIn(t, "cli.md")
	check := func(before, after string) {
		t.Helper()
		if want := before + out.String() + after; !strings.Contains(doc, want) {
			t.Errorf("docs/cli.md should have this:\n%s", want)
		}
		out.Reset()
	}
	table := func(rows [][]string) {
		t.Helper()
		if err := u.table(rows); err != nil {
			t.Fatal(err)
		}
	}
	locks := shownLocks()
	table(listTable(locks))
	check("\n```\n$ redlatch ls\n", "\n$ redlatch show orders:42\n")

	orders := locks[3]
	orders.Others, orders.Silent = new(3), new(2)
	table(rowsOf(&orders))
	check("\n$ redlatch show orders:42\n", "```\n")

	encoder := locks[1]
	encoder.Who = overview.Who{}
	table(rowsOf(&encoder))
	check("\n```\n$ redlatch show encoder\n", "```\n")

	table(deadlockRows(&overview.Lock{Who: overview.Who{Deadlocks: [][]overview.Wait{{
		{By: "billing@host-7 pid 4121", Name: "stock", Waited: 21_600, WaitSite: "pay.go:48", HoldSite: "pack.go:54"},
		{By: "shipping@host-8 pid 77", Name: "orders:42", Waited: 16_600, WaitSite: "pack.go:61", HoldSite: "pay.go:40"},
	}}}}))
	check("\n```\n", "```\n")

	stored := overview.Of(admin.Info{Name: "orders:42", Kind: redlatch.KindLock, TTL: 28_312 * time.Millisecond, Holders: []admin.Holder{
		{Owner: shownClient + ":1", Client: shownClient, Count: 1, Redlatch: true, TTL: 28_312 * time.Millisecond},
	}})
	if err := u.json(stored); err != nil {
		t.Fatal(err)
	}
	check("\n```json\n", "```\n")

	at := func(clock string) time.Time {
		parsed, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	billing := admin.Holder{Owner: shownClient + ":1", Client: shownClient, By: "billing@host-7 pid 4121", Redlatch: true}
	shipping := admin.Holder{Owner: "9b1c4a0e-6f3d-8a52-b1de-0c5d3f2e7a91:12", By: "shipping@host-8 pid 77", Redlatch: true}
	for _, c := range []admin.Change{
		{At: at("14:03:22"), What: admin.ChangeBegins, Info: admin.Info{Kind: redlatch.KindLock, TTL: time.Second, Holders: []admin.Holder{billing}}},
		{At: at("14:03:27"), What: admin.ChangeWaiting, Waiting: 1},
		{At: at("14:03:41"), What: admin.ChangeReleased, Holder: billing},
		{At: at("14:03:41"), What: admin.ChangeAcquired, Holder: shipping},
		{At: at("14:03:42"), What: admin.ChangeWaiting},
	} {
		out.WriteString(c.At.Format(time.TimeOnly) + "  " + lineOf(&c) + "\n")
	}
	check("\n```\n$ redlatch watch orders:42\n", "```\n")
}

// docs/cli.md shows what a server is told that may evict locks, syncs once a
// second, and has a queue whose first waiter is dead. What is measured, and how
// long a line is for it, differs.
func TestTheDocsShowWhatDoctorPrints(t *testing.T) {
	t.Parallel()
	doc, _, _ := shownIn(t, "cli.md")
	_, want, _ := strings.Cut(doc, "\n$ redlatch doctor\n")
	want, _, _ = strings.Cut(want, "```")

	s := testserver.Start(t, testserver.Redis, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru", "--appendonly", "yes", "--appendfsync", "everysec")
	letDoctorIn(s)
	s.MustDo("RPUSH", "redisson_lock_queue:{orders:9}", holder)
	s.MustDo("ZADD", "redisson_lock_timeout:{orders:9}", "9000000000000", holder)
	s.MustDo("SET", "redisson_lock_token:{a}", "1")
	s.MustDo("SET", "redisson_lock_token:{b}", "1")
	res := (&redis{url: "redis://" + s.Addr()}).run(t, "doctor")
	if res.code != exitProblem {
		t.Errorf("exit code %d: %s", res.code, res.err)
	}
	if got, want := findingsOf(res.out), findingsOf(want); !slices.Equal(got, want) {
		t.Errorf("doctor says\n%s\nand docs/cli.md\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// findingsOf returns the findings that doctor prints, without what is measured, by
// check. It leaves out how fast this machine is.
func findingsOf(page string) (all []string) {
	measured := regexp.MustCompile(`\d[\d.]*( ?(µs|ms|s|MiB))?\b`)
	for _, finding := range regexp.MustCompile(`(?m)^(ok|note|warning|problem) .*\n(?: .*\n)*`).FindAllString(page, -1) {
		words := strings.Fields(measured.ReplaceAllString(strings.Replace(finding, "ahead of", "behind", 1), "N"))
		if words[1] != "latency" {
			all = append(all, strings.Join(words, " "))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
	return all
}

// docs/cli.md shows what config check prints of this file.
func TestTheDocsShowWhatConfigCheckPrints(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "redisson.yaml")
	const settings = `# how the locks are reached
sentinelServersConfig:
  sentinelAddresses:
    - "rediss://sentinel1:26379"
    - "rediss://sentinel2:26379"
  masterName: mymaster
  username: app
  password: a-secret
  retryAttempts: 4
  connectTimeout: 10000
  sentinelPassword: another-secret
  database: 0

nettyThreads: 32
codec: !<org.redisson.client.codec.StringCodec> {}
`
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, out, u := shownIn(t, "cli.md")
	root := (&app{ui: u}).root()
	root.SetArgs([]string{"config", "check", file})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := "\n```\n$ redlatch config check redisson.yaml\n" + out.String() + "```\n"; !strings.Contains(doc, want) {
		t.Errorf("docs/cli.md should have this:\n%s", want)
	}
}

// docs/cli.md shows a document of doctor, with the fields that there are.
func TestTheDocsShowTheDocumentOfDoctor(t *testing.T) {
	t.Parallel()
	doc, out, u := shownIn(t, "cli.md")
	_, shown, _ := strings.Cut(doc, "\n```json\n{\n  \"severity\":")
	shown, _, _ = strings.Cut("{\n  \"severity\":"+shown, "```")
	s := testserver.Start(t, testserver.Redis, "--appendonly", "yes", "--appendfsync", "everysec")
	letDoctorIn(s)
	report := examined(t, 0, "redis://"+s.Addr())
	report.Servers = []string{"redis://localhost:6379"}
	at := slices.IndexFunc(report.Findings, func(f doctor.Finding) bool { return f.Check == "persistence" })
	if at < 0 {
		t.Fatalf("%+v", report)
	}
	report.Severity, report.Findings = "note", report.Findings[at:at+1]
	report.Findings[0].Servers = report.Servers
	if err := u.json(report); err != nil {
		t.Fatal(err)
	}
	if shown != out.String() {
		t.Errorf("docs/cli.md has\n%s\nand doctor prints\n%s", shown, out.String())
	}
}

// docs/cli.md shows what release prints.
func TestTheDocsShowTheDocumentOfRelease(t *testing.T) {
	t.Parallel()
	doc, _, _ := shownIn(t, "cli.md")
	r := newRedis(t)
	r.hold("orders:42", time.Hour)
	res := r.run(t, "release", "--force", "orders:42", "-o", "json")
	if res.code != 0 || !json.Valid([]byte(res.out)) {
		t.Fatalf("%+v", res)
	}
	if want := "\n```json\n" + res.out + "```\n"; !strings.Contains(doc, want) {
		t.Errorf("docs/cli.md should have this:\n%s", want)
	}
}
