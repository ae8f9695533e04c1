package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// A life is what recordLife performs.
type life struct {
	kind     string
	watchdog time.Duration
	steps    []golden.Step
}

// fairLives: two who wait, one who gives up, a head that is told, a release that
// frees nothing and succeeds.
var fairLives = []life{
	{peer.Fair, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1", LeaseMs: 60_000},
		{Do: "tryLock", Thread: "t2"},
		{Do: "waits", Thread: "t2"},
		{Do: "waits", Thread: "t3"},
		{Do: "lock", Thread: "t1", LeaseMs: 60_000},
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t4"},
		{Do: "unlock", Thread: "t1", Then: "t2"},
		{Do: "tryLock", Thread: "t4", WaitMs: 1000, LeaseMs: 60_000},
		{Do: "forceUnlock", Thread: "t1", Then: "t3"},
		{Do: "unlock", Thread: "t3"},
		{Do: "unlock", Thread: "t1"},
		{Do: "forceUnlock", Thread: "t1"},
	}},
	{peer.Fair, defaultWatchdog, []golden.Step{ // who waits in vain is removed, and those behind move up
		{Do: "lock", Thread: "t1", LeaseMs: 60_000},
		{Do: "tryLock", Thread: "t2", WaitMs: 1000, LeaseMs: 60_000},
		{Do: "tryLock", Thread: "t3", WaitMs: 1000, LeaseMs: 20_000},
		{Do: "unlock", Thread: "t1"},
	}},
	{peer.FairOnce, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "lock", Thread: "t1"},
		{Do: "tryLock", Thread: "t1"},
		{Do: "tryLock", Thread: "t2"},
		{Do: "waits", Thread: "t2"},
		{Do: "unlock", Thread: "t1", Then: "t2"},
		{Do: "unlock", Thread: "t2"},
	}},
	{peer.Fair, renewedWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "renewal", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
	}},
}

// readWriteLives: a nest with a downgrade, a crowd of readers with a writer
// behind it, readers that are woken together, a reader that died, renewals.
var readWriteLives = []life{
	{peer.Write, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "lock", Thread: "t1"},
		{Do: "lock", Thread: "t1", Kind: peer.Read},
		{Do: "lock", Thread: "t1", Kind: peer.Read, LeaseMs: 20_000},
		{Do: "tryLock", Thread: "t2", Kind: peer.Read},
		{Do: "tryLock", Thread: "t2"},
		{Do: "unlock", Thread: "t2"},
		{Do: "unlock", Thread: "t2", Kind: peer.Read},
		{Do: "unlock", Thread: "t1", Kind: peer.Read},
		{Do: "unlock", Thread: "t1"},
		{Do: "waits", Thread: "t2", Kind: peer.Read},
		{Do: "unlock", Thread: "t1", Differs: "who only reads from now on wakes the readers that wait"},
		{Do: "tryLock", Thread: "t1"},
		{Do: "tryLock", Thread: "t3", Kind: peer.Read},
		{Do: "unlock", Thread: "t3", Kind: peer.Read},
		{Do: "unlock", Thread: "t1", Kind: peer.Read, Then: "t2"},
		{Do: "unlock", Thread: "t2", Kind: peer.Read},
		{Do: "lock", Thread: "t1", LeaseMs: 20_000},
		{Do: "forceUnlock", Thread: "t2", Kind: peer.Read},
		{Do: "forceUnlock", Thread: "t2"},
		{Do: "forceUnlock", Thread: "t2"},
		{Do: "unlock", Thread: "t1"},
	}},
	{peer.Read, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1", LeaseMs: 20_000},
		{Do: "lock", Thread: "t2", LeaseMs: 60_000},
		{Do: "lock", Thread: "t1"},
		{Do: "waits", Thread: "t3", Kind: peer.Write},
		{Do: "unlock", Thread: "t2"}, // the TTL falls to what is left
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t1", Then: "t3"},
		{Do: "waits", Thread: "t1"},
		{Do: "waits", Thread: "t2"},
		{Do: "unlock", Thread: "t3", Kind: peer.Write, Then: "t1 t2"},
		{Do: "forceUnlock", Thread: "t3", Kind: peer.Write},
		{Do: "forceUnlock", Thread: "t3", Differs: "it takes the keys by which readers time out with it"},
		{Do: "unlock", Thread: "t2"},
	}},
	{peer.Read, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1", LeaseMs: 500},
		{Do: "lock", Thread: "t2", LeaseMs: 60_000},
		{Do: "pause", Thread: "t1", WaitMs: 600, Differs: "it releases a hold whose lease has run out"},
		{Do: "unlock", Thread: "t2"}, // the last that lives takes the other with it
	}},
	{peer.Read, renewedWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "lock", Thread: "t2", LeaseMs: 60_000},
		{Do: "renewal", Thread: "t1", Differs: "it never shortens a TTL"},
		{Do: "unlock", Thread: "t1"},
	}},
	{peer.Write, renewedWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "renewal", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
	}},
}

// fencedLives: every acquisition counts, one that asks for no token and a
// re-entry too; a refusal does not.
var fencedLives = []life{
	{peer.Fenced, defaultWatchdog, []golden.Step{
		{Do: "lockAndGetToken", Thread: "t1"},
		{Do: "lockAndGetToken", Thread: "t1", Differs: "its re-entry does not fence its own outer hold out"},
		{Do: "lock", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
	}},
	{peer.Fenced, defaultWatchdog, []golden.Step{
		{Do: "getToken", Thread: "t1"},
		{Do: "lockAndGetToken", Thread: "t1"},
		{Do: "tryLockAndGetToken", Thread: "t2", LeaseMs: 10_000},
		{Do: "tryLock", Thread: "t2"},
		{Do: "getToken", Thread: "t2"},
		{Do: "waits", Thread: "t2", LeaseMs: 20_000},
		{Do: "unlock", Thread: "t1", Then: "t2"},
		{Do: "getToken", Thread: "t2"},
		{Do: "forceUnlock", Thread: "t1"},
		{Do: "tryLockAndGetToken", Thread: "t1", LeaseMs: 10_000},
		{Do: "unlock", Thread: "t1"},
		{Do: "lock", Thread: "t1", Kind: peer.Plain}, // this one does not
		{Do: "unlock", Thread: "t1", Kind: peer.Plain},
		{Do: "getToken", Thread: "t1"},
	}},
}

// spinLives: nothing is told to anyone.
var spinLives = []life{
	{peer.Spin, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "lock", Thread: "t1", LeaseMs: 60_000},
		{Do: "tryLock", Thread: "t2"},
		{Do: "unlock", Thread: "t2"},
		{Do: "unlock", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
		{Do: "lock", Thread: "t1", LeaseMs: 20_000},
		{Do: "forceUnlock", Thread: "t2"},
		{Do: "forceUnlock", Thread: "t2"},
	}},
	{peer.Spin, renewedWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1"},
		{Do: "renewal", Thread: "t1"},
		{Do: "unlock", Thread: "t1"},
	}},
}

// groupLives: some values of a group, one of them twice.
var groupLives = []life{
	{peer.Group, defaultWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1", Values: []string{"x", "y"}},
		{Do: "lock", Thread: "t1", Values: []string{"y"}, LeaseMs: 60_000},
		{Do: "tryLock", Thread: "t2", Values: []string{"y", "z"}},
		{Do: "tryLock", Thread: "t2", Values: []string{"z"}},
		{Do: "unlock", Thread: "t2", Values: []string{"x"}},
		{Do: "unlock", Thread: "t1", Values: []string{"x"}},
		{Do: "unlock", Thread: "t1", Values: []string{"y"}},
		{Do: "forceUnlock", Thread: "t1", Values: []string{"z"}},
		{Do: "waits", Thread: "t3", Values: []string{"y", "ü"}},
		{Do: "unlock", Thread: "t1", Values: []string{"y"}, Then: "t3"},
		{Do: "unlock", Thread: "t3", Values: []string{"y", "ü"}},
		{Do: "forceUnlock", Thread: "t3", Values: []string{"y"}},
	}},
	{peer.Group, renewedWatchdog, []golden.Step{
		{Do: "lock", Thread: "t1", Values: []string{"x", "y"}},
		{Do: "renewal", Thread: "t1", Values: []string{"x"}},
		{Do: "unlock", Thread: "t1", Values: []string{"x", "y"}},
	}},
}

// familyNames are goldenNames for lives that take longer.
var familyNames = []string{"a", "x{ä}y:z"}

// TestGoldenFamily is TestGolden for all but the plain locks.
func TestGoldenFamily(t *testing.T) {
	needsServers(t)
	t.Parallel()
	for file, lives := range map[string][]life{
		"fair": fairLives, "readwrite": readWriteLives, "fenced": fencedLives, "spin": spinLives, "group": groupLives,
	} {
		for _, version := range versions {
			t.Run(file+"/"+version, func(t *testing.T) {
				t.Parallel()
				got := newRecording(t, version, file)
				for _, l := range lives {
					for _, name := range familyNames {
						if has(version, l.kind) && (l.watchdog == defaultWatchdog || name == "a") {
							got.add(l.kind, name, l.watchdog, l.steps)
						}
					}
				}
				if len(got.Vectors) > 0 {
					got.compare()
				}
			})
		}
	}
}

// hashed are values of a group: some that are easy to get wrong, and of every
// length that the hash treats in a way of its own.
func hashed() []string {
	all := []string{
		"a", "b", "A", " ", "0", "-1", "ü", "käse 🧀", "日本語", "a:b", "{a}", "\x00", "\r\n", `"`, //nolint:gosmopolitan // values of any script
		"7f9c2ba4-e88f-827d-6160-455000000000", "order:12345", strings.Repeat("x", 1000), strings.Repeat("äö", 333),
	}
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/=" // 65
	for n := range len(alphabet) + 1 {
		all = append(all, alphabet[:n])
	}
	return all
}

// TestGoldenHashes records which field stands for which value of a group.
func TestGoldenHashes(t *testing.T) {
	needsServers(t)
	t.Parallel()
	w := newWorld(t, cast{version: peer.Newest, kind: peer.Group}, testserver.Redis)
	got := struct {
		Redisson string            `json:"redisson"`
		Fields   map[string]string `json:"fields"` // by value
	}{peer.Newest, map[string]string{}}
	for _, value := range hashed() {
		l := w.javaClient().Thread("t1").Group(w.name, value)
		if err := l.Lock(w.ctx, long); err != nil {
			t.Fatal(err)
		}
		for field := range w.fields() {
			if !strings.Contains(field, ":") {
				got.Fields[value] = field
			}
		}
		if err := l.Unlock(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.free()
	}
	compareGolden(t, "grouphashes-"+peer.Newest, got)
}
