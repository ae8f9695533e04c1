package interop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

var record = flag.Bool("record", false, "write the golden files of internal/wire/testdata instead of comparing with them")

// goldenNames are lock names whose keys and channels are easy to get wrong.
var goldenNames = []string{"a", "{a}", "x{a}y", "a:b", "ü"}

// plainLife shows all that a reentrant lock does.
var plainLife = []golden.Step{
	{Do: "lock", Thread: "t1"},
	{Do: "lock", Thread: "t1", LeaseMs: 10_000},
	{Do: "tryLock", Thread: "t2"},
	{Do: "unlock", Thread: "t2"},
	{Do: "unlock", Thread: "t1"},
	{Do: "unlock", Thread: "t1"},
	{Do: "unlock", Thread: "t1"},
	{Do: "lock", Thread: "t1", LeaseMs: 5000},
	{Do: "forceUnlock", Thread: "t2"},
	{Do: "forceUnlock", Thread: "t2"},
	{Do: "lock", Thread: "t1", LeaseMs: 60_000},
	{Do: "waits", Thread: "t2"},
	{Do: "unlock", Thread: "t1", Then: "t2"},
	{Do: "unlock", Thread: "t2"},
}

// nonReentrantLife shows where a non-reentrant lock differs.
var nonReentrantLife = []golden.Step{
	{Do: "lock", Thread: "t1"},
	{Do: "lock", Thread: "t1"},
	{Do: "tryLock", Thread: "t2"},
	{Do: "unlock", Thread: "t2"},
	{Do: "unlock", Thread: "t1"},
}

// watchedLife shows a renewal.
var watchedLife = []golden.Step{
	{Do: "lock", Thread: "t1"},
	{Do: "renewal", Thread: "t1"},
	{Do: "unlock", Thread: "t1"},
}

// TestGolden records what each Redisson does, and compares it with the golden
// files, or writes them.
func TestGolden(t *testing.T) {
	needsServers(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			got := newRecording(t, version, "redisson")
			for _, name := range goldenNames {
				got.add(peer.Plain, name, defaultWatchdog, plainLife)
				if version != peer.Oldest {
					got.add(peer.NonReentrant, name, defaultWatchdog, nonReentrantLife)
				}
			}
			got.add(peer.Plain, "a", renewedWatchdog, watchedLife)
			got.compare()
		})
	}
}

// A recording is a golden file in the making.
type recording struct {
	golden.File
	t    *testing.T
	name string
	want golden.File // what the file says
}

func newRecording(t *testing.T, version, family string) *recording {
	t.Helper()
	r := &recording{File: golden.File{Redisson: version}, t: t, name: family + "-" + version}
	if text, err := os.ReadFile(goldenFile(r.name)); err == nil && !*record {
		if err := json.Unmarshal(text, &r.want); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// add records a life. On a busy machine it may show renewals where there should be
// none, and leases that have shrunk or ended: then it is recorded once more.
func (r *recording) add(kind, name string, watchdog time.Duration, life []golden.Step) {
	r.t.Helper()
	const attempts = 6
	for n := 1; ; n++ {
		v, took := recordLife(r.t, r.Redisson, kind, name, watchdog, life)
		slow := watchdog == defaultWatchdog && took >= watchdog/3
		if !slow && (*record || r.expects(v)) || n == attempts {
			if slow {
				r.t.Fatalf("the machine is too slow: the steps took %v, and renewals may be among them", took)
			}
			r.Vectors = append(r.Vectors, v)
			return
		}
		r.t.Logf("%s %q, vector %d, took %v and is recorded once more", kind, name, len(r.Vectors), took)
	}
}

// expects says whether the file has v next.
func (r *recording) expects(v golden.Vector) bool {
	r.t.Helper()
	if len(r.Vectors) >= len(r.want.Vectors) {
		return false
	}
	got, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	want, err := json.Marshal(r.want.Vectors[len(r.Vectors)])
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Equal(got, want)
}

func (r *recording) compare() {
	r.t.Helper()
	compareGolden(r.t, r.name, r.File)
}

func goldenFile(name string) string {
	return filepath.Join("..", "..", "internal", "wire", "testdata", name+".json")
}

func compareGolden(t *testing.T, name string, got any) {
	t.Helper()
	file := goldenFile(name)
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *record {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := bytes.Split(text.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range gotLines {
		if i >= len(wantLines) || !bytes.Equal(gotLines[i], wantLines[i]) {
			t.Fatalf("Redisson does something else than %s says, from line %d on: %s", file, i+1, gotLines[i])
		}
	}
	if len(gotLines) < len(wantLines) {
		t.Fatalf("Redisson does less than %s says: nothing from line %d on", file, len(gotLines))
	}
}

const (
	// defaultWatchdog is Redisson's.
	defaultWatchdog = 30 * time.Second
	// renewedWatchdog is that of lives with renewals.
	renewedWatchdog = 3 * time.Second
)

// recordLife performs the steps, notes what each does, and says how long that
// took.
func recordLife(t *testing.T, version, kind, name string, watchdog time.Duration, life []golden.Step) (golden.Vector, time.Duration) {
	t.Helper()
	w := newWorld(t, cast{version: version, kind: kind}, testserver.Redis)
	w.name = name
	java, err := sharedOrFail(t, version).Open(w.ctx, peer.Options{Addr: w.server.Addr(), Watchdog: watchdog, Idle: few})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = java.Close(w.ctx) })
	w.java = java
	owners := map[string]string{}
	for _, s := range life {
		owners[s.Thread] = w.javaOwner(s.Thread)
	}
	r := &recorder{world: w, m: newMonitor(w, java.UUID, owners), owners: owners, waiters: map[string]*waiting{}, got: make(chan peer.Answer, 4)}

	began := time.Now()
	v := golden.Vector{Kind: kind, Name: name, WatchdogMs: watchdog.Milliseconds()}
	for _, s := range life {
		r.do(&s)
		v.Steps = append(v.Steps, s)
	}
	return v, time.Since(began)
}

// A recorder performs one life.
type recorder struct {
	*world
	m       *monitor
	owners  map[string]string // by thread
	waiters map[string]*waiting
	got     chan peer.Answer // of calls that are about no lock
}

// do performs a step and notes in it what it did.
func (r *recorder) do(s *golden.Step) {
	r.t.Helper()
	if slices.Contains(syncs, r.kind) {
		r.call(s)
		return
	}
	kind := cmp.Or(s.Kind, r.kind)
	l := r.java.Thread(s.Thread).Lock(kind, r.name)
	if kind == peer.Group {
		l = r.java.Thread(s.Thread).Group(r.name, s.Values...)
	}
	lease, wait := time.Duration(s.LeaseMs)*time.Millisecond, time.Duration(s.WaitMs)*time.Millisecond
	ok, err := true, error(nil)
	switch s.Do {
	case "lock":
		err = l.Lock(r.ctx, lease)
	case "tryLock":
		ok, err = l.TryLock(r.ctx, wait, lease)
	case "unlock":
		err = l.Unlock(r.ctx)
	case "forceUnlock":
		ok, err = l.ForceUnlock(r.ctx)
	case "lockAndGetToken":
		s.Token, err = l.LockToken(r.ctx, lease)
	case "tryLockAndGetToken":
		s.Token, err = l.TryLockToken(r.ctx, wait, lease)
		ok = s.Token != 0
	case "getToken":
		s.Token, err = l.Token(r.ctx)
	case "waits":
		r.waits(s.Thread, channelOf(kind, r.name, r.owners[s.Thread]), func() error { return l.Lock(r.ctx, lease) })
	case "renewal":
		r.m.awaitScripts(1)
	case "pause":
		time.Sleep(wait)
	default:
		r.t.Fatalf("nothing is known of %q", s.Do)
	}
	r.done(s, strconv.FormatBool(ok), err)
}

// done notes what a step did that has returned.
func (r *recorder) done(s *golden.Step, result string, err error) {
	r.t.Helper()
	var thrown *peer.Error
	switch {
	case errors.As(err, &thrown):
		s.Result = thrown.Name
	case err != nil:
		r.t.Fatal(err)
	default:
		s.Result = result
	}
	woken := strings.Fields(s.Then)
	for _, thread := range woken {
		r.waiters[thread].returns()
	}
	r.m.note(s)
	if len(woken) > 1 {
		s.Scripts = s.Scripts[:1]
	}
	s.After = r.m.keys()
}

// waits calls what has to wait, until it does: after its second try, if it tries
// by scripts.
func (r *recorder) waits(thread, channel string, f func() error) {
	r.t.Helper()
	r.waiters[thread] = r.start("Java: "+thread, f)
	if r.kind != peer.Latch {
		r.m.awaitScripts(2)
	}
	r.eventually("a subscription", func() bool {
		reply, _ := r.server.MustDo("PUBSUB", "NUMSUB", channel).([]any)
		return reply[1].(int64) > 0
	})
	r.atRest(300 * time.Millisecond)
	r.waiters[thread].open()
}
