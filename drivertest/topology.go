package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A ClusterConfig says what [RunCluster] tests.
type ClusterConfig struct {
	// New returns a driver for an empty cluster of at least two primaries. It must
	// close the driver with t.Cleanup. Required.
	New func(t *testing.T) driver.Redis

	// Fail makes the primary that serves key die, so that a replica takes its
	// place. If it is nil, failovers are not tested.
	Fail func(key string)

	// Sharded says that the cluster knows sharded Pub/Sub: Redis and Valkey
	// since 7.0.
	Sharded bool

	// Nodes are the addresses of the cluster's nodes, each a TCP "host:port". The
	// tests use them to move a few slots. If there are none, moving slots is not
	// tested.
	Nodes []string

	// Admin is the user as which the tests themselves log in to the nodes, if
	// drivers may not do everything there.
	Admin Admin
}

// RunCluster tests what is different in a cluster. Call [Run] for everything
// else, with a single server. The tests of RunCluster are subtests of t, and
// change the cluster one after the other.
func RunCluster(t *testing.T, cfg ClusterConfig) {
	t.Helper()
	l := watchLeaks(t)
	for _, test := range []struct {
		name string
		run  func(*env, ClusterConfig)
	}{
		{"Run", testClusterRun},
		{"Scan", testClusterScan},
		{"Subscribe", testClusterSubscribe},
		{"BatchOfSeveralNodesRunsOnce", testClusterBatch},
		{"SlotMoves", testClusterSlotMoves},
		{"Acked", testClusterAcked},
		{"AckedSlotMoves", testClusterAckedSlotMoves},
		{"Failover", testClusterFailover},
	} {
		t.Run(test.name, func(t *testing.T) {
			l.mark(t)
			e := bareEnv(t)
			e.r = cfg.New(t)
			test.run(e, cfg)
		})
	}
}

func testClusterRun(e *env, _ ClusterConfig) {
	if !e.r.Traits().Cluster {
		e.Error("Traits.Cluster is not set")
	}
	counter, _ := e.counter()
	nodes := make(map[string]bool)
	for i := range 100 {
		key := fmt.Sprintf("%s%d", e.prefix, i)
		for want := range int64(2) {
			if got := e.run(counter, []string{key}, nil); got.Int != want+1 {
				e.Fatalf("%s: run %d answered %v", key, want, got)
			}
		}
		node := e.r.Node(key)
		nodes[node] = true
		// The driver may learn of the nodes while it is asked.
		if again := e.r.Node("other:{" + key + "}"); again != node && again != e.r.Node(key) {
			e.Errorf("%s is of node %q, and another key of its slot of node %q", key, node, again)
		}
	}
	if len(nodes) < 2 || nodes[""] {
		e.Errorf("a hundred keys have the nodes %v", nodes)
	}
	_, err := e.r.Run(context.Background(), e.script("return 1"), []string{e.prefix + "{a}", e.prefix + "{b}"}, nil)
	e.failed(err, driver.Refused, "CROSSSLOT")
}

func testClusterScan(e *env, _ ClusterConfig) {
	set := e.script("return redis.call('hset', KEYS[1], 'f', 'v')")
	var want []string
	for i := range 200 {
		key := fmt.Sprintf("%s%d", e.prefix, i)
		e.run(set, []string{key}, nil)
		want = append(want, key)
	}
	primaries, err := e.r.Primaries(context.Background())
	if err != nil || len(primaries) < 2 {
		e.Fatalf("Primaries: %d, %v", len(primaries), err)
	}
	var got []string
	for _, p := range primaries {
		got = append(got, e.scan(p, "hash", e.prefix+"*")...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(slices.Compact(got), want) {
		e.Errorf("%d primaries have %d keys, want %d", len(primaries), len(got), len(want))
	}
	nodes := make(map[string]bool)
	for _, key := range want {
		nodes[e.r.Node(key)] = true
	}
	if len(nodes) != len(primaries) {
		e.Errorf("%d primaries have been listed, and keys are of the nodes %v", len(primaries), nodes)
	}
}

// publishers returns scripts that publish, and answer how many have heard it on
// the same node.
func (e *env) publishers() map[bool]*driver.Script {
	return map[bool]*driver.Script{
		false: e.script("return redis.call('publish', KEYS[1], ARGV[1])"),
		true:  e.script("return redis.call('spublish', KEYS[1], ARGV[1])"),
	}
}

func (cfg ClusterConfig) kinds() []bool {
	if cfg.Sharded {
		return []bool{false, true}
	}
	return []bool{false}
}

func testClusterSubscribe(e *env, cfg ClusterConfig) {
	publish := e.publishers()
	count := e.script("return redis.call('pubsub', 'numsub', ARGV[1])[2]")
	for _, sharded := range cfg.kinds() {
		var ears []*ear
		var stops []func()
		const n = 40
		channel := func(i int) string { return fmt.Sprintf("%s{%d}%v", e.prefix, i, sharded) }
		for i := range n {
			a, stop := e.listen(channel(i), sharded)
			ears, stops = append(ears, a), append(stops, stop)
		}
		for i, a := range ears {
			a.confirmed(1)
			// A cluster's nodes pass messages on without a promise.
			m := fmt.Sprint("m", i)
			e.eventually("heard "+m, func() bool {
				e.run(publish[sharded], []string{channel(i)}, []string{m})
				time.Sleep(5 * time.Millisecond)
				_, got := a.heard()
				return slices.Contains(got, m)
			})
		}
		for i := 0; i < n && !sharded; i++ {
			tries := 0
			e.eventually(channel(i)+" is subscribed at a primary", func() bool {
				tries++ // each primary has some of the keys
				return e.run(count, []string{fmt.Sprint(e.prefix, tries)}, []string{channel(i)}).Int > 0
			})
		}
		for i, a := range ears {
			if _, got := a.heard(); len(got) == 0 || slices.ContainsFunc(got, func(m string) bool { return m != fmt.Sprint("m", i) }) {
				e.Errorf("channel %d heard %v", i, got)
			}
			stops[i]()
		}
	}
}

func testClusterFailover(e *env, cfg ClusterConfig) {
	if cfg.Fail == nil {
		return
	}
	key := e.prefix + "{a}"
	e.failover(key, cfg.kinds(), func() { cfg.Fail(key) })
	one := e.script("return 1")
	for range 50 { // the node that has died is still known, and there are replicas
		if _, err := e.r.Run(context.Background(), one, nil, nil); err != nil {
			e.Fatalf("after the failover a script without keys fails with %v", err)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { // nor is it asked for the nodes, or not only: a busy machine may not answer at once
			r := cfg.New(e.T)
			for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
				primaries, err := r.Primaries(context.Background())
				nodes := make(map[string]bool)
				for i := range 100 {
					nodes[r.Node(fmt.Sprint(e.prefix, i))] = true
				}
				if err == nil && len(nodes) == len(primaries) {
					return
				}
				if time.Now().After(end) {
					e.Errorf("after the failover there are %d primaries, and keys are of %d nodes: %v", len(primaries), len(nodes), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A FailoverConfig says what [RunFailover] tests.
type FailoverConfig struct {
	// New returns a driver for a primary that has replicas and something that
	// replaces it, such as Sentinel. It must close the driver with t.Cleanup.
	New func(t *testing.T) driver.Redis

	// Fail makes the primary die, so that a replica takes its place.
	Fail func()
}

// RunFailover tests that a driver follows when the only primary is replaced.
func RunFailover(t *testing.T, cfg FailoverConfig) {
	t.Helper()
	l := watchLeaks(t)
	t.Run("Failover", func(t *testing.T) {
		l.mark(t)
		e := bareEnv(t)
		e.r = cfg.New(t)
		if e.r.Traits().Cluster {
			e.Error("Traits.Cluster is set, and there is one primary")
		}
		e.failover(e.prefix+"key", []bool{false}, cfg.Fail)
	})
}

func (e *env) failover(key string, kinds []bool, fail func()) {
	counter, _ := e.counter()
	publish := e.publishers()
	var ears []*ear
	channel := func(sharded bool) string { return fmt.Sprint(key, sharded) }
	for _, sharded := range kinds {
		a, _ := e.listen(channel(sharded), sharded)
		a.confirmed(1)
		ears = append(ears, a)
	}
	tallies := tallies{run: &tally{key: key}}
	if _, ok := e.r.(driver.Batcher); ok {
		for i := range 4 {
			tallies.batch = append(tallies.batch, &tally{key: fmt.Sprint(key, i)})
		}
	}
	if _, ok := e.r.(driver.Acker); ok {
		tallies.acked = &tally{key: key + "acked"}
	}
	for range 10 {
		if err := e.count(counter, tallies); err != nil {
			e.Fatal(err)
		}
	}

	was := e.r.Node(key) // before another node has the key
	var breaks atomic.Int64
	defer e.r.OnBreak(func(node string) {
		if node == "" || node == was || node == e.r.Node(key) {
			breaks.Add(1)
		}
	})()
	fail()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := e.count(counter, tallies)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			e.Fatalf("%v after the failover scripts fail with %v", patience, err)
		}
	}
	for i, sharded := range kinds {
		e.eventually("heard from the new primary", func() bool {
			_, _ = e.r.Run(context.Background(), publish[sharded], []string{channel(sharded)}, []string{"back"})
			time.Sleep(10 * time.Millisecond)
			_, got := ears[i].heard()
			return slices.Contains(got, "back")
		})
		confirmed, messages := ears[i].heard()
		e.Logf("%d confirmations, messages: %v", confirmed, messages[:min(len(messages), 10)])
	}
	e.eventually("the break is reported", func() bool {
		_ = e.r.Node(key) // redlatch asks often
		return breaks.Load() > 0
	})
}

// A tally is of what became of a counting script with one key.
type tally struct {
	key         string
	ok, unknown int64
}

// tallies are kept of each way to run a script: those that the driver has.
type tallies struct {
	run   *tally
	batch []*tally
	acked *tally
}

// count counts once for each tally. It returns the errors.
func (e *env) count(counter *driver.Script, of tallies) error {
	e.Helper()
	reply, err := e.r.Run(context.Background(), counter, []string{of.run.key}, nil)
	errs := []error{e.note(of.run, reply, err)}
	if of.acked != nil {
		reply, err := e.runAcked(e.r, counter, []string{of.acked.key}, nil)
		errs = append(errs, e.note(of.acked, reply, err))
		_, err = e.acker(e.r).Replicas(context.Background(), of.acked.key)
		errs = append(errs, err)
	}
	if len(of.batch) == 0 {
		return errors.Join(errs...)
	}
	var requests []*driver.Request
	for _, a := range of.batch {
		requests = append(requests, request(counter, []string{a.key}))
	}
	e.runBatch(e.r, requests)
	for i, r := range requests {
		errs = append(errs, e.note(of.batch[i], r.Reply, r.Err))
	}
	return errors.Join(errs...)
}

func (e *env) note(a *tally, reply driver.Reply, err error) error {
	e.Helper()
	var re *driver.RunError
	switch {
	case err == nil:
		// What was not yet replicated is gone after a failover.
		if a.ok++; reply.Int > a.ok+a.unknown {
			e.Errorf("%s: %d executed, but %d succeeded and %d are unknown", a.key, reply.Int, a.ok, a.unknown)
		}
	case !errors.As(err, &re) || re.Outcome == driver.Refused:
		e.Errorf("%s: in the failover a script failed with %v", a.key, err)
	case re.Outcome == driver.Unknown:
		a.unknown++
	}
	return err
}
