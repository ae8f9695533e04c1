package interop

import (
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// The short form of all stories, on Valkey.
func TestValkey(t *testing.T) {
	needsServers(t)
	t.Parallel()
	for _, version := range versions {
		for driver := range adapters {
			c := cast{version, driver, peer.Plain}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c, testserver.Valkey)
				w.javaWatched(ownWatchdog)
				j := w.javaLock("t1")

				h := w.goHolds(redlatch.Lease(long))
				javaWaiter := w.javaWaits(j)
				j2 := w.javaLock("t2")
				if j2.try(0, 0) {
					t.Fatal("Java got a lock that Go holds")
				}
				j2.refusesUnlock()
				w.release(h)
				w.inSoon(javaWaiter)
				w.holds(w.javaOwner("t1"), "1")

				w.javaKeepsTheLock(j)
			})
		}
	}
}

// What is not a lock, on Valkey.
func TestValkeySyncs(t *testing.T) {
	needsServers(t)
	t.Parallel()
	for kind, story := range map[string]func(*testing.T, *world){
		peer.Semaphore: semaphoreOfBoth, peer.Permits: permitsOfBoth, peer.Latch: latchOfBoth, peer.RateLimiter: rateOfBoth,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			story(t, newWorld(t, cast{peer.Newest, "goredis", kind}, testserver.Valkey))
		})
	}
}
