package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
)

// A fleet is two clients with one of everything that can be looked at, held and
// waited for.
type fleet struct {
	*testing.T
	ctx     context.Context
	a, b    *redlatch.Client
	held    *redlatch.Hold // of appPrefix+"lock", for which somebody waits
	ends    []func()
	waiters sync.WaitGroup
}

// startFleet starts a fleet. The caller calls over.
func startFleet(t *testing.T, p drivers.Place) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*generous)
	s := &fleet{T: t, ctx: ctx, ends: []func(){cancel}}
	s.a = client(t, drivers.Goredis.Open(t, p), redlatch.Config{Identity: redlatch.Identity{Name: "billing"}})
	s.b = client(t, drivers.Rueidis.Open(t, p), redlatch.Config{Identity: redlatch.Identity{Name: "stock"}})
	rw := s.a.ReadWriteLock(appPrefix + "{rw}")
	s.held = s.hold(s.a.Lock(appPrefix + "lock"))
	for _, l := range []*redlatch.Lock{
		s.a.FairLock(appPrefix + "fair"), rw.Read(), redisson.GroupLock(s.a, appPrefix+"group", []string{"x", "y"}), s.a.Lock(appPrefix+"{fenced}", redlatch.Fenced()),
	} {
		s.hold(l)
	}
	s.wait(func(ctx context.Context) error { _, err := s.b.Lock(appPrefix + "lock").Acquire(ctx); return err })
	s.wait(func(ctx context.Context) error { _, err := s.b.FairLock(appPrefix + "fair").Acquire(ctx); return err })
	s.wait(func(ctx context.Context) error {
		_, err := barrier.New(s.b, appPrefix+"barrier", 2).Await(ctx)
		return err
	})

	_, err := semaphore.New(s.a, appPrefix+"semaphore", 0).TrySetPermits(ctx, 3)
	s.must(err)
	_, err = latch.New(s.a, appPrefix+"latch").TrySetCount(ctx, 3)
	s.must(err)
	permits := semaphore.NewExpirable(s.a, appPrefix+"permits", 0)
	_, err = permits.TrySetPermits(ctx, 3)
	s.must(err)
	permit, err := permits.Acquire(ctx, 1)
	s.must(err)
	s.ends = append(s.ends, func() { s.must(permit.Release(context.WithoutCancel(ctx))) })
	for _, each := range []bool{false, true} {
		limiter := ratelimit.New(s.a, fmt.Sprint(appPrefix, "limiter:", each), ratelimit.Rate{})
		_, err = limiter.TrySetRate(ctx, ratelimit.Rate{Permits: 3, Interval: time.Hour, PerClient: each})
		s.must(err)
		s.must(limiter.Acquire(ctx, 1))
	}
	return s
}

func (s *fleet) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *fleet) hold(l *redlatch.Lock) *redlatch.Hold {
	s.Helper()
	h, err := l.Acquire(s.ctx)
	s.must(err)
	s.ends = append(s.ends, func() { s.must(h.Release(context.WithoutCancel(s.ctx))) })
	return h
}

// wait has a caller wait until the fleet ends.
func (s *fleet) wait(f func(context.Context) error) {
	s.waiters.Go(func() {
		if err := f(s.ctx); !errors.Is(err, context.Canceled) {
			s.Errorf("a waiter has ended with %v", err)
		}
	})
}

// over ends it.
func (s *fleet) over() {
	s.ends[0]()
	s.waiters.Wait()
	for _, end := range s.ends[1:] {
		end()
	}
}

// written returns all keys of a database. What is stored of a fleet keeps its
// keys: the holds are renewed, and the waiters stay.
func written(servers []*testserver.Server, db int) (keys []string) {
	for _, s := range servers {
		if role(s) != "master" {
			continue
		}
		if db != 0 {
			s.MustDo("SELECT", strconv.Itoa(db))
		}
		for _, key := range s.MustDo("KEYS", "*").([]any) {
			keys = append(keys, key.(string))
		}
	}
	slices.Sort(keys)
	return keys
}

// A user who has the rule for watching, and nothing else, sees all there is,
// writes nothing, and is refused nothing; what it must not do fails clearly, and
// ends no hold. There is no command in the rule that writes, or that nobody sends.
func TestWatchingNeedsNoRightToWrite(t *testing.T) {
	everywhere(t, acl.Rule{Watch: true}, func(t *testing.T, site site, kind testserver.Kind, note func([]*testserver.Server)) {
		p, servers, sentinels := site.start(t, kind)
		s := startFleet(t, p)
		defer s.over()
		watcher := hire(p, acl.Rule{Prefixes: []string{appPrefix}, Watch: true}, servers...)
		within(t, "both clients have noted who they are, and all waiters are there", func() bool {
			keys := strings.Join(written(servers, p.Goredis.DB), " ")
			return strings.Count(keys, "redlatch_client:") == 2 && strings.Contains(keys, "redisson_lock_queue:") && strings.Contains(keys, "redlatch_barrier_alive:")
		})
		before := written(servers, p.Goredis.DB)
		for _, server := range servers {
			server.MustDo("CONFIG", "RESETSTAT")
		}
		for _, adapter := range drivers.Adapters {
			t.Run(adapter.Name, func(t *testing.T) { s.watchedBy(t, adapter, watcher, slices.Concat(servers, sentinels)) })
		}
		if after := written(servers, p.Goredis.DB); !slices.Equal(before, after) {
			t.Errorf("the keys were %q, and are %q", before, after)
		}
		note(servers)
		wantReadOnly(t, servers[0])
	})
}

// wantReadOnly asks a server whether a command of the rule for watching writes
// keys.
func wantReadOnly(t *testing.T, s *testserver.Server) {
	t.Helper()
	writes := map[string]bool{}
	for _, command := range s.MustDo("ACL", "CAT", "write").([]any) {
		writes["+"+command.(string)] = true
	}
	if !writes["+set"] {
		t.Fatalf("these are the commands that write: %v", writes)
	}
	for _, right := range testserver.Rule(s.Kind(), acl.Rule{Watch: true}).Commands() {
		if writes[right] {
			t.Errorf("%s writes", right)
		}
	}
}

// watchedBy looks at the fleet as tools do, through an adapter.
func (s *fleet) watchedBy(t *testing.T, adapter drivers.Adapter, p drivers.Place, servers []*testserver.Server) {
	c := client(t, adapter.Open(t, p), redlatch.Config{})
	for _, server := range servers {
		server.MustDo("ACL", "LOG", "RESET")
	}
	lister := overview.Lister{Client: c, Pattern: appPrefix + "*", All: true, Lost: true}
	names := []string{"{fenced}", "{rw}", "barrier", "fair", "group", "latch", "limiter:false", "limiter:true", "lock", "permits", "semaphore"}
	for range 2 {
		var l overview.Listing
		for try := range 10 { // on a busy machine answers come late
			var err error
			l, err = lister.List(t.Context())
			s.must(err)
			if l.Problem == "" && l.Silent == 0 {
				break
			}
			t.Logf("try %d: %q; %d are silent", try, l.Problem, l.Silent)
		}
		if l.Problem != "" || l.Silent != 0 {
			t.Errorf("%s; %d are silent", l.Problem, l.Silent)
		}
		listed := map[string]overview.Lock{}
		for _, lock := range l.Locks {
			listed[strings.TrimPrefix(lock.Name, appPrefix)] = lock
		}
		for _, name := range names {
			if _, found := listed[name]; !found {
				t.Errorf("%s is not listed", name)
			}
		}
		if lock := listed["lock"]; len(lock.Holders) != 1 || !strings.HasPrefix(lock.Holders[0].By, "billing@") || lock.WaitersText() != "1" {
			t.Errorf("%+v", lock)
		}
	}
	for _, name := range append(names, "none") {
		if _, err := admin.New(c).Info(t.Context(), appPrefix+name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for try := 1; ; try++ {
		l, problem, err := overview.Look(t.Context(), c, appPrefix+"lock", true)
		if problem == "" && err == nil && len(l.Waiting) == 1 {
			break
		}
		if try == 10 {
			t.Errorf("%s, %v: %+v", problem, err, l)
			break
		}
	}
	wantNothingRefused(t, servers)
	freed, err := admin.ForceRelease(t.Context(), c.Lock(appPrefix+"lock"))
	if freed || err == nil || redlatch.IsRetryable(err) || errors.Is(err, redlatch.ErrUnavailable) {
		t.Errorf("freed %v, %v", freed, err)
	}
	if err := s.held.Err(); err != nil {
		t.Errorf("the holder has lost the lock: %v", err)
	}
	if l, err := lister.List(t.Context()); err != nil || l.Problem != "" || l.Silent != 0 { // what was refused costs it nothing
		t.Errorf("afterwards: %v, %s, %d are silent", err, l.Problem, l.Silent)
	}
	if _, err := c.Lock(appPrefix+"mine").TryAcquire(t.Context(), 0); err == nil || redlatch.IsRetryable(err) {
		t.Errorf("it has acquired a lock: %v", err)
	}
}
