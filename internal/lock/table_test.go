package lock

import (
	"testing"
	"time"
	"unsafe"
)

// Shares of an entry are taken under its term's mutex, and readers join a term
// under their entry's: whoever looks at all entries must not wait for one of them
// while nobody can take shares. Somebody who released a write lock and still read,
// somebody who came to read and a force release stood still for good, and the
// client with them.
func TestNobodyWaitsForAnEntryWhileAllAreLocked(t *testing.T) {
	for name, look := range map[string]func(ls *table){
		"the term of values of a group": func(ls *table) { ls.holder("orders", "owner") },
		"the term of an owner":          func(ls *table) { ls.known("orders", "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			ls := newTable(newEnv(Options{ID: "owner"}, nil), nil)
			var busy []*entry
			for _, k := range []entryKey{{"orders", ""}, {"orders", readWrite}} {
				busy = append(busy, ls.entries.Get(k, func() *entry { return &entry{ls: ls, entryKey: k} }))
			}
			busy = append(busy, ls.own.Get("owner:1", func() *entry {
				return &entry{ls: ls, entryKey: entryKey{Name: "orders"}, id: "owner:1"}
			}))
			for _, e := range busy {
				e.Lock()
			}
			looked := make(chan struct{})
			go func() {
				defer close(looked)
				look(ls)
			}()
			time.Sleep(10 * time.Millisecond) // it waits for an entry by now, or this shows nothing
			shared := make(chan struct{})
			go func() {
				defer close(shared)
				for _, e := range busy {
					e.retain()
				}
			}()
			select {
			case <-shared:
			case <-time.After(10 * time.Second):
				t.Fatal("nobody can take shares while it waits for an entry")
			}
			for _, e := range busy {
				e.Unlock()
			}
			<-looked
		})
	}
}

// The client is closed while a spare is made: the subscription that had not begun when all spares were ended stayed
// for as long as the driver.
func TestNoSpareListensAfterClose(t *testing.T) {
	for _, closing := range []string{"before", "meanwhile"} {
		var c queuers
		e, listens := &ownEntry{}, false
		hear := func() {
			if closing == "meanwhile" {
				c.closeSpares()
			}
			e.news.Start(func(func(bool)) func() {
				listens = true
				return func() { listens = false }
			}, nil)
		}
		if closing == "before" {
			c.closeSpares()
		}
		if c.addSpare("orders", e, hear) || listens || c.spares != nil {
			t.Errorf("closed %s: listens is %v, the spares are %v", closing, listens, c.spares)
		}
	}
	var c queuers
	e, listens := &ownEntry{}, false
	if !c.addSpare("orders", e, func() { listens = true }) || !listens || c.takeSpare("orders", e) != e {
		t.Errorf("no spare was added; listens is %v", listens)
	}
}

// Each hold has one of either. A few bytes more would cost 64, because Go allocates in classes of sizes and puts a header of
// eight bytes before what is larger than 512.
func TestAHoldCostsNoLargerSizeClass(t *testing.T) {
	t.Parallel()
	const header = 8
	if got := unsafe.Sizeof(term{}) + header; got > 832 {
		t.Errorf("a term needs %d bytes, more than the class of 832", got)
	}
	if got := unsafe.Sizeof(entry{}) + header; got > 576 {
		t.Errorf("an entry needs %d bytes, more than the class of 576", got)
	}
}
