package interop

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// Go and Java mean the same lock by an entry of a map, and whatever else Redisson has for one.
func TestEntriesOfMapsHaveTheSameNames(t *testing.T) {
	eachPair(t, peer.Plain, func(t *testing.T, w *world) {
		for _, object := range []string{"accounts", "{tenant}:accounts", "a b"} {
			for _, key := range []string{"42", "ü€😀", "a longer key than thirty-two bytes, so that it is two packets"} {
				e := redlatch.Entry{Object: object, Key: key}
				want := []string{e.Lock(), e.FairLock(), e.ReadWriteLock(), e.Lock(), e.Lock(), e.Semaphore(), e.ExpirableSemaphore(), e.CountDownLatch()}
				got, err := w.javaClient().Thread("t1").EntryNames(w.ctx, object, key)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%q of %q: %q, %v; want %q", key, object, got, err, want)
				}
			}
		}
	})
}
