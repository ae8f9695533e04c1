package topologies

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Two read. The lock is at the new node, and what keeps the readers alive is not.
// One of them leaves: nobody writes while the other one reads.
func TestAReaderKeepsItsLockWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			name := at(c, "readers-"+adapter.Name)
			var clients []*redlatch.Client
			for _, who := range []string{"a", "b", "w"} {
				clients = append(clients, client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: who}))
			}
			a := acquired(t, clients[0].ReadWriteLock(name).Read())
			b := acquired(t, clients[1].ReadWriteLock(name).Read())
			m := c.MarkSlot(name)
			m.Carry(name)
			if err := b.Release(t.Context()); err != nil {
				t.Errorf("the release: %v", err)
			}
			if h, err := clients[2].ReadWriteLock(name).Write().TryAcquire(t.Context(), 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("a writer beside a reader who believes in its hold (%v): %v, %v", a.Err(), h, err)
			}
			m.Finish()
			released(t, a)
			released(t, acquired(t, clients[2].ReadWriteLock(name).Write()))
		})
	}
}

// A slot is marked to move. Who writes releases, and the lock is free.
func TestAWriterLeavesNothingWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			name := at(c, "writer-"+adapter.Name)
			a := client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: "a"})
			h := acquired(t, a.ReadWriteLock(name).Write())
			m := c.MarkSlot(name)
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("the release: %v", err)
			}
			start := time.Now()
			released(t, acquired(t, a.ReadWriteLock(name).Write()))
			if d := time.Since(start); d > 15*time.Second {
				t.Errorf("the next one has it after %v", d)
			}
			m.Finish()
		})
	}
}

// at returns a name at the first node, so that slots move from there to the second
// one, and never back: to know who is the last to have a slot takes the nodes a
// second.
func at(c *testserver.Cluster, name string) string {
	for i := 0; c.PrimaryOf(name) != c.Nodes[0]; i++ {
		name = fmt.Sprint(name, i)
	}
	return name
}

func acquired(t *testing.T, l *redlatch.Lock, options ...redlatch.PlainOption) *redlatch.Hold {
	t.Helper()
	h, err := locktest.With(l, options...).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func released(t *testing.T, h *redlatch.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// kept are locks, and what each of them has in the slot that moves.
var kept = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"Lock":       func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name) },
	"FencedLock": func(c *redlatch.Client, name string) *redlatch.Lock { return c.Lock(name, redlatch.Fenced()) },
	"FairLock":   func(c *redlatch.Client, name string) *redlatch.Lock { return c.FairLock(name) },
	"GroupLock": func(c *redlatch.Client, name string) *redlatch.Lock {
		return redisson.GroupLock(c, name, []string{"x", "y"})
	},
	"read":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"write": func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"preferring": func(c *redlatch.Client, name string) *redlatch.Lock {
		return c.ReadWriteLock(name).PreferWriters().Read()
	},
}

// Whatever part of a lock is at the new node of a slot that moves, nobody else has
// it, its holders keep it, and when they have released it and the slot has moved,
// it is free.
func TestNoPartOfALockIsTakenForTheWholeWhileASlotMoves(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.EveryKind() {
		c := testserver.StartCluster(t, kind)
		for _, adapter := range drivers.Adapters {
			var clients []*redlatch.Client
			for _, who := range []string{"a", "b", "w"} {
				clients = append(clients, client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: who}))
			}
			for what, lock := range kept {
				t.Run(fmt.Sprintf("%v/%s/%s", kind, adapter.Name, what), func(t *testing.T) {
					for n := 0; ; n++ {
						if !movesInParts(t, c, at(c, fmt.Sprint(what, adapter.Name, n)), n, clients, lock) {
							break
						}
					}
				})
			}
		}
	}
}

// movesInParts lets the n-th part of a lock move before, and after all others; 0
// is none. It says whether there was one.
func movesInParts(t *testing.T, c *testserver.Cluster, name string, n int, clients []*redlatch.Client, lock func(c *redlatch.Client, name string) *redlatch.Lock) bool {
	t.Helper()
	a := acquired(t, lock(clients[0], name), redlatch.Lease(time.Minute))
	reader, err := lock(clients[1], name).TryAcquire(t.Context(), 0)
	shared := err == nil
	if !shared && !errors.Is(err, redlatch.ErrBusy) {
		t.Fatal(err)
	}
	exclusive := lock(clients[2], name)
	if shared {
		exclusive = clients[2].ReadWriteLock(name).Write()
	}
	m := c.MarkSlot(name)
	parts := m.Keys()
	slices.Sort(parts)
	carried := parts[:0]
	switch {
	case n > 2*len(parts):
		m.Finish()
		released(t, a)
		if shared {
			released(t, reader)
		}
		return false
	case n > len(parts):
		carried = slices.Delete(slices.Clone(parts), n-1-len(parts), n-len(parts))
	case n > 0:
		carried = parts[n-1 : n]
	}
	m.Carry(carried...)
	refused := func(when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if h, err := exclusive.TryAcquire(ctx, 0); err == nil {
			t.Errorf("%q of %q are at the new node, and it is %s: somebody else has it, too: %v", carried, parts, when, h)
			released(t, h)
		}
	}
	refused("held")
	if shared {
		if err := reader.Release(t.Context()); err != nil {
			t.Errorf("%q of %q are at the new node: the release of one of two: %v", carried, parts, err)
		}
		refused("held by one of two")
	}
	over := make(chan error, 1)
	go func() {
		ctx := context.WithoutCancel(t.Context())
		over <- errors.Join(a.Extend(ctx, time.Minute), a.Release(ctx))
	}()
	m.Finish()
	if err := <-over; err != nil {
		t.Errorf("%q of %q were at the new node: Extend, and the release: %v", carried, parts, err)
	}
	start := time.Now()
	released(t, acquired(t, exclusive))
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("%q of %q were at the new node: the next one has it after %v", carried, parts, d)
	}
	return true
}

// Many read and write, while slots move key by key, in any order: no acquisition
// fails, and nobody reads while somebody writes.
func TestReadersAndWritersGoOnWhileASlotMoves(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			t.Parallel()
			c := testserver.StartCluster(t, testserver.Redis)
			const tag, names = "{moving}", 10
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var inside [names]atomic.Int64 // readers, or a million for a writer
			var got, failed, wrong atomic.Int64
			var wg sync.WaitGroup
			for who := range 3 {
				a := client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: fmt.Sprint(who)})
				for i := range 4 * names {
					wg.Go(func() {
						l, weight := a.ReadWriteLock(fmt.Sprint(tag, i%names)), int64(1)
						side := l.Read()
						if i < names/2 {
							side, weight = l.Write(), 1_000_000
						}
						for ctx.Err() == nil {
							h, err := side.Acquire(ctx)
							if err != nil {
								if ctx.Err() == nil {
									failed.Add(1)
									t.Errorf("Acquire: %v", err)
								}
								continue
							}
							if n := inside[i%names].Add(weight); n >= 1_000_000 && n != weight {
								wrong.Add(1)
							}
							got.Add(1)
							time.Sleep(rand.N(5 * time.Millisecond))
							inside[i%names].Add(-weight)
							if err := h.Release(context.WithoutCancel(ctx)); err != nil {
								failed.Add(1)
								t.Errorf("Release: %v", err)
							}
						}
					})
				}
			}
			moveOften(t, c, tag, &got)
			stop()
			wg.Wait()
			t.Logf("%d acquisitions, %d failures", got.Load(), failed.Load())
			if wrong.Load() > 0 {
				t.Errorf("%d times somebody was inside with a writer", wrong.Load())
			}
		})
	}
}

// moveOften lets a slot move four times, key by key, and waits each time until
// those go on who count in got.
func moveOften(t *testing.T, c *testserver.Cluster, tag string, got *atomic.Int64) {
	t.Helper()
	for range 4 {
		m := c.MarkSlot(tag)
		for range 40 {
			keys := m.Keys()
			rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			m.Carry(keys[:min(len(keys), 2)]...)
			time.Sleep(5 * time.Millisecond)
		}
		m.Finish()
		before := got.Load()
		within(t, "a hundred acquisitions after a move", func() bool { return got.Load() > before+100 })
	}
}

// single are those of the kept locks of which a fresh one is had while its slot is
// half moved: it has one key.
var single = []string{"Lock", "GroupLock", "read", "write"}

// A slot is left half moved for three leases. Who writes keeps his lock, as does
// every other holder. Who wants what needs several keys, or wants to read what
// others read at the old node, is told that the server is unavailable, and all
// else that is fresh is had.
func TestASlotThatIsLeftHalfMoved(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	const watchdog = 6 * time.Second
	for _, adapter := range drivers.Adapters {
		t.Run(adapter.Name, func(t *testing.T) {
			t.Parallel()
			place := drivers.Cluster(c)
			place.Timeout = time.Second // of which goredis takes more, for a connection
			a := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "a", WatchdogTimeout: watchdog, OutageTimeout: 2 * time.Second})
			b := client(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{ServerName: "b", OutageTimeout: 2 * time.Second})
			name := at(c, "half-"+adapter.Name)
			tag := "{" + name + "}"
			lock := func(c *redlatch.Client, name any) *redlatch.ReadWriteLock {
				return c.ReadWriteLock(fmt.Sprint(tag, name))
			}
			var holds []*redlatch.Hold
			for i := range 40 {
				holds = append(holds, acquired(t, lock(a, i).Write()))
			}
			old, moved := acquired(t, lock(a, "old").Read()), acquired(t, lock(a, "moved").Read())
			objects := named(t, []*redlatch.Client{a, b}, name)
			ends, wants := begun(objects)
			m := c.MarkSlot(tag)
			for i := range 20 {
				m.Carry(fmt.Sprint(tag, 2*i))
			}
			m.Carry(fmt.Sprint(tag, "moved"), fmt.Sprint(tag, "moved:", moved.ID(), ":rwlock_timeout:1"))
			for _, parts := range partsOf(objects, m.Keys()) {
				m.Carry(parts[len(parts)-1])
			}
			var all sync.WaitGroup
			unavailable := func(what string, err error) {
				if !errors.Is(err, redlatch.ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for i, p := range objects {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(p.ctx, 2*watchdog)
					defer cancel()
					err := wants[i](ctx)
					if !movables[i].waits {
						unavailable(p.name, err)
					} else if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", p.name, err)
					}
				})
			}
			for what, of := range kept {
				all.Go(func() {
					h, err := of(b, tag+"fresh "+what).Acquire(t.Context())
					if !slices.Contains(single, what) {
						unavailable(what, err)
						return
					}
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
					released(t, h)
				})
			}
			for end := time.Now().Add(3 * watchdog); time.Now().Before(end); {
				_, err := lock(b, "old").Read().TryAcquire(t.Context(), 0)
				unavailable("to read at the old node", err)
				for what, fresh := range map[string]*redlatch.Lock{"read": lock(b, "moved").Read(), "new, read": lock(b, "new").Read(), "new, write": lock(b, "new").Write()} {
					h, err := fresh.TryAcquire(t.Context(), 0)
					if err != nil {
						t.Errorf("%s: %v", what, err)
						continue
					}
					released(t, h)
				}
			}
			all.Wait()
			for _, h := range append(holds, old, moved) {
				released(t, h)
			}
			m.Finish()
			for i, p := range objects {
				if movables[i].what == barrierKind { // who waited there has gone
					continue
				}
				if err := ends[i](p.ctx); err != nil {
					t.Errorf("%s: the end, when the slot has moved: %v", p.name, err)
				}
			}
		})
	}
}
