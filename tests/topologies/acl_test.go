package topologies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const (
	appUser, appPassword = "app", "app-of-the-tests"
	appPrefix            = "app:"
)

// hire makes the user at all servers, who may do what the rule says, and connects
// as that user.
func hire(p drivers.Place, rule acl.Rule, servers ...*testserver.Server) drivers.Place {
	for _, s := range servers {
		rights := testserver.Rule(s.Kind(), rule).Words()
		s.MustDo(slices.Concat([]string{"ACL", "SETUSER", appUser, "reset", "on", ">" + appPassword}, rights)...)
	}
	p.Goredis.Username, p.Goredis.Password = appUser, appPassword
	p.Rueidis.Username, p.Rueidis.Password = appUser, appPassword
	p.Valkeygo.Username, p.Valkeygo.Password = appUser, appPassword
	p.Goredis.ClientName, p.Rueidis.ClientName, p.Valkeygo.ClientName = "app", "app", "app"
	return p
}

// A site is where the least privileged user is tried.
type site struct {
	name  string
	start func(t *testing.T, k testserver.Kind) (p drivers.Place, servers, sentinels []*testserver.Server)
	modes []redlatch.PubSub
}

var sites = []site{
	{"Sentinel", func(t *testing.T, k testserver.Kind) (p drivers.Place, servers, sentinels []*testserver.Server) {
		s := testserver.StartSentinels(t, k)
		return drivers.Sentinel(s), s.Data, s.Sentinels // at which the default user has the rule for sentinels
	}, []redlatch.PubSub{redlatch.PubSubAuto}},
	{"one server", func(t *testing.T, k testserver.Kind) (p drivers.Place, servers, sentinels []*testserver.Server) {
		s := testserver.Start(t, k)
		p = drivers.Single(s.Addr())
		p.Goredis.DB, p.Rueidis.SelectDB, p.Valkeygo.SelectDB = 3, 3, 3
		return p, []*testserver.Server{s}, nil
	}, []redlatch.PubSub{redlatch.PubSubAuto}},
	{"Cluster", func(t *testing.T, k testserver.Kind) (p drivers.Place, servers, sentinels []*testserver.Server) {
		c := testserver.StartCluster(t, k)
		return drivers.Cluster(c), c.Nodes, nil
	}, []redlatch.PubSub{redlatch.PubSubAuto, redlatch.PubSubClassic, redlatch.PubSubBoth}},
}

// Every type works for a user who may do what the rule for a prefix says, by each
// driver and kind of Pub/Sub, with names with braces and without, and nothing is
// refused to it; and there is no command in the rule that nobody sends.
func TestLeastPrivilege(t *testing.T) {
	everywhere(t, acl.Rule{List: true}, func(t *testing.T, site site, kind testserver.Kind, note func([]*testserver.Server)) {
		p, servers, sentinels := site.start(t, kind)
		p = hire(p, acl.Rule{Prefixes: []string{appPrefix}, List: true}, servers...)
		for _, s := range servers {
			s.MustDo("CONFIG", "RESETSTAT")
		}
		for _, adapter := range drivers.Adapters {
			for _, mode := range site.modes {
				if mode == redlatch.PubSubBoth && !kind.Sharded() {
					continue
				}
				for _, name := range []string{appPrefix, appPrefix + "{x}:"} {
					t.Run(fmt.Sprint(adapter.Name, "/", mode, "/", name), func(t *testing.T) {
						work(t, adapter.Open(t, p), mode, fmt.Sprint(name, adapter.Name, mode))
					})
				}
			}
		}
		wantNothingRefused(t, slices.Concat(servers, sentinels))
		note(servers)
		for _, adapter := range drivers.Adapters {
			t.Run(adapter.Name+"/beside", func(t *testing.T) { beside(t, adapter.Open(t, p), servers) })
		}
	})
}

// everywhere calls f for each site and each kind of server, side by side. It has
// to note the servers when they have executed what it is about: then each command
// of the rule must have been among that.
func everywhere(t *testing.T, rule acl.Rule, f func(t *testing.T, site site, kind testserver.Kind, note func([]*testserver.Server))) {
	t.Helper()
	locktest.Long(t)
	t.Parallel()
	var mu sync.Mutex
	sent := map[testserver.Kind]map[string]bool{}
	t.Run("all", func(t *testing.T) {
		for _, kind := range testserver.Kinds() {
			sent[kind] = map[string]bool{}
			for _, site := range sites {
				t.Run(site.name+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					f(t, site, kind, func(servers []*testserver.Server) {
						mu.Lock()
						defer mu.Unlock()
						for _, s := range servers {
							maps.Copy(sent[kind], commandsSent(s))
						}
					})
				})
			}
		}
	})
	elsewhere := map[string]string{
		"+asking":  "drivertest, while slots move",
		"+discard": "rueidis, if it has been busy", "+punsubscribe": "rueidis, if it has been busy",
	}
	if rule.Watch {
		elsewhere["+sunsubscribe"] = "rueidis, if it has been busy"
	}
	for kind, sent := range sent {
		for _, right := range testserver.Rule(kind, rule).Commands()[1:] {
			command := right[1:]
			if kind == testserver.Redis62 { // it counts no subcommands
				command, _, _ = strings.Cut(command, "|")
			}
			if !sent[command] && elsewhere[right] == "" {
				t.Errorf("%s: %s is in the rule, and nobody has used it", kind, right)
			}
		}
	}
}

func wantNothingRefused(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	for _, s := range servers {
		if log := refusals(s); len(log) > 0 {
			t.Errorf("%s has refused %v", s.Addr(), log)
		}
	}
}

// refusals returns what a server has refused. Drivers tell it their names with
// CLIENT SETINFO, and clients of a cluster look for PUBSUB SHARDNUMSUB; what Redis
// 6.2 does not know of a command it refuses to whoever may not do all that the
// command does.
func refusals(s *testserver.Server) []string {
	var all []string
	for _, entry := range s.MustDo("ACL", "LOG").([]any) {
		text := fmt.Sprint(entry)
		if s.Kind() == testserver.Redis62 && (strings.Contains(text, " object client ") || strings.Contains(text, " lua object pubsub ")) {
			continue
		}
		all = append(all, text)
	}
	return all
}

// commandsSent returns the commands that a server has executed.
func commandsSent(s *testserver.Server) map[string]bool {
	stats, _ := s.MustDo("INFO", "commandstats").(string)
	sent := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^cmdstat_([a-z|-]+):calls=[1-9]`).FindAllStringSubmatch(stats, -1) {
		sent[m[1]] = true
	}
	return sent
}

// noTag makes names for latches, which cannot have a hash tag in a cluster.
var noTag = strings.NewReplacer("{", "", "}", "")

// work does all there is with two clients.
func work(t *testing.T, d driver.Redis, mode redlatch.PubSub, name string) {
	a := client(t, d, redlatch.Config{ServerName: "a", Redisson: redlatch.Redisson{PubSub: mode}})
	b := client(t, d, redlatch.Config{ServerName: "b", Redisson: redlatch.Redisson{PubSub: mode}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*generous)
	defer cancel()
	for _, typ := range types {
		own := name + ":" + typ.name
		if d.Traits().Cluster && typ.name == "latch" {
			own = noTag.Replace(own)
		}
		typ.test(&pair{T: t, ctx: ctx, a: a, b: b, name: own})
	}
	p := &pair{T: t, ctx: ctx, a: a, b: b, name: name}
	p.rest(d)
	for _, list := range []func(context.Context, string) error{
		func(ctx context.Context, pattern string) error {
			return errors.Join(listed(admin.New(a).Locks(ctx, pattern))...)
		},
		func(ctx context.Context, pattern string) error {
			return errors.Join(listed(admin.New(a).Objects(ctx, pattern))...)
		},
		func(ctx context.Context, pattern string) error {
			return errors.Join(listed(admin.New(a).Counters(ctx, pattern))...)
		},
	} {
		p.must("a list", list(ctx, appPrefix+"*"))
	}
}

func listed[T any](all func(func(T, error) bool)) (errs []error) {
	for _, err := range all {
		errs = append(errs, err)
	}
	return errs
}

// rest does what the tests of the types do not.
func (p *pair) rest(d driver.Redis) {
	// Readers whose writer has precedence; a fair lock with a token.
	rw := p.a.ReadWriteLock(p.name + ":rw").PreferWriters()
	r := p.acquire(rw.Read())
	got := start(func() error {
		h, err := p.b.ReadWriteLock(p.name + ":rw").PreferWriters().Write().Acquire(p.ctx)
		if err != nil {
			return err
		}
		return h.Release(p.ctx)
	})
	p.release(r)
	p.await("Acquire of a writer", got)
	h := p.acquire(p.a.FairLock(p.name+":fair"), redlatch.Fenced())
	guarded, err := fence.NewKey(d, p.name+":guarded")
	p.must("NewKey", err)
	p.must("Set", guarded.Set(p.ctx, h.Token(), "value", time.Minute))
	_, _, err = guarded.Get(p.ctx, h.Token())
	p.must("Get", err)
	p.must("Check", guarded.Check(p.ctx, h.Token()))
	p.must("Delete", guarded.Delete(p.ctx, h.Token()))
	p.release(h)
	_, err = semaphore.NewExpirable(p.a, p.name+":permits", 0).TrySetPermits(p.ctx, 1)
	p.must("TrySetPermits", err)
	permit, err := semaphore.NewExpirable(p.a, p.name+":permits", 0, redlatch.Lease(time.Minute)).Acquire(p.ctx, 1)
	p.must("Acquire", err)
	for _, name := range []string{":permits", ":rw", ":fair", ":none"} {
		_, err = admin.New(p.b).Info(p.ctx, p.name+name)
		p.must("Info", err)
	}
	p.must("Release", permit.Release(p.ctx))
	l := latch.New(p.a, noTag.Replace(p.name+":latch"))
	_, err = l.TrySetCount(p.ctx, 5)
	p.must("TrySetCount", err)
	_, err = l.Delete(p.ctx)
	p.must("Delete", err)
	each := ratelimit.New(p.a, p.name+":each", ratelimit.Rate{})
	_, err = each.TrySetRate(p.ctx, ratelimit.Rate{Permits: 1, Interval: time.Minute, PerClient: true, KeepAlive: time.Hour})
	p.must("TrySetRate", err)
	p.must("Acquire", each.Acquire(p.ctx, 1))
	_, err = each.Available(p.ctx)
	p.must("Available", err)
	p.must("SetRate", each.SetRate(p.ctx, ratelimit.Rate{Permits: 2, Interval: time.Minute}))
}

// beside checks that a name that does not begin with the prefix is refused,
// clearly and at once.
func beside(t *testing.T, d driver.Redis, servers []*testserver.Server) {
	c := client(t, d, redlatch.Config{})
	for what, f := range map[string]func() error{
		"Try":     func() error { _, err := c.Lock("other").TryAcquire(t.Context(), 0); return err },
		"Acquire": func() error { _, err := c.Lock("other").Acquire(t.Context()); return err },
		"Permit":  func() error { return semaphore.New(c, "app", 0).Acquire(t.Context(), 1) },
	} {
		for _, s := range servers {
			s.MustDo("ACL", "LOG", "RESET")
		}
		began := time.Now()
		err := f()
		var re *driver.RunError
		if !errors.As(err, &re) || re.Outcome != driver.Refused || re.Code != "NOPERM" || redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "key") {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("%s: it took %v", what, took)
		}
		refused := 0
		for _, s := range servers {
			for _, entry := range refusals(s) {
				refused++
				if !strings.HasPrefix(entry, "[count 1 reason key ") {
					t.Errorf("%s: refused %v", what, entry)
				}
			}
		}
		if refused != 1 {
			t.Errorf("%s: was sent %d times", what, refused)
		}
	}
}

// A server runs its append-only file as the default user: one that is off, but has
// kept its rights, loses nothing.
func TestDefaultUserIsOff(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		args := append([]string{"--appendonly", "yes", "--appendfsync", "always", "--user", "default", "off", "nopass", "~*", "&*", "+@all"},
			append([]string{"--user", appUser, "on", ">" + appPassword}, testserver.Rule(kind, acl.Rule{Prefixes: []string{appPrefix}}).Words()...)...)
		s := testserver.Start(t, kind, args...)
		p := drivers.Single(s.Addr())
		p.Goredis.Username, p.Goredis.Password = appUser, appPassword
		c := client(t, drivers.Adapters[0].Open(t, p), redlatch.Config{})
		h, err := c.Lock(appPrefix+"kept", redlatch.Lease(longLease)).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Restart()
		if ttl, _ := s.MustDo("PTTL", h.Name()).(int64); ttl < int64(longLease/2/time.Millisecond) {
			t.Errorf("%s: after the restart the lock has a TTL of %d ms", kind, ttl)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
