package topologies

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Four wait for a fair lock whose slot is marked to move, and of which any part is
// at the new node. Each has the lock, and until it has it, its place.
func TestNobodyLosesItsPlaceWhileASlotMoves(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for i, kind := range testserver.EveryKind() {
		adapter := drivers.Adapters[i%len(drivers.Adapters)]
		t.Run(fmt.Sprintf("%v/%s", kind, adapter.Name), func(t *testing.T) {
			t.Parallel()
			c := testserver.StartCluster(t, kind)
			var clients []*redlatch.Client
			for _, who := range []string{"a", "b", "c"} {
				clients = append(clients, client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{
					ServerName:    who,
					OutageTimeout: 2 * locktest.Generous,
					Acks:          redlatch.AckOff, // or a waiter is not given the lock, but told to take it, which has to wait for the move
				}))
			}
			for n := range 2*fairParts + 1 {
				queueMoves(t, c, at(c, fmt.Sprint("queue", n)), n, clients)
			}
		})
	}
}

// fairParts is how many keys a fair lock has for which somebody waits.
const fairParts = 4

// queueMoves lets the n-th part of a fair lock move before, and after all others;
// 0 is none.
func queueMoves(t *testing.T, c *testserver.Cluster, name string, n int, clients []*redlatch.Client) {
	t.Helper()
	const waiters = 4
	key, old := wire.Prefix(wire.LockQueue, name), c.PrimaryOf(name)
	a := acquired(t, clients[0].FairLock(name))
	var m *testserver.SlotMove
	var places, had, carried []string // had is guarded by the lock
	var all sync.WaitGroup
	begins, has := make(chan struct{}), make(chan struct{}, waiters)
	for i := range waiters {
		all.Go(func() {
			h, err := clients[i%len(clients)].FairLock(name).Acquire(t.Context())
			if err != nil {
				t.Errorf("%q were at the new node: waiter %d: %v", carried, i, err)
				return
			}
			<-begins
			had = append(had, h.ID())
			left := slices.DeleteFunc(slices.Clone(places), func(id string) bool { return slices.Contains(had, id) })
			if now, ok := queueOf(m, key); ok && !slices.Equal(now, left) {
				t.Errorf("%q were at the new node: of %q these have had the lock: %q, and these wait: %q", carried, places, had, now)
			}
			has <- struct{}{}
			released(t, h)
		})
		within(t, "the next one waits", func() bool { return len(stored(old, key)) > i })
	}
	within(t, "all can be given the lock", func() bool {
		able, _ := old.MustDo("ZRANGEBYSCORE", wire.Prefix(wire.LockAlive, name), "2000000000000", "+inf").([]any)
		return len(able) == waiters
	})
	m = c.MarkSlot(name)
	places = stored(old, key)
	parts := m.Keys()
	slices.Sort(parts)
	switch {
	case len(parts) != fairParts:
		t.Errorf("it has other keys: %q", parts)
	case n > fairParts:
		carried = slices.Delete(slices.Clone(parts), n-1-fairParts, n-fairParts)
	case n > 0:
		carried = parts[n-1 : n]
	}
	m.Carry(carried...)
	close(begins)
	over := make(chan error, 1)
	go func() { over <- a.Release(context.WithoutCancel(t.Context())) }()
	if n == 0 { // they go on at the old node, but for one who has been given it as the last, and missed the message: nothing is left to ask about
		within(t, "they have had it at the old node", func() bool { return len(has) >= waiters-1 })
	}
	m.Finish()
	if err := <-over; err != nil {
		t.Errorf("%q were at the new node: the release: %v", carried, err)
	}
	all.Wait()
	within(t, "nothing is left", func() bool {
		return len(stored(m.To, key)) == 0 && m.To.MustDo("EXISTS", name, wire.Prefix(wire.LockTimeout, name)) == int64(0)
	})
}

// stored returns who stands in the queue of a fair lock, at a node that has it.
func stored(s *testserver.Server, key string) []string {
	list, _ := s.MustDo("LRANGE", key, "0", "-1").([]any)
	return text(list)
}

// queueOf returns who stands in the queue of a fair lock whose slot moves, if a
// node says so to one that does not ask the other.
func queueOf(m *testserver.SlotMove, key string) ([]string, bool) {
	for _, s := range []*testserver.Server{m.From, m.To} {
		if reply, err := s.Do("LRANGE", key, "0", "-1"); err == nil {
			list, ok := reply.([]any)
			return text(list), ok
		}
	}
	return nil, false
}

func text(list []any) (all []string) {
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// Several wait for fair locks whose slot is marked to move for longer than a
// waiter may be silent. One lock is free all the while, and of each of the others
// one key is at the new node, so that no request of a waiter is answered. In the
// end they have the locks in the order in which they came. A cluster's
// acknowledgements are the default ones: no waiter is given a lock.
func TestNobodyLosesItsPlaceWhileASlotStaysMarked(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	const waiters, marked = 4, 9 * time.Second
	c := testserver.StartCluster(t, testserver.Redis)
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			t.Parallel()
			var clients []*redlatch.Client
			for _, who := range []string{"a", "b", "c"} {
				clients = append(clients, client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: who}))
			}
			tag := "{" + at(c, "marked-"+adapter.Name) + "}"
			old := c.PrimaryOf(tag)
			var all sync.WaitGroup
			var holds []*redlatch.Hold
			var names []string
			var places, had [fairParts + 1][]string // each list of had is guarded by its lock
			for n := range places {
				name := fmt.Sprint(tag, n)
				queue := wire.Prefix(wire.LockQueue, name)
				names, holds = append(names, name), append(holds, acquired(t, clients[0].FairLock(name)))
				for i := range waiters {
					all.Go(func() {
						h, err := clients[i%len(clients)].FairLock(name).Acquire(t.Context())
						if err != nil {
							t.Errorf("waiter %d of %s: %v", i, name, err)
							return
						}
						had[n] = append(had[n], h.ID())
						released(t, h)
					})
					within(t, "the next one waits", func() bool { return len(stored(old, queue)) > i })
				}
				places[n] = stored(old, queue)
			}
			m := c.MarkSlot(tag)
			released(t, holds[fairParts])
			m.Carry(names[0], wire.Prefix(wire.LockQueue, names[1]), wire.Prefix(wire.LockTimeout, names[2]), wire.Prefix(wire.LockAlive, names[3]))
			time.Sleep(marked)
			m.Finish()
			for _, h := range holds[:fairParts] {
				released(t, h)
			}
			all.Wait()
			for n := range places {
				if !slices.Equal(had[n], places[n]) {
					t.Errorf("%s: they came as %q, and had it as %q", names[n], places[n], had[n])
				}
			}
		})
	}
}

// Many wait for fair locks, while slots move key by key, in any order: no
// acquisition fails, nobody has a lock beside another, and in the end nothing is
// left of any.
func TestFairLocksGoOnWhileASlotMoves(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			t.Parallel()
			c := testserver.StartCluster(t, testserver.Redis)
			const tag, names = "{moving}", 10
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var inside [names]atomic.Int64
			var got, wrong atomic.Int64
			var all sync.WaitGroup
			for who := range 3 {
				a := client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: fmt.Sprint(who)})
				for i := range 2 * names {
					all.Go(func() {
						for l := a.FairLock(fmt.Sprint(tag, i%names)); ctx.Err() == nil; {
							h, err := l.Acquire(ctx)
							if err != nil {
								if ctx.Err() == nil {
									t.Errorf("Acquire: %v", err)
								}
								continue
							}
							if inside[i%names].Add(1) != 1 {
								wrong.Add(1)
							}
							got.Add(1)
							time.Sleep(rand.N(5 * time.Millisecond))
							inside[i%names].Add(-1)
							if err := h.Release(context.WithoutCancel(ctx)); err != nil {
								t.Errorf("Release: %v", err)
							}
						}
					})
				}
			}
			moveOften(t, c, tag, &got)
			stop()
			all.Wait()
			t.Logf("%d acquisitions", got.Load())
			if wrong.Load() > 0 {
				t.Errorf("%d times two had a lock", wrong.Load())
			}
			node := c.PrimaryOf(tag)
			within(t, "nothing is left", func() bool {
				return !slices.ContainsFunc(node.Keys(), func(key string) bool { return strings.Contains(key, tag) })
			})
		})
	}
}
