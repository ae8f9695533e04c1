package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/rueidis"
)

// An adapter connects a driver to a server, with time-outs as short as a busy
// machine allows.
type adapter struct {
	name    string
	connect func(tb testing.TB, addr string) redlatch.Redis
}

var adapters = []adapter{{"goredis", connectGoredis}, {"rueidis", connectRueidis}}

func connectGoredis(tb testing.TB, addr string) redlatch.Redis {
	tb.Helper()
	rdb := goredisclient.NewClient(&goredisclient.Options{
		Addr: addr, DialTimeout: 500 * time.Millisecond,
		ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	return goredis.Use(rdb)
}

func connectRueidis(tb testing.TB, addr string) redlatch.Redis {
	tb.Helper()
	opt := rueidisclient.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: 500 * time.Millisecond}
	opt.Dialer.Timeout, opt.Dialer.KeepAlive = 200*time.Millisecond, 100*time.Millisecond
	d, err := rueidis.New(opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}

// TestFaults tells on real servers what becomes of locks when something goes
// wrong on the way.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real server")
	}
	t.Parallel()
	tests := []struct {
		name string
		run  func(t *testing.T, a adapter)
	}{
		{"a lost reply changes nothing", aLostReplyChangesNothing},
		{"a lost reply to an unknown script changes nothing", aLostReplyToAnUnknownScriptChangesNothing},
		{"a late request changes nothing", aLateRequestChangesNothing},
		{"a cancelled acquire leaves no orphan", aCancelledAcquireLeavesNoOrphan},
		{"a cancelled acquire passes its take on", aCancelledAcquirePassesItsTakeOn},
		{"a holder is told before the lock is given away", aHolderIsToldBeforeTheLockIsGivenAway},
		{"an outage ends every call in time", anOutageEndsEveryCallInTime},
		{"waiters outlive the server", waitersOutliveTheServer},
		{"an empty server ends every hold at once", anEmptyServerEndsEveryHoldAtOnce},
		{"a break is followed by renewals", aBreakIsFollowedByRenewals},
		{"a foreign release of our lock is noticed", aForeignReleaseOfOurLockIsNoticed},
		{"passing trouble costs nothing", passingTroubleCostsNothing},
		{"a server that forgets the scripts is told them", aServerThatForgetsTheScriptsIsToldThem},
		{"without subscriptions waiters poll", withoutSubscriptionsWaitersPoll},
		{"a release with an ended context releases", aReleaseWithAnEndedContextReleases},
		{"a release behind a failed reentry", aReleaseBehindAFailedReentry},
		{"holds of one nest released at once", holdsOfOneNestReleasedAtOnce},
		{"close under a live hold", closeUnderALiveHold},
		{"close while a lock is being acquired", closeWhileALockIsBeingAcquired},
		{"a lease shorter than the way to the server", aLeaseShorterThanTheWayToTheServer},
		{"a watchdog hold inside a short lease", aWatchdogHoldInsideAShortLease},
	}
	var all []subtest
	for _, x := range tests {
		for _, a := range adapters {
			all = append(all, subtest{x.name + "/" + a.name, func(t *testing.T) { x.run(t, a) }})
		}
	}
	concurrently(t, 10, all)
}

// A subtest is one that runs at the same time as others.
type subtest struct {
	name string
	run  func(t *testing.T)
}

// concurrently runs subtests, so many at a time. They wait more than they work:
// t.Parallel, which admits as many as there are processors, would take minutes.
func concurrently(t *testing.T, atOnce int, tests []subtest) {
	t.Helper()
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, x := range tests {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Run(x.name, x.run)
		})
	}
	wg.Wait()
}

// An arena is a real server and everything that the stories told on it leave
// open, so that what they leave behind can be looked for in the end.
type arena struct {
	*testing.T
	adapter adapter
	server  *testserver.Server
	direct  redlatch.Redis   // past all proxies
	other   *redlatch.Client // another process, so to speak
	short   time.Duration    // a WatchdogTimeout for those who cannot wait for a renewal

	mu      sync.Mutex
	clients []*redlatch.Client
}

func newArena(t *testing.T, a adapter) *arena {
	t.Helper()
	ar := &arena{T: t, adapter: a, server: testserver.Start(t, testserver.Redis)}
	for name := range shas {
		ar.server.MustDo("SCRIPT", "LOAD", sourceOf(name))
	}
	ar.direct = a.connect(t, ar.server.Addr())
	ar.short = shortLease(ar.direct)
	ar.other = ar.client(ar.direct, redlatch.Config{})
	return ar
}

// shortLease returns the shortest WatchdogTimeout that New accepts, but one that
// leaves a busy machine the time to renew.
func shortLease(r redlatch.Redis) time.Duration {
	return max(3*time.Second, 3*r.Traits().Timeout).Round(time.Millisecond)
}

// client returns a client that lives as long as the arena. Its leases last for
// 30 seconds unless cfg says otherwise: what is left behind stays to be found.
func (ar *arena) client(r redlatch.Redis, cfg redlatch.Config) *redlatch.Client {
	ar.Helper()
	c, err := redlatch.New(r, cfg)
	if err != nil {
		ar.Fatal(err)
	}
	ar.mu.Lock()
	defer ar.mu.Unlock()
	ar.clients = append(ar.clients, c)
	ar.Cleanup(func() { _ = c.Close() })
	return c
}

// through returns a new proxy to the server and a driver that works through it.
func (ar *arena) through() (*faultnet.Proxy, redlatch.Redis) {
	ar.Helper()
	p := faultnet.New(ar.server.Dial)
	ar.Cleanup(p.Close)
	addr, err := p.Listen()
	if err != nil {
		ar.Fatal(err)
	}
	return p, ar.adapter.connect(ar, addr)
}

// end looks for what was left behind: five seconds from now there must be no
// key, and when all clients are closed no subscription.
func (ar *arena) end() {
	ar.Helper()
	time.Sleep(5 * time.Second) // "five seconds later" cannot be waited for otherwise
	if keys := ar.list("KEYS", "*"); len(keys) > 0 {
		ar.Errorf("five seconds after the end there are keys: %q", keys)
	}
	ar.close()
}

// close closes all clients and looks for their subscriptions.
func (ar *arena) close() {
	ar.Helper()
	ar.mu.Lock()
	clients := ar.clients
	ar.mu.Unlock()
	for _, c := range clients {
		if err := c.Close(); err != nil {
			ar.Error(err)
		}
	}
	var channels []string
	if !within(10*time.Second, func() bool {
		channels = ar.list("PUBSUB", "CHANNELS")
		return len(channels) == 0
	}) {
		ar.Errorf("after Close there are subscriptions: %q", channels)
	}
}

func (ar *arena) list(args ...string) []string {
	ar.Helper()
	v, err := ar.server.Do(args...)
	if err != nil {
		ar.Error(err)
	}
	list, _ := v.([]any)
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprint(list[i])
	}
	return texts
}

// A telling is one story told at the same time as others on the same server.
type telling struct {
	name string
	tell func(s *story)
}

// tell tells the stories, several at a time, each with a lock, a proxy and a
// client of its own.
func (ar *arena) tell(stories []telling) {
	ar.Helper()
	tests := make([]subtest, len(stories))
	for i, x := range stories {
		tests[i] = subtest{x.name, func(t *testing.T) {
			s := &story{T: t, arena: ar, lock: strings.ReplaceAll(t.Name(), "/", ":"), waiting: make(chan struct{}, 100)}
			s.proxy, s.driver = ar.through()
			s.c = ar.client(s.driver, redlatch.Config{
				SlowWait: time.Millisecond,
				Events:   redlatch.Events{SlowWait: s.slowWait},
			})
			x.tell(s)
		}}
	}
	concurrently(ar.T, 8, tests)
}

// A story is about one lock and a client behind a proxy.
type story struct {
	*testing.T
	*arena // shadowed where both have a method

	lock string
	sides
	c       *redlatch.Client
	driver  redlatch.Redis // c's
	proxy   *faultnet.Proxy
	waiting chan struct{} // delivers when somebody has lined up behind a hold
	crowd   sync.WaitGroup
}

func (s *story) slowWait(redlatch.SlowWaitEvent) {
	select {
	case s.waiting <- struct{}{}:
	default:
	}
}

// inject makes the proxy do a to the first requests that are of kind k and about
// the story's lock; the result tells whether all of them have been met.
func (s *story) inject(k *requestKind, a faultnet.Action, times int) (fired func() bool) {
	var mu sync.Mutex
	left := times
	s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		mu.Lock()
		defer mu.Unlock()
		if left == 0 || !k.is(r, s.lock) {
			return faultnet.Pass
		}
		left--
		return a
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return left == 0
	}
}

func (s *story) acquire(ctx context.Context, opts ...redlatch.Option) *redlatch.Hold {
	s.T.Helper()
	return s.acquireBy(s.c, ctx, opts...)
}

func (s *story) acquireBy(c *redlatch.Client, ctx context.Context, opts ...redlatch.Option) *redlatch.Hold {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	h, err := s.of(c).Acquire(ctx, opts...)
	if err != nil {
		s.T.Fatalf("Acquire: %v", err)
	}
	return s.track(h)
}

// release releases the holds, the last one first.
func (s *story) release(holds ...*redlatch.Hold) {
	s.T.Helper()
	for _, h := range slices.Backward(holds) {
		if err := h.Release(bg); err != nil {
			s.T.Fatalf("Release: %v", err)
		}
	}
}

// lineUp acquires the lock on a goroutine and returns when it waits in line
// behind a hold of its own process.
func (s *story) lineUp(opts ...redlatch.Option) <-chan outcome {
	s.T.Helper()
	got := acquiring(s.of(s.c), opts...)
	await(s.T, "a waiter in line", s.waiting)
	return got
}

// An outcome is what Acquire returned.
type outcome struct {
	hold *redlatch.Hold
	err  error
	at   time.Time
}

func acquiring(l *redlatch.Lock, opts ...redlatch.Option) <-chan outcome {
	return later(func() outcome {
		ctx, cancel := context.WithTimeout(bg, generous)
		defer cancel()
		h, err := l.Acquire(ctx, opts...)
		return outcome{h, err, time.Now()}
	})
}

func (s *story) got(c <-chan outcome) *redlatch.Hold {
	s.T.Helper()
	o := await(s.T, "an acquisition", c)
	if o.err != nil {
		s.T.Fatalf("Acquire: %v", o.err)
	}
	return s.track(o.hold)
}

// wantHeld checks that the story's lock is h's and nobody else's, entered count
// times, for as long as h is trusted, and that another client is refused.
func (s *story) wantHeld(when string, h *redlatch.Hold, count int) {
	s.T.Helper()
	s.wantShown(when, h, count)
	_, err := s.rival().Try(bg)
	var busy *redlatch.BusyError
	if !errors.As(err, &busy) || busy.Owner != h.Owner() {
		s.T.Errorf("%s: another client's Try: %v, want busy with %s", when, err, h.Owner())
	}
}

// wantShown is wantHeld without asking another client.
func (s *story) wantShown(when string, h *redlatch.Hold, count int) {
	s.T.Helper()
	if err := h.Err(); err != nil {
		s.T.Fatalf("%s: the hold is over: %v", when, err)
	}
	trusted := h.Expires()
	if s.isReadWrite() {
		s.wantSides(when, h)
		return
	}
	fields := s.list("HGETALL", s.lock)
	ttl := s.ttl()
	if now := time.Now(); now.Add(ttl).Before(trusted) {
		s.T.Errorf("%s: Redis keeps the lock for another %v, its holder trusts it for %v", when, ttl, trusted.Sub(now))
	}
	if want := []string{h.Owner(), strconv.Itoa(count)}; !slices.Equal(fields, want) {
		s.T.Errorf("%s: Redis shows %q, want %q", when, fields, want)
	}
}

// wantFree checks that nobody has the lock and that anybody can take it.
func (s *story) wantFree(when string) {
	s.T.Helper()
	if fields := s.list("HGETALL", s.lock); len(fields) > 0 {
		s.T.Errorf("%s: the lock should be free; Redis shows %q", when, fields)
		return
	}
	if s.side == "fair" {
		s.awaitQueue(0)
	}
	h, err := s.rival().Try(bg)
	if err != nil {
		s.T.Errorf("%s: another client's Try: %v", when, err)
		return
	}
	s.release(h)
}

// ttl returns what is left of the lock's TTL; less than 0 if it has none.
func (s *story) ttl() time.Duration {
	s.T.Helper()
	ms, _ := s.server.MustDo("PTTL", s.lock).(int64)
	return time.Duration(ms) * time.Millisecond
}

// keepsTTL returns a check that the lock's end has not come nearer since.
func (s *story) keepsTTL() (check func(when string)) {
	s.T.Helper()
	before := time.Now().Add(s.ttl())
	return func(when string) {
		s.T.Helper()
		ttl := s.ttl()
		const rounding = 2 * time.Millisecond
		if now := time.Now(); now.Add(ttl + rounding).Before(before) {
			s.T.Errorf("%s: the TTL is %v, want at least %v", when, ttl, before.Sub(now))
		}
	}
}

const (
	// generous is how long a test waits for what must happen soon.
	generous = 20 * time.Second
	// soon is what a busy machine may make of a moment or of the two or three
	// seconds between two looks. Nothing that happens this soon has waited for a
	// lease of 30 s or for its renewal after 10. How soon exactly is tested in
	// fake time.
	soon = 6 * time.Second
)

// await receives from c, or fails the test.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(generous):
		t.Fatalf("%s did not come within %v", what, generous)
		panic("unreachable")
	}
}

// within waits until ok returns true, for at most d.
func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// shas are the scripts of the lock by the SHA-1 that requests name them with.
var shas = func() map[string]string {
	files, _ := filepath.Glob("*.lua")
	m := make(map[string]string)
	for _, f := range files {
		name := strings.TrimSuffix(f, ".lua")
		m[name] = script.Load(os.DirFS("."), name).SHA()
	}
	return m
}()

func sourceOf(name string) string { return script.Load(os.DirFS("."), name).Source() }

// isScript says whether r runs the script with that name on that lock.
func isScript(r faultnet.Request, name, lock string) bool {
	return shas[name] != "" && r.Script() == shas[name] && slices.Contains(r.Args, lock)
}
