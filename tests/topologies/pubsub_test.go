package topologies

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestEveryTypeWorksWithEachKindOfPubSub is about clusters; PubSubAuto, which is
// sharded there, has its column in the table of all topologies.
func TestEveryTypeWorksWithEachKindOfPubSub(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	place := topologies[3].start(t, testserver.Valkey)
	for name, modes := range map[string][2]redlatch.PubSub{
		"classic":          {redlatch.PubSubClassic, redlatch.PubSubClassic},
		"both":             {redlatch.PubSubBoth, redlatch.PubSubBoth},
		"both and classic": {redlatch.PubSubBoth, redlatch.PubSubClassic},
		"both and auto":    {redlatch.PubSubBoth, redlatch.PubSubAuto},
	} {
		for _, adapter := range drivers.Adapters {
			t.Run(name+"/"+adapter.Name, func(t *testing.T) {
				t.Parallel()
				a := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "a", Redisson: redlatch.Redisson{PubSub: modes[0]}})
				b := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "b", Redisson: redlatch.Redisson{PubSub: modes[1]}})
				for _, typ := range types {
					t.Run(typ.name, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), generous)
						defer cancel()
						typ.test(&pair{T: t, ctx: ctx, a: a, b: b, name: name + adapter.Name + typ.name})
					})
				}
				handOffsByMessage(t, a, b, name+adapter.Name)
			})
		}
	}
}

// handOffsByMessage lets two clients pass a lock to and fro, until it has been
// quick a few times, both ways. Without messages each time would take a poll, of
// at least 1.6 s.
func handOffsByMessage(t *testing.T, a, b *redlatch.Client, name string) {
	t.Helper()
	const poll, enough = 1500 * time.Millisecond, 8
	for kind, of := range map[string]func(c *redlatch.Client) *redlatch.Lock{
		"lock":       func(c *redlatch.Client) *redlatch.Lock { return c.Lock(name + "-turns") },
		"read-write": func(c *redlatch.Client) *redlatch.Lock { return c.ReadWriteLock(name + "-write").Write() },
	} {
		h, err := of(a).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := b
		quick := map[*redlatch.Client]int{}
		for end := time.Now().Add(generous); min(quick[a], quick[b]) < enough; {
			if time.Now().After(end) {
				t.Errorf("%s: hand-offs quicker than a poll: %d and %d: they are not heard of", kind, quick[a], quick[b])
				break
			}
			var next *redlatch.Hold
			got := make(chan error, 1)
			go func() {
				var err error
				next, err = of(other).Acquire(t.Context())
				got <- err
			}()
			time.Sleep(20 * time.Millisecond) // it listens by then
			released := time.Now()
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			if time.Since(released) < poll {
				quick[other]++
			}
			h = next
			if other == b {
				other = a
			} else {
				other = b
			}
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// wantTold checks that messages went the one way, and none the other.
func wantTold(t *testing.T, servers *testserver.Cluster, mode redlatch.PubSub) {
	t.Helper()
	told := map[string]bool{}
	for _, n := range servers.Nodes {
		stats, _ := n.MustDo("INFO", "commandstats").(string)
		for _, command := range []string{"publish", "spublish"} {
			told[command] = told[command] || strings.Contains(stats, "cmdstat_"+command+":")
		}
	}
	if want := mode == redlatch.PubSubAuto; told["spublish"] != want || told["publish"] == want {
		t.Errorf("messages went by %v", told)
	}
}

// waits returns how often nodes were asked to wait for replicas.
func waits(servers *testserver.Cluster) (sum int) {
	for _, n := range servers.Nodes {
		stats, _ := n.MustDo("INFO", "commandstats").(string)
		_, rest, _ := strings.Cut(stats, "cmdstat_wait:calls=")
		calls := 0
		_, _ = fmt.Sscanf(rest, "%d", &calls)
		sum += calls
	}
	return sum
}

// Four clients want one lock, while its slot goes from node to node, and replicas
// are to acknowledge who gets it: no acquisition fails.
func TestASlotMovesInTheMiddleOfAContendedRun(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, mode := range []redlatch.PubSub{redlatch.PubSubAuto, redlatch.PubSubClassic} {
		for _, adapter := range drivers.Adapters {
			t.Run(fmt.Sprintf("%d/%s", mode, adapter.Name), func(t *testing.T) {
				t.Parallel()
				servers := testserver.StartCluster(t, testserver.Redis)
				place := drivers.Cluster(servers)
				const name = "orders"
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var inside, most, n, lost atomic.Int64
				var wg sync.WaitGroup
				for i := range 4 {
					c := client(t, adapter.Open(t, place), redlatch.Config{ServerName: fmt.Sprint(i), Redisson: redlatch.Redisson{PubSub: mode}})
					wg.Go(func() {
						for ctx.Err() == nil {
							h, err := c.Lock(name).Acquire(ctx)
							if err != nil {
								if ctx.Err() == nil {
									t.Errorf("Acquire: %v", err)
								}
								return
							}
							most.Store(max(most.Load(), inside.Add(1)))
							n.Add(1)
							time.Sleep(100 * time.Microsecond)
							inside.Add(-1)
							if err := h.Release(context.WithoutCancel(ctx)); err != nil {
								lost.Add(1)
								t.Errorf("Release: %v", err)
							}
						}
					})
				}
				const moves = 4
				progress := func(what string) {
					from, start := n.Load(), time.Now()
					for n.Load() < from+50 {
						if time.Since(start) > generous {
							t.Fatalf("%s: %d acquisitions in %v", what, n.Load()-from, generous)
						}
						time.Sleep(5 * time.Millisecond)
					}
					t.Logf("%s: 50 acquisitions in %v", what, time.Since(start))
				}
				progress("before")
				for i := range moves {
					servers.MoveSlot(name)
					progress(fmt.Sprintf("after %d moves", i+1))
				}
				stop()
				wg.Wait()
				if waits(servers) == 0 {
					t.Error("nobody has waited for replicas")
				}
				if most.Load() != 1 || lost.Load() != 0 {
					t.Errorf("%d inside at once, %d lost", most.Load(), lost.Load())
				}
				a := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "a", Redisson: redlatch.Redisson{PubSub: mode}})
				b := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "b", Redisson: redlatch.Redisson{PubSub: mode}})
				servers.MoveSlot(name + "-turns")
				handOffsByMessage(t, a, b, name)
				wantTold(t, servers, mode)
			})
		}
	}
}
