package scale

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// generous is for a busy machine.
const generous = 60 * time.Second

// A place is a cluster, of which no node is taken for dead while it is busy.
type place struct {
	*testing.T
	*testserver.Cluster
}

func open(t *testing.T, k testserver.Kind) *place {
	t.Helper()
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	return &place{t, testserver.StartCluster(t, k)}
}

// run runs a test at this place.
func (p *place) run(name string, test func(p *place)) {
	p.Run(name, func(t *testing.T) { test(&place{t, p.Cluster}) })
}

var (
	manyHolds = flag.Int("holds", 100_000, "how many locks one client holds")
	manyNames = flag.Int("names", 1000, "how many locks are waited for, each by ten callers")
)

// Few is enough to see that something works at all.
const fewHolds, fewNames = 2000, 100

func TestRueidisOnRedis(t *testing.T) {
	p := open(t, testserver.Redis)
	p.run("holds", func(p *place) { holds(p, "rueidis", *manyHolds, 30*time.Second) })
	p.run("waiters of one client", func(p *place) { waiters(p, "rueidis", 1, *manyNames) })
	p.run("waiters of five clients", func(p *place) { waiters(p, "rueidis", 5, *manyNames) })
}

func TestGoRedisOnValkey(t *testing.T) {
	p := open(t, testserver.Valkey)
	p.run("holds", func(p *place) { holds(p, "goredis", fewHolds, 30*time.Second) })
	p.run("waiters of five clients", func(p *place) { waiters(p, "goredis", 5, fewNames) })
}

// client returns a client that close ends, with its connections.
func (p *place) client(adapter string, cfg redlatch.Config) (c *redlatch.Client, closeAll func()) {
	p.Helper()
	i := slices.IndexFunc(drivers.Adapters, func(a drivers.Adapter) bool { return a.Name == adapter })
	d, end := drivers.Adapters[i].OpenUntil(p, drivers.Cluster(p.Cluster))
	cfg.OutageTimeout = generous
	c, err := redlatch.New(d, cfg)
	if err != nil {
		p.Fatal(err)
	}
	// It is what it will be: connected to each node, for many requests at once.
	each(1000, func(i int) {
		hold, err := c.Lock(fmt.Sprint(c.ID(), i)).Acquire(p.Context())
		if err == nil {
			err = hold.Release(p.Context())
		}
		if err != nil {
			p.Error(err)
		}
	})
	return c, sync.OnceFunc(func() {
		if err := c.Close(); err != nil {
			p.Error(err)
		}
		end()
	})
}

// sum adds up a number that each primary answers.
func (p *place) sum(of func(v any) int, args ...string) (sum int) {
	p.Helper()
	for _, n := range p.Nodes[:3] {
		sum += of(n.MustDo(args...))
	}
	return sum
}

func number(v any) int {
	n, _ := v.(int64)
	return int(n)
}

// calls returns how often a command was called, in scripts too.
func (p *place) calls(command string) int {
	p.Helper()
	return p.sum(func(v any) int {
		_, rest, _ := strings.Cut(fmt.Sprint(v), "cmdstat_"+command+":calls=")
		count, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.Atoi(count)
		return n
	}, "INFO", "commandstats")
}

// channels returns how many channels somebody listens to that have pattern's form.
func (p *place) channels(pattern string) int {
	p.Helper()
	count := func(v any) int {
		list, _ := v.([]any)
		return len(list)
	}
	return p.sum(count, "PUBSUB", "CHANNELS", pattern) + p.sum(count, "PUBSUB", "SHARDCHANNELS", pattern)
}

// keys returns how many keys there are, but for the notes of clients who they are.
func (p *place) keys() int {
	p.Helper()
	count := func(v any) int {
		list, _ := v.([]any)
		return len(list)
	}
	return p.sum(number, "DBSIZE") - p.sum(count, "KEYS", "redlatch_client:*")
}

// wantNothingLeft checks that no key, subscription or goroutine is left, when all
// clients are closed.
func (p *place) wantNothingLeft(goroutines int) {
	p.Helper()
	p.eventually("no key is left", func() bool { return p.keys() == 0 })
	p.eventually("nobody listens", func() bool { return p.channels("*") == 0 })
	p.eventually("no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func (p *place) eventually(what string, ok func() bool) {
	p.Helper()
	for end := time.Now().Add(generous); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			p.Fatalf("it takes too long until %s; goroutines:\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// each calls f for 0 to n-1, for many at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 128 {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// used is what this process uses.
type used struct{ heap, stacks, goroutines int }

func usage() used {
	runtime.GC()
	runtime.GC() // what pools had
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()} //nolint:gosec // not that much
}

// cpu returns how much CPU time this process has used.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // cannot fail
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
