package prom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/standstill"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchprom"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// For Prometheus a minute takes a second: its rules look back, and wait, for a
// sixtieth of the time (quick), and it scrapes as often as if that were each 15
// seconds. The clients keep their time: a hold is near its end after 18 seconds,
// and a wait is slow after 10.
const (
	minute = time.Second
	often  = minute / 4
)

var (
	durations  = regexp.MustCompile(`(\[|\bfor: |\boffset )[0-9]+[a-z]+\b`)
	alertNames = regexp.MustCompile(`- alert: (\w+)`)
)

// quick returns the rules, and a file that has them, with seconds for minutes and
// minutes for hours wherever PromQL wants a duration: in brackets, and behind
// "for" and "offset".
func quick(t *testing.T) (rules, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pages, "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	rules = durations.ReplaceAllStringFunc(string(text), func(found string) string {
		n := len(found) - 1
		unit, ok := map[string]string{"m": "s", "h": "m"}[found[n:]]
		if !ok {
			t.Fatalf("%q is in no unit that can be made shorter", found)
		}
		return found[:n] + unit
	})
	file = filepath.Join(t.TempDir(), "quick.yml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return rules, file
}

// A service is a process, so to speak, with a Redis server of its own.
type service struct {
	whole   *testing.T
	client  *redlatch.Client
	redis   *testserver.Server
	proxy   *faultnet.Proxy // between the two
	target  string          // what Prometheus scrapes
	dead    atomic.Bool     // it answers no scrape any more
	unwatch func()
	ctx     context.Context //nolint:containedctx // that of its work
	stop    context.CancelFunc
	work    sync.WaitGroup
	users   atomic.Int64
	held    []*redlatch.Hold // until the end: what nobody refers to is dropped
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{whole: t, redis: testserver.Start(t, testserver.Redis)}
	s.proxy = faultnet.New(s.redis.Dial)
	t.Cleanup(s.proxy.Close)
	addr, err := s.proxy.Listen()
	if err != nil {
		t.Fatal(err)
	}
	m := redlatchprom.New(redlatchprom.Options{})
	if s.client, err = redlatch.New(drivers.Goredis.Open(t, drivers.Single(addr)), redlatch.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close() })
	s.unwatch = m.Watch(s.client)
	s.target = told(t, m, &s.dead)
	s.ctx, s.stop = context.WithCancel(bg)
	t.Cleanup(s.end)
	return s
}

// end ends the work.
func (s *service) end() {
	s.stop()
	s.work.Wait()
	runtime.KeepAlive(s.held)
}

// again does something again and again until the work ends. It may fail with one
// of these errors.
func (s *service) again(do func(ctx context.Context) error, may ...error) {
	s.work.Go(func() {
		for s.ctx.Err() == nil {
			err := do(s.ctx)
			expected := func(is error) bool { return errors.Is(err, is) }
			if err != nil && s.ctx.Err() == nil && !slices.ContainsFunc(may, expected) {
				s.whole.Errorf("at work: %v", err)
				return
			}
		}
	})
}

// hold acquires a lock, and keeps it.
func (s *service) hold(t *testing.T, name string) *redlatch.Hold {
	t.Helper()
	h, err := s.client.Lock(name).Acquire(bg)
	if err != nil {
		t.Fatal(err)
	}
	s.held = append(s.held, h)
	return h
}

// want acquires a lock, waits for it for so long, and releases it.
func (s *service) want(ctx context.Context, name string, d time.Duration) error {
	h, err := s.client.Lock(name).TryAcquire(ctx, d)
	if err == nil {
		err = h.Release(bg)
	}
	return err
}

// crowd has callers wait in vain, for so many seconds: one of them gives up each
// second.
func (s *service) crowd(seconds int, name func() string) {
	for range seconds {
		s.again(func(ctx context.Context) error {
			return s.want(ctx, name(), time.Duration(seconds)*time.Second)
		}, redlatch.ErrBusy, redlatch.ErrUnavailable)
		time.Sleep(time.Second)
	}
}

// user returns the name of the next user's lock.
func (s *service) user() string { return fmt.Sprint("users:", s.users.Add(1)) }

// works does what a service does all day: some callers get locks and others do
// not, and one hold is renewed all the time.
func (s *service) works() {
	s.whole.Helper()
	s.hold(s.whole, "kept")
	s.stands("scheduler")
	const while = 10 * time.Millisecond
	busy := func(context.Context) error { time.Sleep(while); return nil }
	for range 3 {
		for _, l := range []*redlatch.Lock{s.client.Lock("plain"), s.client.FairLock("fair"), s.client.ReadWriteLock("accounts").Read()} {
			s.again(func(ctx context.Context) error { return l.Do(ctx, busy) })
		}
	}
	s.again(func(ctx context.Context) error { return s.want(ctx, "kept", while) }, redlatch.ErrBusy)
	s.again(func(ctx context.Context) error {
		time.Sleep(while)
		return s.want(ctx, "kept", 0)
	}, redlatch.ErrBusy)
	s.again(func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(while, cancel)
		return s.want(ctx, "kept", time.Hour)
	}, context.Canceled)
}

// stands has the service be a candidate, which leads if it can.
func (s *service) stands(name string) {
	s.again(func(ctx context.Context) error {
		return election.New(s.client, name).Run(ctx, func(ctx context.Context, _ int64) error { <-ctx.Done(); return nil })
	})
}

// A story is what befalls a service, and what Prometheus makes of that.
type story struct {
	*service
	server

	job string
}

func (s story) awaitAlert(name string) {
	s.Helper()
	s.await(fmt.Sprintf(`ALERTS{job=%q, alertname=%q, alertstate="firing"}`, s.job, name))
}

// awaitLoss waits until the client knows that a hold was lost.
func (s story) awaitLoss(h *redlatch.Hold, want redlatch.LossReason) {
	s.Helper()
	if !locktest.Within(locktest.Generous, func() bool { return h.Err() != nil }) {
		s.Fatal("nobody noticed the loss")
	}
	var lost *redlatch.LostError
	if !errors.As(h.Err(), &lost) || lost.Reason != want {
		s.Errorf("the hold ended with %v, want %q", h.Err(), want)
	}
}

// busy looks, until the returned function is called, how long this process and
// Prometheus take for next to nothing. A scrape that takes as long fails, and
// faults of which nobody knows befall the services: what fires then proves
// nothing.
func (s server) busy(t *testing.T) (worst func() time.Duration) {
	ctx, cancel := context.WithCancel(bg)
	t.Cleanup(cancel)
	longest := locktest.Later(func() (longest time.Duration) {
		const pause = 20 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(pause)
			if _, err := s.ask("vector(1)"); err == nil {
				longest = max(longest, time.Since(began)-pause)
			}
		}
		return longest
	})
	return func() time.Duration { cancel(); return <-longest }
}

// stories are the faults, and the alerts that each has to raise.
var stories = map[string]struct {
	befall func(s story)
	alerts []string
}{
	"somebody deletes a lock": {func(s story) {
		h := s.hold(s.T, "orders")
		s.redis.MustDo("DEL", "orders")
		s.awaitLoss(h, redlatch.LostGone)
	}, []string{"RedlatchLockLost"}},

	"somebody releases a lock by force": {func(s story) {
		h := s.hold(s.T, "orders")
		if _, err := admin.ForceRelease(bg, s.client.Lock("orders")); err != nil {
			s.Error(err)
		}
		s.awaitLoss(h, redlatch.LostRevoked)
	}, []string{"RedlatchLockLost"}},

	"a renewal fails, and the next does not": {func(s story) {
		renewal := func(r faultnet.Request) bool { return r.Script() == lua.LockRenew.SHA() }
		s.proxy.SetRule(faultnet.First(renewal, faultnet.DropReply))
		h := s.hold(s.T, "orders")
		s.awaitAlert("RedlatchRenewalsFailing")
		if err := h.Release(bg); err != nil {
			s.Error(err)
		}
	}, []string{"RedlatchRenewalsFailing"}},

	// A hold comes near to its end because its renewals fail.
	"an outage ends before it costs a hold": {func(s story) {
		h := s.hold(s.T, "orders")
		s.proxy.Blackhole(true)
		s.awaitAlert("RedlatchHoldsNearTheirEnd")
		s.proxy.Blackhole(false)
		s.proxy.BreakAll()
		if err := h.Release(bg); err != nil {
			s.Error(err)
		}
	}, []string{"RedlatchHoldsNearTheirEnd", "RedlatchRenewalsFailing"}},

	// It goes through all the stages.
	"an outage costs a hold": {func(s story) {
		h := s.hold(s.T, "orders")
		s.redis.Pause()
		defer s.redis.Resume()
		s.crowd(5, s.user) // longer than an attempt takes
		s.awaitLoss(h, redlatch.LostExpired)
		s.awaitAlert("RedlatchServerUnavailable")
	}, []string{"RedlatchHoldsNearTheirEnd", "RedlatchLockLost", "RedlatchRenewalsFailing", "RedlatchServerUnavailable"}},

	"the server is gone, and nothing is held": {func(s story) {
		s.redis.Kill()
		s.crowd(1, s.user)
	}, []string{"RedlatchServerUnavailable"}},

	"callers wait long": {func(s story) {
		s.crowd(11, s.hold(s.T, "orders").Name)
	}, []string{"RedlatchWaitSlow"}},

	"a hold is dropped": {func(s story) {
		_, err := s.client.Lock("orders").Acquire(bg)
		if err != nil {
			s.Fatal(err)
		}
		if !locktest.Within(locktest.Generous, func() bool { runtime.GC(); return s.client.Stats().Holds == 0 }) {
			s.Error("the hold is still there")
		}
	}, []string{"RedlatchHoldsDropped"}},

	"somebody holds an election's lock": {func(s story) {
		s.stands(s.hold(s.T, "scheduler").Name())
	}, []string{"RedlatchNoLeader"}},

	"the only process dies": {func(s story) {
		s.dead.Store(true)
	}, []string{"RedlatchClientsSilent"}},

	"a process has no client any more": {func(s story) {
		s.unwatch()
	}, []string{"RedlatchClientsSilent"}},
}

// Each alert fires for the faults that it is for; and no other alert ever fires,
// for any of them or for a service that has nothing but its work, and of which one
// process ends.
func TestAlertsFireForTheirFaultsOnly(t *testing.T) {
	program(t, "prometheus")
	t.Parallel()
	rules, file := quick(t)
	var all []string
	for _, name := range alertNames.FindAllStringSubmatch(rules, -1) {
		all = append(all, name[1])
	}
	services, jobs := map[string]*service{}, map[string][]string{}
	for name, of := range stories {
		services[name] = newService(t)
		jobs[name] = []string{services[name].target}
		for _, alert := range of.alerts {
			all = slices.DeleteFunc(all, func(other string) bool { return other == alert })
		}
	}
	if len(all) > 0 {
		t.Errorf("no story raises %q", all)
	}
	stays, ends := newService(t), newService(t)
	jobs["well"] = []string{stays.target, ends.target}
	stays.works()
	ends.works()

	p := scraping(t, file, often, 5*minute, jobs)
	p.await(fmt.Sprintf(`count(redlatch_clients == 1) == %d`, len(stories)+2))
	for _, outcome := range []observe.Outcome{observe.OutcomeHandedOff, observe.OutcomeBusy, observe.OutcomeTimedOut, observe.OutcomeCancelled} {
		p.await(fmt.Sprintf(`count(redlatch_acquisitions_total{job="well", outcome=%q} > 0) > 1`, outcome))
	}
	worst := p.busy(t)
	ends.end()
	if err := ends.client.Close(); err != nil {
		t.Error(err)
	}
	ends.dead.Store(true)

	t.Run("stories", func(t *testing.T) {
		for name, of := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := story{services[name], server{t, p.url}, name}
				of.befall(s)
				for _, alert := range of.alerts {
					s.awaitAlert(alert)
				}
			})
		}
	})

	// Whatever is still to fire has fired when a rule has looked back for five
	// minutes, and waited for ten.
	p.await(fmt.Sprintf("prometheus_rule_group_iterations_total - prometheus_rule_group_iterations_total @ %d >= %d", time.Now().Unix(), 15*minute/often))
	fired, err := p.ask(`count by (job, alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))`)
	if err != nil {
		t.Fatal(err)
	}
	late := worst()
	for _, labels := range fired {
		switch {
		case slices.Contains(stories[labels["job"]].alerts, labels["alertname"]):
		case late > often || stays.client.Stats().RenewalsFailed > 0:
			standstill.NotProven(t, "the machine was busy (%v for a trifle): %s has fired for %q", late, labels["alertname"], labels["job"])
		default:
			t.Errorf("%s has fired for %q", labels["alertname"], labels["job"])
		}
	}
	if len(fired) == 0 {
		t.Error("Prometheus has forgotten what has fired")
	}
}
