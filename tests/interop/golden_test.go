package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

var record = flag.Bool("record", false, "write the golden files of internal/wire/testdata instead of comparing with them")

// goldenNames are lock names whose keys and channels are easy to get wrong.
var goldenNames = []string{"a", "{a}", "x{a}y", "a:b", "ü"}

// A golden file says what one version of Redisson does to Redis. The test of
// package redlatch that compares redlatch with it has its own copy of these
// types, since it reads less.
type golden struct {
	Redisson string         `json:"redisson"`
	Vectors  []goldenVector `json:"vectors"`
}

// A goldenVector is one life of a lock.
type goldenVector struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// WatchdogMs is Redisson's lockWatchdogTimeout.
	WatchdogMs int64 `json:"watchdogMs"`

	Steps []goldenStep `json:"steps"`
}

// A goldenStep is one call and what it left.
type goldenStep struct {
	// Do is lock, tryLock, unlock, forceUnlock; waits, a lock that has to wait
	// and goes on doing so; or renewal, no call but the watchdog.
	Do      string `json:"do"`
	Thread  string `json:"thread"`
	LeaseMs int64  `json:"leaseMs"` // 0: the watchdog keeps it

	// Result is true, false, or the exception; of a call that returns nothing
	// it is true.
	Result string `json:"result"`
	// Then is the thread whose wait the call ended.
	Then string `json:"then,omitempty"`
	// Scripts are the calls of scripts, in order, each with the commands that
	// it ran.
	Scripts []goldenScript `json:"scripts"`
	// Subscribed are the channels that were subscribed.
	Subscribed []string `json:"subscribed,omitempty"`
	// Messages are channel and payload, with a space between, of what was
	// published.
	Messages []string `json:"messages,omitempty"`
	// After are the keys after the call, without unlock latches, which Redisson
	// deletes at its leisure.
	After map[string]goldenHash `json:"after"`
}

// A goldenScript has its lists joined by spaces: none of their words has one.
type goldenScript struct {
	Keys string   `json:"keys"`
	Args string   `json:"args"`
	Runs []string `json:"runs"`
}

type goldenHash struct {
	Fields map[string]string `json:"fields"`
	TTLMs  int64             `json:"ttlMs"` // rounded up to a second
}

// plainLife shows all that a reentrant lock does.
var plainLife = []goldenStep{
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
var nonReentrantLife = []goldenStep{
	{Do: "lock", Thread: "t1"},
	{Do: "lock", Thread: "t1"},
	{Do: "tryLock", Thread: "t2"},
	{Do: "unlock", Thread: "t2"},
	{Do: "unlock", Thread: "t1"},
}

// watchedLife shows a renewal.
var watchedLife = []goldenStep{
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
			got := golden{Redisson: version}
			for _, name := range goldenNames {
				got.Vectors = append(got.Vectors, recordLife(t, version, peer.Plain, name, defaultWatchdog, plainLife))
				if version != peer.Oldest {
					got.Vectors = append(got.Vectors, recordLife(t, version, peer.NonReentrant, name, defaultWatchdog, nonReentrantLife))
				}
			}
			got.Vectors = append(got.Vectors, recordLife(t, version, peer.Plain, "a", javaWatchdog, watchedLife))
			compareGolden(t, got)
		})
	}
}

func compareGolden(t *testing.T, got golden) {
	t.Helper()
	file := filepath.Join("..", "..", "internal", "wire", "testdata", "redisson-"+got.Redisson+".json")
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
			t.Fatalf("Redisson %s does something else than %s says, from line %d on: %s", got.Redisson, file, i+1, gotLines[i])
		}
	}
	if len(gotLines) < len(wantLines) {
		t.Fatalf("Redisson %s does less than %s says: nothing from line %d on", got.Redisson, file, len(gotLines))
	}
}

// defaultWatchdog is Redisson's.
const defaultWatchdog = 30 * time.Second

// recordLife performs the steps and notes what each does.
func recordLife(t *testing.T, version, kind, name string, watchdog time.Duration, life []goldenStep) goldenVector {
	t.Helper()
	w := newWorld(t, cast{version: version, kind: kind}, testserver.Redis)
	w.name = name
	java, err := sharedOrFail(t, version).Open(w.ctx, peer.Options{Addr: w.server.Addr(), Watchdog: watchdog})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = java.Close(w.ctx) })
	w.java = java
	threads := map[string]javaLock{"t1": w.javaLock("t1"), "t2": w.javaLock("t2")}
	m := newMonitor(w, java.UUID, w.javaOwner("t1"), w.javaOwner("t2"))

	began := time.Now()
	v := goldenVector{Kind: kind, Name: name, WatchdogMs: watchdog.Milliseconds()}
	waiters := map[string]*waiting{}
	for _, s := range life {
		l, err := threads[s.Thread], error(nil)
		ok := true
		lease := time.Duration(s.LeaseMs) * time.Millisecond
		switch s.Do {
		case "lock":
			err = l.Lock.Lock(w.ctx, lease)
		case "tryLock":
			ok, err = l.TryLock(w.ctx, 0, lease)
		case "unlock":
			err = l.Unlock(w.ctx)
		case "forceUnlock":
			ok, err = l.ForceUnlock(w.ctx)
		case "waits":
			waiters[s.Thread] = w.javaWaits(l)
		case "renewal":
			m.awaitScript()
		}
		var thrown *peer.Error
		switch {
		case errors.As(err, &thrown):
			s.Result = thrown.Name
		case err != nil:
			t.Fatal(err)
		default:
			s.Result = strconv.FormatBool(ok)
		}
		if s.Then != "" {
			waiters[s.Then].returns()
		}
		m.note(&s)
		s.After = m.keys()
		v.Steps = append(v.Steps, s)
	}
	if watchdog == defaultWatchdog && time.Since(began) >= watchdog/3 {
		t.Fatalf("the machine is too slow: the steps took %v, and renewals may be among them", time.Since(began))
	}
	return v
}
