package wait

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/lock/term"
)

// Shares of an entry are taken under its term's mutex, and readers join a term
// under their entry's: whoever looks at all entries must not wait for one of them
// while nobody can take shares. Somebody who released a write lock and still read,
// somebody who came to read and a force release stood still for good, and the
// client with them.
func TestNobodyWaitsForAnEntryWhileAllAreLocked(t *testing.T) {
	for name, look := range map[string]func(ls *Table){
		"the term of values of a group": func(ls *Table) { ls.Holder("others", "stranger") },
		"the term of an owner":          func(ls *Table) { ls.Known("orders", "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			ls := NewTable(term.NewEnv(term.Options{ID: "owner"}, nil), []*term.Kind{{}, {Space: "read-write"}})
			var busy []*Entry
			for _, k := range []term.EntryKey{{Name: "orders"}, {Name: "orders", Space: "read-write"}} {
				busy = append(busy, ls.entries.Get(k, func() *Entry { return &Entry{ls: ls, EntryKey: k} }))
			}
			busy = append(busy, ls.own.Get("owner:1", func() *Entry {
				return &Entry{ls: ls, EntryKey: term.EntryKey{Name: "orders"}, ID: "owner:1"}
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
					e.Retain()
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
