package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

var bg = context.Background()

// No test judges by the time that something takes. Who had to wait for a lease, or
// for its renewal after a third of it, would wait for longer than
// locktest.Generous.
const (
	lease    = 10 * time.Minute // of every hold whose story does not need a shorter one
	patience = time.Second      // of a driver that waits for an answer
)

// A place is an adapter and a kind of server.
type place struct {
	adapter drivers.Adapter
	kind    testserver.Kind
}

func (p place) String() string { return p.adapter.Name + "/" + string(p.kind) }

// places are where stories are told: each adapter on each kind of server, for make
// proof. Else each adapter is on one kind and each kind has one adapter, by
// chance, and the run says which.
var places = sync.OnceValue(func() (chosen []place) {
	kinds := testserver.Kinds()
	if os.Getenv("REDLATCH_PROOF") != "" {
		for _, a := range drivers.Adapters {
			for _, k := range kinds {
				chosen = append(chosen, place{a, k})
			}
		}
		return chosen
	}
	seed, err := randtest.Seed()
	if err != nil {
		panic(err)
	}
	var names []string
	for i, nth := range rand.New(rand.NewPCG(seed, 0)).Perm(len(drivers.Adapters)) { //nolint:gosec // chance
		p := place{drivers.Adapters[i], kinds[nth%len(kinds)]}
		chosen = append(chosen, p)
		names = append(names, p.String())
	}
	fmt.Printf("\nCHOSEN: the faults are tested with %s; %s=%d chooses these again, REDLATCH_PROOF=yes all\n", strings.Join(names, ", "), randtest.SeedEnv, seed)
	return chosen
})

// connect returns a driver that ends with the test.
func (p place) connect(tb testing.TB, addr string, patience time.Duration) driver.Redis {
	tb.Helper()
	where := drivers.Single(addr)
	where.Timeout = patience
	return p.adapter.Open(tb, where)
}

// A telling is a story and its name.
type telling struct {
	name string
	tell func(s *story)
}

// together tells stories at every place, those of one place side by side on one
// server.
func together(t *testing.T, stories ...telling) {
	t.Helper()
	everywhere(t, stories, func(t *testing.T, p place) func(t *testing.T) *story {
		t.Helper()
		return newArena(t, p).story
	})
}

// lingering is together for stories whose requests may arrive when they are over.
func lingering(t *testing.T, stories ...telling) {
	t.Helper()
	everywhere(t, stories, func(t *testing.T, p place) func(t *testing.T) *story {
		t.Helper()
		ar := newArena(t, p)
		return func(t *testing.T) *story { t.Helper(); return ar.storyUntil(t, ar.T) }
	})
}

// apart tells each story on a server of its own.
func apart(t *testing.T, stories ...telling) {
	t.Helper()
	everywhere(t, stories, func(_ *testing.T, p place) func(t *testing.T) *story {
		return func(t *testing.T) *story { t.Helper(); return newArena(t, p).story(t) }
	})
}

// everywhere tells stories in every place; at says how they begin there.
func everywhere(t *testing.T, stories []telling, at func(t *testing.T, p place) (begin func(t *testing.T) *story)) {
	t.Helper()
	t.Parallel()
	for _, p := range places() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			begin := at(t, p)
			for _, x := range stories {
				t.Run(x.name, func(t *testing.T) {
					t.Parallel()
					x.tell(begin(t))
				})
			}
		})
	}
}

// An arena is a real server on which stories are told. When they are over nothing
// may be left there.
type arena struct {
	*testing.T
	place   place
	server  *testserver.Server
	direct  driver.Redis     // past all proxies
	other   *redlatch.Client // another process, so to speak
	wrecked bool             // by its story: there is nothing to be looked for
}

func newArena(t *testing.T, p place) *arena {
	t.Helper()
	ar := &arena{T: t, place: p, server: testserver.Start(t, p.kind)}
	for _, x := range scripts {
		ar.server.MustDo("SCRIPT", "LOAD", x.Source())
	}
	ar.direct = p.connect(t, ar.server.Addr(), patience)
	ar.other = newClient(t, ar.direct, redlatch.Config{})
	t.Cleanup(func() { ar.wantNothingLeft("", ar.other) })
	return ar
}

func newClient(t *testing.T, r driver.Redis, cfg redlatch.Config) *redlatch.Client {
	t.Helper()
	cfg.WatchdogTimeout = cmp.Or(cfg.WatchdogTimeout, lease)
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, locktest.Generous)
	cfg.OutageTimeout = cmp.Or(cfg.OutageTimeout, locktest.Generous)
	c, err := redlatch.New(r, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantNothingLeft waits until there are no keys with that name, closes the
// clients, and waits until they, and whoever was interested in that name,
// subscribe to nothing. Close waits for what the clients have in flight: whatever
// is written late has been written by then, and there must still be no key.
func (ar *arena) wantNothingLeft(name string, clients ...*redlatch.Client) {
	ar.Helper()
	var left, channels []string
	keys := func() []string {
		return slices.DeleteFunc(ar.list("KEYS", "*"+name+"*"), func(key string) bool {
			return strings.HasPrefix(key, wire.Client+":") || // who a client is, or was
				name != "" && strings.HasPrefix(key, wire.RWWriters) // a wish of the past, for seconds
		})
	}
	if !ar.Failed() && !ar.wrecked && !locktest.Within(locktest.Generous, func() bool {
		left = keys()
		return len(left) == 0
	}) {
		ar.Errorf("left are the keys %q", left)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil && !ar.wrecked {
			ar.Error(err)
		}
	}
	if !ar.Failed() && !ar.wrecked {
		// A request that the proxy delays is executed also when its client has given it up
		// and is closed. What it writes lasts for its lease then, of milliseconds where a
		// story delays so. Anything longer is still found: after Close nobody is left who
		// could take it away.
		if !locktest.Within(time.Second, func() bool { left = keys(); return len(left) == 0 }) {
			ar.Errorf("after Close there are the keys %q, which were written late", left)
		}
	}
	if !ar.Failed() && !ar.wrecked && !locktest.Within(locktest.Generous, func() bool {
		channels = ar.list("PUBSUB", "CHANNELS", "*"+name+"*")
		for _, c := range clients {
			channels = append(channels, ar.list("PUBSUB", "CHANNELS", control(c))...)
		}
		return len(channels) == 0
	}) {
		ar.Errorf("after Close there are subscriptions: %q", channels)
	}
}

// control is the channel of a client by which others talk to it.
func control(c *redlatch.Client) string { return "redlatch_control:" + c.ID() }

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

// A story is about one lock and a client behind a proxy.
type story struct {
	*testing.T
	*arena // shadowed where both have a method

	lock string
	sides
	c       *redlatch.Client
	driver  driver.Redis   // c's
	asked   *patientDriver // the same
	proxy   *faultnet.Proxy
	addr    string // the proxy's
	clients []*redlatch.Client
	waiting chan struct{} // delivers when somebody has lined up behind a hold
	crowd   sync.WaitGroup
}

// story begins a story with a lock, a proxy and a client of its own.
func (ar *arena) story(t *testing.T) *story {
	t.Helper()
	return ar.storyUntil(t, t)
}

// storyUntil is story, but its proxy and its clients live until the end of another
// test.
func (ar *arena) storyUntil(t, end *testing.T) *story {
	t.Helper()
	s := &story{T: t, arena: ar, lock: strings.ReplaceAll(t.Name(), "/", ":") + ".", waiting: make(chan struct{}, 100)}
	s.proxy = faultnet.New(ar.server.Dial)
	end.Cleanup(s.proxy.Close)
	var err error
	if s.addr, err = s.proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	s.driver, s.asked = listenTo(ar.place.connect(end, s.addr, patience))
	end.Cleanup(func() {
		at := *ar
		at.T = end
		at.wantNothingLeft(s.lock, s.clients...)
	})
	s.c = s.client(s.driver, redlatch.Config{SlowWait: time.Millisecond})
	observe.Add(s.c, observe.Hooks{SlowWait: s.slowWait})
	return s
}

// client returns a client that lives as long as the story.
func (s *story) client(r driver.Redis, cfg redlatch.Config) *redlatch.Client {
	s.T.Helper()
	c := newClient(s.T, r, cfg)
	s.clients = append(s.clients, c)
	return c
}

func (s *story) slowWait(observe.SlowWaitEvent) {
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

func (s *story) acquire(ctx context.Context, opts ...redlatch.PlainOption) *redlatch.Hold {
	s.T.Helper()
	return s.acquireBy(s.c, ctx, opts...)
}

func (s *story) acquireBy(c *redlatch.Client, ctx context.Context, opts ...redlatch.PlainOption) *redlatch.Hold {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(ctx, locktest.Generous)
	defer cancel()
	h, err := locktest.With(s.of(c), opts...).Acquire(ctx)
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
func (s *story) lineUp(opts ...redlatch.PlainOption) <-chan locktest.Outcome {
	s.T.Helper()
	got := locktest.Acquiring(locktest.With(s.of(s.c), opts...))
	await(s.T, "a waiter in line", s.waiting)
	return got
}

func (s *story) got(c <-chan locktest.Outcome) *redlatch.Hold {
	s.T.Helper()
	o := await(s.T, "an acquisition", c)
	if o.Err != nil {
		s.T.Fatalf("Acquire: %v", o.Err)
	}
	return s.track(o.Hold)
}

// wantHeld checks that the story's lock is h's and nobody else's, entered count
// times, for as long as h is trusted, and that another client is refused.
func (s *story) wantHeld(when string, h *redlatch.Hold, count int) {
	s.T.Helper()
	s.wantShown(when, h, count)
	_, err := s.tryAsRival()
	var busy *redlatch.BusyError
	if !errors.As(err, &busy) || busy.Owner != h.ID() {
		s.T.Errorf("%s: another client's Try: %v, want busy with %s", when, err, h.ID())
	}
}

// wantShown is wantHeld without asking another client.
func (s *story) wantShown(when string, h *redlatch.Hold, count int) {
	s.T.Helper()
	if err := h.Err(); err != nil {
		s.T.Fatalf("%s: the hold is over: %v", when, err)
	}
	if s.isReadWrite() {
		s.wantSides(when, h)
		return
	}
	want := []string{h.ID(), strconv.Itoa(count)}
	var fields []string
	shown := s.inTheEnd(func() bool {
		fields = s.list("HGETALL", s.lock)
		return slices.Equal(fields, want)
	})
	trusted := h.Expires()
	ttl := s.ttl()
	if now := time.Now(); now.Add(ttl).Before(trusted) {
		s.T.Errorf("%s: Redis keeps the lock for another %v, its holder trusts it for %v", when, ttl, trusted.Sub(now))
	}
	if !shown {
		s.T.Errorf("%s: Redis shows %q, want %q", when, fields, want)
	}
}

// inTheEnd waits until Redis shows what it should. A request that comes late may
// show another hold count until the next renewal: a break is followed by one.
func (s *story) inTheEnd(ok func() bool) bool {
	if locktest.Within(time.Second, ok) {
		return true
	}
	s.proxy.BreakAll()
	return locktest.Within(locktest.Generous/10, ok)
}

// tryAsRival tries as another client, when it leaves the lock to nobody any more.
func (s *story) tryAsRival() (h *redlatch.Hold, err error) {
	locktest.Within(locktest.Generous, func() bool {
		h, err = s.rival().TryAcquire(bg, 0)
		var busy *redlatch.BusyError
		return !errors.As(err, &busy) || busy.Owed == 0
	})
	return h, err
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
	h, err := s.tryAsRival()
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

// await receives from c, or fails the test.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(locktest.Generous):
		t.Fatalf("%s did not come within %v", what, locktest.Generous)
		panic("unreachable")
	}
}

// awaitCrowd waits until everybody in the crowd is done.
func (s *story) awaitCrowd() {
	s.T.Helper()
	await(s.T, "the end of the crowd", locktest.Later(func() struct{} { s.crowd.Wait(); return struct{}{} }))
}

// scripts are those of the library by their name.
var scripts = func() map[string]*script.Script {
	top := os.DirFS("../../internal/lua")
	files, _ := fs.Glob(top, "*.lua")
	if len(files) == 0 {
		panic("faults: no scripts in internal/lua")
	}
	m := make(map[string]*script.Script)
	for _, f := range files {
		name := strings.TrimSuffix(f, ".lua")
		m[name] = script.Load(top, name)
	}
	return m
}()

// isScript says whether r runs the script with that name on that lock.
func isScript(r faultnet.Request, name, lock string) bool {
	x := scripts[name]
	return x != nil && r.Script() == x.SHA() && slices.Contains(r.Args, lock)
}
