package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/golden"
)

// What Java has for an entry of a map, a set or a multimap has the same name here.
func TestEntriesAreRedissons(t *testing.T) {
	methods := map[string]func(redisson.Entry) string{
		"RMap.getLock":                     redisson.Entry.Lock,
		"RMap.getFairLock":                 redisson.Entry.FairLock,
		"RMap.getReadWriteLock":            redisson.Entry.ReadWriteLock,
		"RMap.getSemaphore":                redisson.Entry.Semaphore,
		"RMap.getPermitExpirableSemaphore": redisson.Entry.ExpirableSemaphore,
		"RMap.getCountDownLatch":           redisson.Entry.CountDownLatch,
		"RSet.getLock":                     redisson.Entry.Lock,
		"RListMultimap.getLock":            redisson.Entry.Lock,
	}
	files, err := filepath.Glob(golden.Dir + "entries-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files of entries: %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden.Entries
		if err := json.Unmarshal(text, &g); err != nil || len(g.Entries) == 0 {
			t.Fatalf("%s: %d entries, %v", file, len(g.Entries), err)
		}
		for _, e := range g.Entries {
			for method, name := range methods {
				if got, want := name(redisson.Entry{Object: e.Object, Key: e.Key}), e.Names[method]; got != want {
					t.Errorf("%s of %q in %q: %q, and Redisson %s says %q", method, e.Key, e.Object, got, g.Redisson, want)
				}
			}
			if len(e.Names) != len(methods) {
				t.Errorf("%q in %q has %d names in %s, and %d here", e.Key, e.Object, len(e.Names), file, len(methods))
			}
		}
	}
}
