package topologies

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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

// overlaps returns, of each section in which somebody else had the lock too, for
// how long, from when the first of them came; and in how many of them a token told
// all the others from the holder.
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
	drivers.Place
	replicas int        // of each primary
	switches func() int // how often a replica has taken over; nil: unknown
	// kill kills the primary of key, which its replicas have not heard of for a
	// while, during which alone is set, and returns how to bring it back when another
	// has taken its place.
	kill func(key string, alone *atomic.Bool) (back func())
}

var failovers = map[string]func(t *testing.T, k testserver.Kind) failover{
	"Sentinel": func(t *testing.T, k testserver.Kind) failover {
		s := testserver.StartSentinels(t, k)
		return failover{
			Place:    drivers.Sentinel(s),
			replicas: 2,
			switches: func() int { return strings.Count(s.Sentinels[0].Log(), "+switch-master") },
			kill: func(_ string, alone *atomic.Bool) func() {
				var primary *testserver.Server
				var err error
				within(t, "a primary with its replicas", func() bool {
					primary, err = s.Primary()
					return err == nil && role(primary) == "master" && replicasOf(primary) == 2
				})
				s.DeadAfter(1500 * time.Millisecond)
				cut(s.Data, primary, alone)
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
			Place:    drivers.Cluster(c),
			replicas: 1,
			kill: func(key string, alone *atomic.Bool) func() {
				var primary *testserver.Server
				within(t, "a primary with its replica", func() bool {
					primary = c.PrimaryOf(key)
					return replicasOf(primary) == 1
				})
				c.DeadAfter(time.Second)
				cut(c.Nodes, primary, alone)
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
func cut(servers []*testserver.Server, primary *testserver.Server, alone *atomic.Bool) {
	time.Sleep(noticed)
	var replicas []*testserver.Server
	for _, s := range servers {
		if s != primary && strings.HasPrefix(fmt.Sprint(ask(s, "ROLE")), "[slave") {
			replicas = append(replicas, s)
			s.Pause()
		}
	}
	ask(primary, "CLIENT", "KILL", "TYPE", "replica")
	alone.Store(true)
	time.Sleep(missed)
	alone.Store(false)
	primary.Kill()
	for _, s := range replicas {
		s.Resume()
	}
}

// replicasOf returns how many replicas a server has that are in step.
func replicasOf(s *testserver.Server) int {
	return strings.Count(fmt.Sprint(ask(s, "INFO", "replication")), "state=online")
}

// ask asks twice: Sentinel has closed the connection to a server whose role it has
// changed.
func ask(s *testserver.Server, args ...string) any {
	v, err := s.Do(args...)
	if err != nil {
		v, _ = s.Do(args...)
	}
	return v
}

// noticed is after how long clients know of a replica that has come back.
const noticed = 1500 * time.Millisecond

// missed is what the replicas have not heard of when the primary dies.
const missed = 100 * time.Millisecond

// stay returns for how long to have a lock. Those that no replica has heard of are
// held for longer than a failover lasts: that is the worst case.
func (r *run) stay() time.Duration {
	if r.alone.Load() {
		return 7 * time.Second
	}
	return time.Duration(rand.IntN(20)) * time.Millisecond
}

// policies are asked of replicas, and what they are called in docs/guarantees.md.
// AckRequired asks for as many as the primary has.
var policies = []struct {
	acks redlatch.Acks
	name string
}{
	{redlatch.AckOff, "`AckOff`"},
	{redlatch.AckAuto, "the default"},
	{redlatch.AckRequired, "all replicas"},
}

// TestFailovers kills the primary of a contended run. Everybody goes on; a holder
// whose lock the new primary does not know is told, and the oracle says for how
// long two had it. With -update the docs say so too.
func TestFailovers(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	rows := make([]string, 0, 2*len(policies))
	t.Run("all", func(t *testing.T) {
		for _, name := range []string{"Sentinel", "Cluster"} {
			for _, policy := range policies {
				at := len(rows)
				rows = append(rows, "")
				t.Run(name+"/"+strings.Trim(policy.name, "`"), func(t *testing.T) {
					t.Parallel()
					r := newRun(t, failovers[name](t, testserver.Redis), policy.acks)
					r.play()
					rows[at] = fmt.Sprintf("| %s | %s |%s\n", name, policy.name, r.row())
					t.Log(rows[at])
					if r.switches != nil && r.switches() != *kills {
						t.Logf("replicas have taken over %d times", r.switches())
					}
				})
			}
		}
	})
	if *update && !t.Failed() {
		writeFailovers(t, strings.Join(rows, ""))
	}
}

const failoversBegin = "<!-- failovers: the test writes these with -update -->\n"

func writeFailovers(t *testing.T, rows string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), failoversBegin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the failovers", page)
	}
	const head = "| | `Config.Acks` | kills | sections | everybody went on | not acknowledged | lost their lock | not alone | for at most | told apart by the token |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n"
	if err := os.WriteFile(page, []byte(before+failoversBegin+head+rows+end+after), 0o644); err != nil { //nolint:gosec // as it was
		t.Fatal(err)
	}
}

// A run is one of many workers on one topology, whose primary is killed.
type run struct {
	*testing.T
	failover
	acks     redlatch.Acks
	required int             // replicas, or 0
	ctx      context.Context //nolint:containedctx // the run's
	workers  []*worker
	oracle   oracle
	alone    atomic.Bool  // no replica hears of what happens now
	killed   atomic.Int64 // when, in Unix nanoseconds
	refused  atomic.Int64 // acquisitions that too few replicas have acknowledged

	mu   sync.Mutex      // guards told
	told []time.Duration // of losses: after the primary was killed
	down []time.Duration // after each kill
}

func newRun(t *testing.T, f failover, policy redlatch.Acks) *run {
	f.Timeout = 2 * time.Second
	r := &run{T: t, failover: f, acks: policy}
	if policy == redlatch.AckRequired {
		r.required = f.replicas
	}
	return r
}

func (r *run) play() {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	r.ctx = ctx
	var wg sync.WaitGroup
	for i := range 4 {
		c := client(r.T, drivers.Adapters[i%len(drivers.Adapters)].Open(r.T, r.Place), redlatch.Config{
			ServerName: fmt.Sprint(i), WatchdogTimeout: 20 * time.Second, OutageTimeout: time.Minute, Acks: r.acks, AckReplicas: r.required, AckTimeout: time.Second,
		})
		for key := range 6 {
			w := &worker{name: fmt.Sprint("{orders}", key)} // of one node
			r.workers = append(r.workers, w)
			wg.Go(func() {
				for r.work(c, w) {
					w.n.Add(1)
				}
			})
		}
	}
	r.allGoOn()
	for range *kills {
		at := time.Now()
		r.killed.Store(at.UnixNano())
		back := r.kill("{orders}0", &r.alone)
		if r.acks > 0 { // nobody can go on before all replicas are there again
			back()
		}
		r.allGoOn()
		r.down = append(r.down, time.Since(at))
		if r.acks <= 0 {
			back()
		}
		r.allGoOn()
	}
	stop()
	wg.Wait()
}

// work is one section of a worker. It returns false if the worker cannot go on.
func (r *run) work(c *redlatch.Client, w *worker) bool {
	h, err := c.Lock(w.name, redlatch.Fenced()).Acquire(r.ctx)
	switch {
	case r.ctx.Err() != nil:
		if err == nil {
			_ = h.Release(context.WithoutCancel(r.ctx))
		}
		return false
	case errors.Is(err, redlatch.ErrNotAcknowledged) && r.acks != redlatch.AckOff:
		r.refused.Add(1)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		return r.work(c, w)
	case err != nil:
		r.Errorf("Acquire: %v", err)
		return false
	}
	s := section{name: w.name, token: h.Token(), from: time.Now()}
	select {
	case <-h.Context().Done():
		s.lost = h.Err()
	case <-time.After(r.stay()):
	}
	s.to = time.Now()
	r.oracle.note(s)
	if s.lost != nil {
		r.mu.Lock()
		r.told = append(r.told, time.Since(time.Unix(0, r.killed.Load())))
		r.mu.Unlock()
		if !errors.Is(s.lost, redlatch.ErrLost) && r.ctx.Err() == nil {
			r.Errorf("a hold ended with %v", s.lost)
		}
	}
	_ = h.Release(context.WithoutCancel(r.ctx))
	return true
}

// allGoOn waits until every worker has had the lock once more.
func (r *run) allGoOn() {
	r.Helper()
	var from []int64
	for _, w := range r.workers {
		from = append(from, w.n.Load())
	}
	within(r.T, "everybody has had the lock", func() bool {
		for i, w := range r.workers {
			if w.n.Load() < from[i]+1 {
				return false
			}
		}
		return true
	})
}

// row is what the run has shown, for the table in the docs.
func (r *run) row() string {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	told, length, apart := "0", "–", "–"
	if n := len(r.told); n > 0 {
		told = fmt.Sprintf("%d, told within %s", n, seconds(slices.Max(r.told)))
	}
	lengths, tokens := r.oracle.overlaps()
	if len(lengths) > 0 {
		length = fmt.Sprintf("%.2f s", slices.Max(lengths).Seconds())
		apart = fmt.Sprint(tokens)
	}
	return fmt.Sprintf(" %d | %d | %s to %s after the kill | %d | %s | %d | %s | %s |",
		*kills, len(r.oracle.sections), seconds(slices.Min(r.down)), seconds(slices.Max(r.down)), r.refused.Load(), told, len(lengths), length, apart)
}
