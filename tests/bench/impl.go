package main

import (
	"context"
	"slices"
)

// A locker is one implementation under measurement, in one process. acquire and
// release are called in turn by goroutine g, and by up to job.Goroutines
// goroutines at once; what the implementation has to remember between them it
// keeps per goroutine, so that the harness itself allocates nothing.
type locker interface {
	acquire(ctx context.Context, g int) error
	release(ctx context.Context, g int) error
	close()
}

// A sharer is a locker that several may have at once. Of a read-write lock acquire
// is for a writer, and release for both; of a semaphore nobody calls acquire.
type sharer interface {
	acquireShared(ctx context.Context, g int) error
}

// An armer is a locker of a latch: acquire waits at it, release lets all go who
// wait, and arm makes it as before.
type armer interface {
	locker
	arm(ctx context.Context) error
}

// An implementation is a row of the tables.
type implementation struct {
	name     string
	settings string // for the page: library, version and what was set
	kind     kind
	open     func(job) (locker, error) // nil: measured by other means, see redisson.go
	locks    []lockType                // nil: the plain one
	widths   []int                     // of the uncontended scenarios; nil: fewWidths
	skips    func(scenario) bool       // nil: takes part in everything with these locks and widths
	endless  bool                      // gets context.Background()
	mostRuns int                       // 0: no limit
	apart    bool                      // has a server of its own, whose work is not counted
}

// counted says whether the work of its server is.
func (i implementation) counted() bool { return !i.apart && i.kind != limit }

// takesPart says whether i is measured in s.
func (i implementation) takesPart(s scenario) bool {
	if s.Only != nil {
		return slices.Contains(s.Only, i.name)
	}
	locks := i.locks
	if locks == nil {
		locks = []lockType{plainLock}
	}
	if widths := i.widths; !s.Contended {
		if widths == nil {
			widths = fewWidths
		}
		if !slices.Contains(widths, s.Goroutines) {
			return false
		}
	}
	return slices.Contains(locks, s.Lock) && (i.skips == nil || !i.skips(s))
}

// Redlatch and Redisson have all of them.
var allLocks = []lockType{plainLock, fairLock, readWrite, semaphoreType, countDown}

type kind int

const (
	ours  kind = iota // redlatch
	floor             // the same scripts without redlatch
	peer              // another library
	limit             // what a lock within the process can do
)

// contendedIsSkipped is for what does not exclude anybody, and for variants that
// differ only in what a pair costs.
func contendedIsSkipped(s scenario) bool { return s.Contended }

// uncontendedOrAlone is the same for what is measured alone beside hand-offs.
func uncontendedOrAlone(s scenario) bool {
	return s.Contended && s.Name != fairHandOff
}

// contendedOnly is for variants that differ only in how they wait.
func contendedOnly(s scenario) bool { return !s.Contended }

// implementations are in the order in which they take turns.
var implementations = []implementation{
	redlatchRueidis, floorRueidis,
	redlatchEndless, floorEndless,
	redlatchNamed,
	redlatchGoredis, floorGoredis,
	redlatchGoredisEndless, floorGoredisEndless, redlatchShared,
	redislockDefault, redislockFast,
	redlatchValkeygo, floorValkeygo,
	redsyncDefault,
	rueidislockDefault, rueidislockOneKey,
	redissonPeer,
	etcdMutex,
	weighted,
}

// endless is i with contexts that cannot end, where nobody has to wait.
func endless(i implementation) implementation {
	i.settings = i.name + " with context.Background()"
	i.name += ", no cancel"
	i.locks = nil
	i.skips = contendedIsSkipped
	i.widths = nil
	i.endless = true
	return i
}

func implementationNamed(name string) (implementation, bool) {
	for _, i := range implementations {
		if i.name == name {
			return i, true
		}
	}
	return implementation{}, false
}

// A padded value has a cache line of its own.
type padded[T any] struct {
	value T
	_     [64]byte
}
