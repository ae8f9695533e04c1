package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

const (
	// javaWatchdog and goWatchdog are the leases of holds without one: so long that
	// who renews them each third may be kept from it for many seconds.
	javaWatchdog = 30 * time.Second
	goWatchdog   = 30 * time.Second
	// ownWatchdog is the lease of a Redisson client that stories wait for, as far as
	// they can do with less.
	ownWatchdog = 12 * time.Second
	// patience is the drivers' time-out. redlatch demands that with it a driver
	// notices a dead connection within a third of goWatchdog.
	patience = 5 * time.Second
	// javaPatience is Redisson's.
	javaPatience = 10 * time.Second
	// few connections are enough for a Redisson client of one story: there are
	// hundreds of stories, and Redisson begins with 24.
	few = 2
	// short is a lease that stories wait for, and do something before it ends.
	short = 12 * time.Second
	// long is a lease that no story waits for: what happens within generous was not
	// caused by its end.
	long = 20 * time.Minute
	// generous bounds what takes a few round trips, or little more than a lease that
	// is over: only who is stuck exceeds it, however busy the machine is.
	generous = time.Minute
	// quick is less than redlatch's poll of waiters (1.6 to 2.4 s), so that who gets
	// in this quickly was woken by a message. A busy machine may be slower; see tell.
	quick = time.Second
	// tellings is how often a story is told at most until all were quick in one.
	tellings = 20
	// storyLimit bounds a story.
	storyLimit = 5 * time.Minute
)

// A cast says who plays a story.
type cast struct {
	version string // of Redisson
	driver  string // of redlatch
	kind    string // of the lock
}

func (c cast) String() string { return c.version + "/" + c.driver + "/" + c.kind }

// each tells a story with every cast at the same time. Of the kinds of lock the
// story is told with kinds, or with all plain ones if none is given.
func each(t *testing.T, story func(t *testing.T, w *world), kinds ...string) {
	t.Helper()
	if len(kinds) == 0 {
		kinds = plain
	}
	needsServers(t)
	t.Parallel()
	for _, version := range versions {
		for driver := range adapters {
			for _, kind := range kinds {
				c := cast{version, driver, kind}
				if !c.tells() {
					continue
				}
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					tell(t, func(t *testing.T) *world { return newWorld(t, c, testserver.Redis) }, story)
				})
			}
		}
	}
}

// tell tells a story, and again as long as there is a wake of a redlatch waiter
// that was quick in none of the tellings: then it may have been a poll and no
// message.
func tell(t *testing.T, open func(t *testing.T) *world, story func(t *testing.T, w *world)) {
	t.Helper()
	var late map[int]string
	for n := range tellings {
		once := func(t *testing.T) {
			w := open(t)
			story(t, w)
			if n == 0 {
				late = w.late
			}
			maps.DeleteFunc(late, func(wake int, _ string) bool { return w.late[wake] == "" })
		}
		if n == 0 {
			once(t)
		} else {
			t.Run("again", once)
		}
		if t.Failed() || len(late) == 0 {
			return
		}
	}
	for _, what := range late {
		t.Errorf("in none of %d tellings it was quick, and so by the message: %s", tellings, what)
	}
}

func needsServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server and a JVM")
	}
}

// A world is what one story plays in: a server, a Go client and a Java client.
type world struct {
	cast
	t        *testing.T
	ctx      context.Context    // bounds every call
	server   *testserver.Server // the one that has what the story is about
	at       place
	name     string // of the lock
	java     *peer.Client
	gone     *redlatch.Client // closed with the test
	watchdog time.Duration    // of java; 0 is javaWatchdog
	stage    *stage           // nil if there is but the one server
	wakes    int              // of redlatch waiters, so far
	late     map[int]string   // those of them that may have been by a poll, and what they were
}

func newWorld(t *testing.T, c cast, k testserver.Kind) *world {
	t.Helper()
	server := testserver.Start(t, k, testserver.Open...) // Redisson's user may do more than ours
	return (&world{cast: c, t: t, server: server, at: single(server.Addr()), name: "stories:" + c.kind}).begin(storyLimit)
}

// begin sets the story's limit, and what has to be true at its end.
func (w *world) begin(limit time.Duration) *world {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	w.ctx = ctx
	w.t.Cleanup(cancel)
	w.t.Cleanup(w.nothingStays)
	return w
}

// nothingStays checks at the end that whatever is left in Redis leaves by
// itself, but for the counters of tokens.
func (w *world) nothingStays() {
	for _, s := range w.primaries() {
		keys, _ := s.MustDo("KEYS", "*").([]any)
		for _, key := range keys {
			if isTokens(key.(string)) {
				continue
			}
			if ttl, _ := s.MustDo("PTTL", key.(string)).(int64); ttl == -1 {
				w.t.Errorf("key %q stays forever", key)
			}
		}
		if w.t.Failed() {
			s.MustDo("FLUSHALL") // others may play here
		}
	}
}

// goClient returns the story's redlatch client.
func (w *world) goClient() *redlatch.Client {
	w.t.Helper()
	if w.gone == nil {
		w.gone = w.anotherGo()
	}
	return w.gone
}

// anotherGo returns a client as another process has it.
func (w *world) anotherGo() *redlatch.Client {
	w.t.Helper()
	cfg := redlatch.Config{WatchdogTimeout: goWatchdog, CloseTimeout: generous}
	if w.stage != nil {
		cfg.Redisson.PubSub = w.stage.goes
		cfg.AckTimeout = patience / 2
	}
	return newGoClient(w.t, w.driver, w.at, cfg)
}

func newGoClient(t *testing.T, driver string, at place, cfg redlatch.Config) *redlatch.Client {
	t.Helper()
	c, closeClient, err := openGoClient(driver, at, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeClient(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

func openGoClient(driver string, at place, cfg redlatch.Config) (*redlatch.Client, func() error, error) {
	open, ok := adapters[driver]
	if !ok {
		return nil, nil, fmt.Errorf("no driver %q", driver)
	}
	redis, closeDriver, err := open(at)
	if err != nil {
		return nil, nil, err
	}
	c, err := redlatch.New(redis, cfg)
	if err != nil {
		closeDriver()
		return nil, nil, err
	}
	return c, func() error { defer closeDriver(); return c.Close() }, nil
}

// goLock returns the story's lock in Go.
func (w *world) goLock() *redlatch.Lock {
	w.t.Helper()
	return goLock(w.goClient(), w.kind, w.name)
}

// goHolds acquires the lock in Go, which must be possible at once.
func (w *world) goHolds(opts ...redlatch.PlainOption) *redlatch.Hold {
	w.t.Helper()
	h, err := locktest.With(w.goLock(), opts...).TryAcquire(w.ctx, generous)
	if err != nil {
		w.t.Fatalf("Go: acquire: %v", err)
	}
	return h
}

func (w *world) release(h *redlatch.Hold) {
	w.t.Helper()
	if err := h.Release(w.ctx); err != nil {
		w.t.Fatalf("Go: release: %v", err)
	}
}

// javaClient returns the story's Redisson client, in the process that stories
// share.
func (w *world) javaClient() *peer.Client {
	w.t.Helper()
	if w.java == nil {
		p, err := sharedPeer(w.version)
		if err != nil {
			w.t.Fatal(err)
		}
		w.java = w.openJava(p, w.at.addrs[0])
		w.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), storyLimit)
			defer cancel()
			if err := w.java.Close(ctx); err != nil {
				w.t.Errorf("Java: closing the client: %v", err)
			}
		})
	}
	return w.java
}

func (w *world) openJava(p *peer.Peer, addr string) *peer.Client {
	w.t.Helper()
	o := peer.Options{Addr: addr}
	if w.stage != nil {
		o = w.stage.redisson
	}
	o.Watchdog = cmp.Or(w.watchdog, javaWatchdog)
	return w.openJavaWith(p, o)
}

// javaWatched gives the story's Redisson client, which is not open yet, a
// lockWatchdogTimeout.
func (w *world) javaWatched(d time.Duration) { w.watchdog = d }

func (w *world) openJavaWith(p *peer.Peer, o peer.Options) *peer.Client {
	w.t.Helper()
	o.Idle, o.Timeout = few, javaPatience
	c, err := p.Open(w.ctx, o)
	if err != nil {
		w.t.Fatalf("Java: open: %v", err)
	}
	return c
}

// ownJava gives the story a Java process of its own.
func (w *world) ownJava() *peer.Peer {
	w.t.Helper()
	return w.ownJavaWith(peer.Options{Addr: w.server.Addr(), Watchdog: ownWatchdog})
}

func (w *world) ownJavaWith(o peer.Options) *peer.Peer {
	w.t.Helper()
	p, err := peer.Start(w.version, os.Stderr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Close)
	w.java = w.openJavaWith(p, o)
	return p
}

// javaLock returns the story's lock as a Java thread sees it.
func (w *world) javaLock(thread string) javaLock {
	w.t.Helper()
	return javaLock{w.javaClient().Thread(thread).Lock(w.kind, w.name), w}
}

// javaOwner returns the owner field of a Java thread.
func (w *world) javaOwner(thread string) string {
	w.t.Helper()
	owner, err := w.javaClient().Thread(thread).Owner(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return owner
}

// javaLock adds to a lock in Java that what must work works.
type javaLock struct {
	peer.Lock
	w *world
}

// take acquires the lock, which must be possible at once. With a lease of 0 the
// watchdog keeps it.
func (l javaLock) take(lease time.Duration) {
	l.w.t.Helper()
	if !l.try(generous, lease) {
		l.w.t.Fatalf("Java: the lock is not free: %v", l.w.fields())
	}
}

func (l javaLock) try(wait, lease time.Duration) bool {
	l.w.t.Helper()
	ok, err := l.TryLock(l.w.ctx, wait, lease)
	if err != nil {
		l.w.t.Fatalf("Java: tryLock: %v", err)
	}
	return ok
}

func (l javaLock) unlock() {
	l.w.t.Helper()
	if err := l.Unlock(l.w.ctx); err != nil {
		l.w.t.Fatalf("Java: unlock: %v", err)
	}
}

// refusesUnlock checks that Redisson tells the thread that it is not the owner.
func (l javaLock) refusesUnlock() {
	l.w.t.Helper()
	var e *peer.Error
	err := l.Unlock(l.w.ctx)
	if !errors.As(err, &e) || e.Name != "IllegalMonitorStateException" {
		l.w.t.Errorf("Java: unlock of what the thread does not hold: %v, want an IllegalMonitorStateException", err)
	}
}

// fields returns the hash in Redis; empty if there is none.
func (w *world) fields() map[string]string {
	w.t.Helper()
	return pairs(w.server.MustDo("HGETALL", w.name))
}

func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].(string)] = list[i+1].(string)
	}
	return m
}

// holds checks that owner and nobody else has the lock, count times.
func (w *world) holds(owner, count string) {
	w.t.Helper()
	if got, want := w.fields(), w.hash(owner, count); !maps.Equal(got, want) {
		w.t.Errorf("Redis has %v, want %v", got, want)
	}
}

// free checks that nobody has the lock.
func (w *world) free() {
	w.t.Helper()
	if n := w.server.MustDo("EXISTS", w.name); n != int64(0) {
		w.t.Errorf("Redis still has %v", w.fields())
	}
}

// ttl returns what PTTL says.
func (w *world) ttl() time.Duration {
	w.t.Helper()
	ms, _ := w.server.MustDo("PTTL", w.name).(int64)
	return time.Duration(ms) * time.Millisecond
}

// eventually waits until cond holds.
func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	for !cond() {
		select {
		case <-w.ctx.Done():
			w.t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// asleep waits until n clients wait for the lock: they have subscribed, and
// nobody has asked anything for a while, so that the next thing which can wake
// them is a message or the end of the TTL that they have read.
func (w *world) asleep(n int64) {
	w.t.Helper()
	if w.kind == peer.Spin { // they never sleep for long
		w.tries(3 * n)
		return
	}
	w.eventually(fmt.Sprintf("%d who listen", n), func() bool { return w.listeners() >= n })
	w.atRest(100 * time.Millisecond)
}

// tries waits until scripts have been called n times.
func (w *world) tries(n int64) {
	w.t.Helper()
	for range n {
		before := w.scripts()
		w.eventually("a try", func() bool { return w.scripts() != before })
	}
}

// atRest waits until no script has been called for d.
func (w *world) atRest(d time.Duration) {
	w.t.Helper()
	last, since := w.scripts(), time.Now()
	w.eventually("a server at rest", func() bool {
		if now := w.scripts(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > d
	})
}

// scripts returns the server's counters of scripts.
func (w *world) scripts() string {
	w.t.Helper()
	info, _ := w.server.MustDo("INFO", "commandstats").(string)
	var calls strings.Builder
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "cmdstat_eval") {
			calls.WriteString(line)
		}
	}
	return calls.String()
}

// A waiting is a call that is under way.
type waiting struct {
	w    *world
	what string
	from time.Time
	done chan struct{}

	mu    sync.Mutex
	err   error
	ended time.Time
}

// start calls f in the background.
func (w *world) start(what string, f func() error) *waiting {
	c := &waiting{w: w, what: what, from: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		err := f()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err, c.ended = err, time.Now()
	}()
	return c
}

// open checks that the call has not returned.
func (c *waiting) open() {
	c.w.t.Helper()
	select {
	case <-c.done:
		c.w.t.Fatalf("%s returned after %v (%v), but should still wait", c.what, c.ended.Sub(c.from), c.err)
	default:
	}
}

// returns waits until the call has succeeded and says when that was.
func (c *waiting) returns() time.Time {
	c.w.t.Helper()
	select {
	case <-c.done:
	case <-c.w.ctx.Done():
		c.w.t.Fatalf("%s did not return", c.what)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		c.w.t.Fatalf("%s: %v", c.what, c.err)
	}
	return c.ended
}

// javaWaits lets a Java thread wait for the lock, until it sleeps.
func (w *world) javaWaits(l javaLock) *waiting {
	w.t.Helper()
	c := w.start("Java: lock", func() error { return l.Lock.Lock(w.ctx, 0) })
	w.asleep(1)
	c.open()
	return c
}

// A goWaiting is an Acquire that is under way.
type goWaiting struct {
	*waiting
	hold *redlatch.Hold
}

// goWaits lets a goroutine wait for the lock, until it sleeps.
func (w *world) goWaits(opts ...redlatch.PlainOption) *goWaiting {
	w.t.Helper()
	g, lock := &goWaiting{}, w.goLock()
	g.waiting = w.start("Go: acquire", func() (err error) {
		g.hold, err = locktest.With(lock, opts...).Acquire(w.ctx)
		return err
	})
	w.asleep(1)
	g.open()
	return g
}

// inSoon checks that these calls, which have just been told to go on, do so by the
// message. Java's would go on at the end of a long lease, or never; redlatch's at
// the next poll.
func (w *world) inSoon(all ...*waiting) {
	w.t.Helper()
	w.inSoonFrom(time.Now(), all...)
}

func (w *world) inSoonFrom(from time.Time, all ...*waiting) {
	w.t.Helper()
	for _, c := range all {
		took := c.returns().Sub(from)
		if took > generous {
			w.t.Errorf("%s returned only after %v: not by the message", c.what, took)
		}
		if strings.HasPrefix(c.what, "Go") {
			w.wake(c.what, took)
		}
	}
}

// wake notes how long it took to wake a redlatch waiter.
func (w *world) wake(what string, took time.Duration) {
	w.wakes++
	if took > quick {
		if w.late == nil {
			w.late = map[int]string{}
		}
		w.late[w.wakes] = fmt.Sprintf("wake %d, %s, %v", w.wakes, what, took)
	}
}
