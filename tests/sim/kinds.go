package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
)

const (
	objects  = 2 // resources
	permits  = 3
	readers  = 1000 // more than there are: what a writer weighs
	maxLease = 8 * time.Second
	tokens   = "redisson_lock_token:" // how the keys begin that number tokens
)

// groupName is the lock of which the objects are values, if they are those of a
// group.
const groupName = "orders"

// A choice is what a worker wants next.
type choice struct {
	lock   *redlatch.Lock       // nil: permits
	of     *semaphore.Expirable // of which weight permits are wanted
	weight int                  // 0: as the whole is
	lease  time.Duration        // 0: the watchdog's
	nests  bool                 // it can be acquired again, under itself
	once   bool                 // to acquire it again is refused
	values []string             // of a group
	reads  *redlatch.Lock       // nil: nobody reads within it
}

func (x choice) acquire(ctx context.Context) (*redlatch.Hold, error) {
	if x.of != nil {
		return x.of.Acquire(ctx, x.weight)
	}
	return x.lock.Acquire(ctx)
}

func (x choice) tryAcquire(ctx context.Context, wait time.Duration) (*redlatch.Hold, error) {
	if x.of != nil {
		return x.of.TryAcquire(ctx, x.weight, wait)
	}
	return x.lock.TryAcquire(ctx, wait)
}

// A kind is a type of lock, as workers use it.
type kind struct {
	capacity int
	choose   func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice
	whole    func(c *redlatch.Client, name string) choice // all of a resource

	// Of a lock that is several, one of each client: in the place of the two above.
	together func(cs []*redlatch.Client, name string, lease time.Duration) choice

	detaches bool          // its holds may be released by their ids
	pace     time.Duration // what workers wait for between two times, at most

	// Of a synchronizer that nobody holds: what a worker does with it, and what has to
	// work when nobody else does anything.
	once func(ctx context.Context, w *world, p *process, name string, own *chance)
	calm func(ctx context.Context, w *world, p *process, name string) error
}

// Types are the types that there are, by name.
func Types() []string {
	return []string{
		"lock", "nonreentrant", "fenced", "fair", "readwrite", "multi", "striped", "spin",
		"permits", "election", "group",
		"semaphore", "latch", "barrier", "limiter",
		"red", "acked", "cluster", "endpoint",
	}
}

// counts are those of them that nobody holds in the server.
func counts() []string { return []string{"semaphore", "latch", "barrier", "limiter"} }

// apart are those that need more than one server, or what is behind it.
func apart() []string { return []string{"red", "acked", "cluster", "endpoint"} }

// Held are the others, of one server. Real processes play only these, because a
// checker of holds judges them.
func Held() []string {
	return slices.DeleteFunc(Types(), func(typ string) bool { return slices.Contains(apart(), typ) || slices.Contains(counts(), typ) })
}

func held(lease time.Duration) []redlatch.PlainOption {
	if lease == 0 {
		return nil
	}
	return []redlatch.PlainOption{redlatch.Lease(lease)}
}

func queued(lease time.Duration) []redlatch.LockOption {
	if lease == 0 {
		return nil
	}
	return []redlatch.LockOption{redlatch.Lease(lease)}
}

// exclusive is a kind of which one has all.
func exclusive(lock func(c *redlatch.Client, name string, lease time.Duration, own *chance) *redlatch.Lock) kind {
	return kind{
		capacity: 1,
		choose: func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			return choice{lock: lock(c, name, lease, own), lease: lease, nests: true}
		},
		whole: func(c *redlatch.Client, name string) choice { return choice{lock: lock(c, name, 0, newChance(0, 0))} },
	}
}

func object(n int) string { return fmt.Sprint("orders", n) }

// Object returns the name of one of the two objects that workers want.
func Object(n int) string { return object(n % objects) }

// Whole returns the weight of a claim of all of an object, of a type that is held.
func Whole(typ string) int { return kindOf(typ).capacity }

// kindOf returns a type. Those that nobody holds would be called far more often
// than others.
func kindOf(name string) kind {
	k := newKind(name)
	k.detaches = slices.Contains([]string{"lock", "nonreentrant", "fenced", "fair", "spin"}, name)
	if k.pace = 60 * time.Millisecond; k.once != nil {
		k.pace = 600 * time.Millisecond
	}
	return k
}

func newKind(name string) kind {
	switch name {
	case "lock":
		return exclusive(func(c *redlatch.Client, name string, lease time.Duration, own *chance) *redlatch.Lock {
			opts := held(lease)
			if lease == 0 && own.oneIn(8) {
				opts = append(opts, redlatch.MinHold(own.upTo(800*time.Millisecond)))
			}
			return c.Lock(name, opts...)
		})
	case "nonreentrant":
		k := exclusive(nil)
		k.choose = func(c *redlatch.Client, name string, lease time.Duration, _ *chance) choice {
			return choice{lock: c.Lock(name, append(held(lease), redlatch.NonReentrant())...), lease: lease, once: true}
		}
		k.whole = func(c *redlatch.Client, name string) choice { return choice{lock: c.Lock(name)} }
		return k
	case "fenced", "acked":
		return exclusive(func(c *redlatch.Client, name string, lease time.Duration, _ *chance) *redlatch.Lock {
			return c.Lock(name, append(held(lease), redlatch.Fenced())...)
		})
	case "fair":
		return exclusive(func(c *redlatch.Client, name string, lease time.Duration, _ *chance) *redlatch.Lock {
			return c.FairLock(name, queued(lease)...)
		})
	case "spin":
		return exclusive(func(c *redlatch.Client, name string, lease time.Duration, _ *chance) *redlatch.Lock {
			return redisson.SpinLock(c, name, redisson.Exponential(time.Millisecond, 128*time.Millisecond), held(lease)...)
		})
	case "striped":
		return exclusive(func(c *redlatch.Client, name string, lease time.Duration, own *chance) *redlatch.Lock {
			return c.StripedLock("orders", objects, held(lease)...).For(fmt.Sprint(name, own.n(3)))
		})
	case "multi":
		k := exclusive(func(c *redlatch.Client, name string, lease time.Duration, own *chance) *redlatch.Lock {
			if own.oneIn(3) {
				return c.Lock(name, held(lease)...)
			}
			n := own.n(objects) // in any order: a MultiLock puts them in its own
			return redlatch.MultiLock(c.Lock(object(n), held(lease)...), c.Lock(object((n+1)%objects), held(lease)...))
		})
		choose := k.choose
		k.choose = func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			x := choose(c, name, lease, own)
			x.nests = false
			return x
		}
		return k
	case "election":
		return exclusive(func(c *redlatch.Client, name string, _ time.Duration, _ *chance) *redlatch.Lock {
			return c.Lock(name, redlatch.Fenced()) // what an election is in the server
		})
	case "readwrite":
		return readWrite()
	case "permits":
		return expirable()
	case "group":
		return group()
	case "cluster", "endpoint":
		return clustered()
	case "red":
		return red()
	case "semaphore":
		return counted()
	case "latch":
		return latched()
	case "barrier":
		return met()
	case "limiter":
		return limited()
	}
	panic("no type " + name)
}

func readWrite() kind {
	return kind{
		capacity: readers,
		choose: func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			rw := c.ReadWriteLock(name, queued(lease)...)
			if own.oneIn(3) {
				x := choice{lock: rw.Write(), lease: lease, nests: true}
				if own.oneIn(2) {
					x.reads = rw.Read()
				}
				return x
			}
			return choice{lock: rw.Read(), weight: 1, lease: lease, nests: true}
		},
		whole: func(c *redlatch.Client, name string) choice { return choice{lock: c.ReadWriteLock(name).Write()} },
	}
}

func expirable() kind {
	return kind{
		capacity: permits,
		choose: func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			var opts []redlatch.HoldOption
			if lease > 0 {
				opts = append(opts, redlatch.Lease(lease))
			}
			return choice{of: semaphore.NewExpirable(c, name, permits, opts...), weight: 1 + own.n(2), lease: lease}
		},
		whole: func(c *redlatch.Client, name string) choice {
			return choice{of: semaphore.NewExpirable(c, name, permits), weight: permits}
		},
	}
}

// group is a lock of some values of a group: of one object, or of all.
func group() kind {
	of := func(c *redlatch.Client, lease time.Duration, values ...string) choice {
		return choice{lock: redisson.GroupLock(c, groupName, values, queued(lease)...), values: values, lease: lease, nests: true}
	}
	return kind{
		capacity: 1,
		choose: func(c *redlatch.Client, name string, lease time.Duration, own *chance) choice {
			if own.oneIn(2) {
				return of(c, lease, name)
			}
			return of(c, lease, object(0), object(1))
		},
		whole: func(c *redlatch.Client, name string) choice { return of(c, 0, name) },
	}
}

// lead stands for an election once, and calls f for its first term.
func lead(ctx context.Context, c *election.Candidate, f func(ctx context.Context, h *redlatch.Hold)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return c.Run(ctx, func(ctx context.Context, _ int64) error {
		f(ctx, redlatch.HoldFrom(ctx))
		stop()
		return nil
	})
}
