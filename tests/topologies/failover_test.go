package topologies

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
)

var kills = flag.Int("kills", 1, "how many times the primary is killed, in each topology")

// A section is one time for which somebody took a lock to be his.
type section struct {
	name     string
	token    int64
	from, to time.Time
	lost     error
}

// An oracle, which knows nothing of redlatch, is told of all sections.
type oracle struct {
	mu       sync.Mutex
	sections []section
}

func (o *oracle) note(s section) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sections = append(o.sections, s)
}

// overlaps returns, of each section in which somebody else had the lock too, for how
// long, from when the first of them came; and in how many of them a token told all
// the others from the holder.
func (o *oracle) overlaps() (lengths []time.Duration, told int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	byName := map[string][]section{}
	for _, s := range o.sections {
		byName[s.name] = append(byName[s.name], s)
	}
	for _, all := range byName {
		slices.SortFunc(all, func(a, b section) int { return a.from.Compare(b.from) })
		for i, a := range all {
			var others []section
			for _, b := range all[i+1:] {
				if !b.from.Before(a.to) {
					break
				}
				others = append(others, b)
			}
			if len(others) == 0 {
				continue
			}
			lengths = append(lengths, a.to.Sub(others[0].from))
			if !slices.ContainsFunc(others, func(b section) bool { return b.token == a.token }) {
				told++
			}
		}
	}
	return lengths, told
}

// A worker wants one lock again and again.
type worker struct {
	name string
	n    atomic.Int64
}

// A failover is a topology whose primaries can be killed.
type failover struct {
	place
	// kill kills the primary of key, which its replicas have not heard of for a
	// while, and returns how to bring it back when another has taken its place.
	kill func(key string) (back func())
}

var failovers = map[string]func(t *testing.T, k testserver.Kind) failover{
	"Sentinel": func(t *testing.T, k testserver.Kind) failover {
		s := testserver.StartSentinels(t, k)
		return failover{
			place: sentinelOf(s),
			kill: func(string) func() {
				primary, err := s.Primary()
				if err != nil {
					t.Fatal(err)
				}
				cut(s.Data, primary)
				return func() {
					var next *testserver.Server
					within(t, "another primary", func() bool {
						next, err = s.Primary()
						return err == nil && next != primary && role(next) == "master"
					})
					primary.Restart()
					host, port := split(next.Addr())
					primary.MustDo("REPLICAOF", host, port)
					within(t, "the killed server is a replica", func() bool { return linked(primary) })
				}
			},
		}
	},
	"Cluster": func(t *testing.T, k testserver.Kind) failover {
		c := testserver.StartCluster(t, k)
		return failover{
			place: clusterOf(c),
			kill: func(key string) func() {
				primary := c.PrimaryOf(key)
				cut(c.Nodes, primary)
				return func() {
					within(t, "another primary", func() bool { return c.PrimaryOf(key) != primary })
					primary.Restart()
					within(t, "the killed node is a replica", func() bool { return linked(primary) })
				}
			},
		}
	},
}

// cut kills the primary after its replicas have missed what happened for a while:
// they stand still, and have lost their connections.
func cut(servers []*testserver.Server, primary *testserver.Server) {
	var replicas []*testserver.Server
	for _, s := range servers {
		if s != primary && role(s) == "slave" {
			replicas = append(replicas, s)
			s.Pause()
		}
	}
	primary.MustDo("CLIENT", "KILL", "TYPE", "replica")
	time.Sleep(20 * time.Millisecond)
	primary.Kill()
	for _, s := range replicas {
		s.Resume()
	}
}

// stay returns for how long to have a lock. Of two locks some holders stay for
// longer than a failover lasts.
func stay(key int) time.Duration {
	if key < 2 && rand.IntN(8) == 0 {
		return 2 * time.Second
	}
	return time.Duration(rand.IntN(20)) * time.Millisecond
}

// TestFailovers kills the primary of a contended run. Everybody goes on; a holder
// whose lock the new primary does not know is told, and the oracle says for how
// long two had it.
func TestFailovers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers")
	}
	for name, start := range failovers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Redis)
			var o oracle
			var told []time.Duration // of losses: after the primary was killed
			var toldMu sync.Mutex
			var killed atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var workers []*worker
			var wg sync.WaitGroup
			for i := range 4 {
				c := client(t, adapters[i%len(adapters)].open(t, f.place), redlatch.Config{
					Name: fmt.Sprint(i), WatchdogTimeout: 20 * time.Second, OutageTimeout: time.Minute,
				})
				for key := range 6 {
					w := &worker{name: fmt.Sprint("{orders}", key)} // of one node
					workers = append(workers, w)
					wg.Go(func() {
						for ctx.Err() == nil {
							h, err := c.Lock(w.name).Acquire(ctx, redlatch.Fenced())
							if err != nil {
								if ctx.Err() == nil {
									t.Errorf("Acquire: %v", err)
								}
								return
							}
							s := section{name: w.name, token: h.Token(), from: time.Now()}
							select {
							case <-h.Context().Done():
								s.lost = h.Err()
							case <-time.After(stay(key)):
							}
							s.to = time.Now()
							o.note(s)
							if s.lost != nil {
								toldMu.Lock()
								told = append(told, time.Since(time.Unix(0, killed.Load())))
								toldMu.Unlock()
								if !errors.Is(s.lost, redlatch.ErrLost) {
									t.Errorf("a hold ended with %v", s.lost)
								}
							}
							_ = h.Release(context.WithoutCancel(ctx))
							w.n.Add(1)
						}
					})
				}
			}
			allGoOn := func() {
				t.Helper()
				var from []int64
				for _, w := range workers {
					from = append(from, w.n.Load())
				}
				within(t, "everybody has had the lock", func() bool {
					for i, w := range workers {
						if w.n.Load() < from[i]+1 {
							return false
						}
					}
					return true
				})
			}
			allGoOn()
			var down []time.Duration
			for range *kills {
				at := time.Now()
				killed.Store(at.UnixNano())
				back := f.kill("{orders}0")
				allGoOn()
				down = append(down, time.Since(at))
				back()
				allGoOn()
			}
			stop()
			wg.Wait()
			lengths, apart := o.overlaps()
			var longest time.Duration
			if len(lengths) > 0 {
				longest = slices.Max(lengths)
			}
			t.Logf("%d kills, %d sections; all went on after %v to %v; %d holders told of a loss, the last %v after the kill; "+
				"%d holders were not alone, for %v at most; of %d the token told so",
				*kills, len(o.sections), slices.Min(down), slices.Max(down), len(told), slices.Max(append(told, 0)), len(lengths), longest, apart)
		})
	}
}
