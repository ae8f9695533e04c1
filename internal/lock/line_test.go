package lock

import (
	"runtime"
	"testing"
	"time"
)

// Shares of a line are taken under its tenure's mutex, and readers join a tenure
// under their line's: whoever looks at all lines must not wait for one of them
// while nobody can take shares. Somebody who released a write lock and still read,
// somebody who came to read and a force release stood still for good, and the
// client with them.
func TestNobodyWaitsForALineWhileAllAreLocked(t *testing.T) {
	for name, look := range map[string]func(ls *lines){
		"the tenure of values of a group": func(ls *lines) { ls.ofGroup("orders", "owner") },
		"the tenure of an owner":          func(ls *lines) { ls.known("orders", "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			c := &Locks{Options: Options{ID: "owner"}}
			c.lines = lines{c: c, m: map[lineKey]*line{}, places: newPlaces()}
			ls := &c.lines
			for _, k := range []lineKey{{"orders", false}, {"orders", true}} {
				ls.m[k] = &line{lineKey: k, refs: 1}
			}
			own := &line{lineKey: lineKey{name: "orders"}, id: "owner:1"}
			ls.own["owner:1"] = own
			busy := []*line{ls.m[lineKey{"orders", false}], ls.m[lineKey{"orders", true}], own}
			for _, ln := range busy {
				ln.mu.Lock()
			}
			looked := make(chan struct{})
			go func() {
				defer close(looked)
				look(ls)
			}()
			time.Sleep(10 * time.Millisecond) // it waits for a line by now, or this shows nothing
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
