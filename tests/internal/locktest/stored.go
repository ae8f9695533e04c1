package locktest

import (
	"maps"
	"slices"
	"testing/synctest"

	"github.com/redlatch/redlatch/internal/wire"
)

// FairKeys are the keys of a fair lock, as Redisson names them, and ours.
func FairKeys(name string) (queue, timeouts, alive string) {
	return wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockAlive, name)
}

// Queue returns who waits for a fair lock, the first one first. The list and
// the sorted set must name the same waiters.
func (w *World) Queue(name string) []string {
	w.Helper()
	synctest.Wait() // what the server returns is its own
	queue, timeouts, _ := FairKeys(name)
	var ids []string
	if w.Server.Exists(queue) {
		ids, _ = w.Server.List(queue)
	}
	scores := map[string]float64{}
	if w.Server.Exists(timeouts) {
		scores, _ = w.Server.SortedSet(timeouts)
	}
	w.Server.Lock()
	ids, scores = slices.Clone(ids), maps.Clone(scores)
	w.Server.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(maps.Keys(scores))) {
		w.Fatalf("the list has %q, the sorted set %v", ids, scores)
	}
	return ids
}

// Fields returns what Redis shows of a lock, "" for a field that is not there.
func (w *World) Fields(name string) map[string]string {
	w.Settle()
	m := map[string]string{}
	keys, _ := w.Server.HKeys(name)
	for _, k := range keys {
		m[k] = w.Server.HGet(name, k)
	}
	return m
}

// WantFields checks what Redis shows of a lock.
func (w *World) WantFields(when, name string, want map[string]string) {
	w.Helper()
	got := w.Fields(name)
	ok := len(got) == len(want)
	for k, v := range want {
		ok = ok && got[k] == v
	}
	if !ok {
		w.Fatalf("%s: Redis shows %v, want %v", when, got, want)
	}
}
