// Package nameclash refuses names that cannot be meant together.
//
// Two objects are twins if one's name is the other's in braces. Redisson puts the
// names of side keys and channels into braces, unless there are some, so twins
// share them: "x" and "{x}" are two fair locks with one queue. A client that uses
// both is told so, because that cannot be meant.
//
// It promises that it does not grow with the names that are used, and forgets none
// that is in use all the time.
package nameclash

import (
	"sync"

	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/wire"
)

// Names are the names that a client has used of objects that share with their
// twins what they must not share.
type Names struct {
	mu     sync.Mutex // guards what follows
	names  map[twin]string
	before map[twin]string // used longer ago
}

// A twin is what both names have in common.
type twin struct{ shared, tag string }

// What twins share.
const (
	Queues   = "fair locks %q and %q share their queue"
	Writers  = "read-write locks %q and %q that prefer writers share the list of those who wait to write"
	Rates    = "rate limiters %q and %q share what they have given"
	Permits  = "expirable semaphores %q and %q share the times of their permits"
	Barriers = "barriers %q and %q are one barrier"
)

// mostTwins is how many names are remembered at least, and half of how many at
// most.
const mostTwins = 10_000

// Use notes that the client uses a name. It fails if it has used the twin's.
func (ts *Names) Use(shared, name string) error {
	k := twin{shared, wire.Tag(name)}
	if k.tag == "" {
		return nil // it has none
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	used := ts.names[k]
	if used == "" {
		used = ts.before[k]
	}
	if used != "" && used != name {
		return invalid.Errorf("redlatch: "+shared+" in Redis, where a name without braces gets some; this client has used the first one, so use no other", used, name)
	}
	if len(ts.names) >= mostTwins {
		ts.before, ts.names = ts.names, nil
	}
	if ts.names == nil {
		ts.names = make(map[twin]string)
	}
	ts.names[k] = name
	return nil
}
