package lock

import (
	"runtime"
	"testing"
	"time"
)

// Shares of an entry are taken under its term's mutex, and readers join a term
// under their entry's: whoever looks at all entries must not wait for one of them
// while nobody can take shares. Somebody who released a write lock and still read,
// somebody who came to read and a force release stood still for good, and the
// client with them.
func TestNobodyWaitsForALineWhileAllAreLocked(t *testing.T) {
	for name, look := range map[string]func(ls *table){
		"the term of values of a group": func(ls *table) { ls.ofPart("orders", "owner") },
		"the term of an owner":          func(ls *table) { ls.known("orders", "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			c := &Locks{Options: Options{ID: "owner"}}
			c.table = table{c: c, m: map[entryKey]*entry{}, fairWaiters: newFairWaiters()}
			ls := &c.table
			for _, k := range []entryKey{{"orders", ""}, {"orders", readWrite}} {
				ls.m[k] = &entry{entryKey: k, refs: 1}
			}
			own := &entry{entryKey: entryKey{name: "orders"}, id: "owner:1"}
			ls.own["owner:1"] = own
			busy := []*entry{ls.m[entryKey{"orders", ""}], ls.m[entryKey{"orders", readWrite}], own}
			for _, ln := range busy {
				ln.mu.Lock()
			}
			looked := make(chan struct{})
			go func() {
				defer close(looked)
				look(ls)
			}()
			time.Sleep(10 * time.Millisecond) // it waits for an entry by now, or this shows nothing
			for end := time.Now().Add(10 * time.Second); !ls.mu.TryLock(); runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatal("all lines are locked while it waits for one")
				}
			}
			ls.mu.Unlock()
			for _, ln := range busy {
				ln.mu.Unlock()
			}
			<-looked
		})
	}
}
