package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// A Config says what is tested.
type Config struct {
	// New returns a driver for the server at addr, a TCP "host:port". It must
	// close the driver with t.Cleanup. For the embedded server the driver must be
	// one for a single server. Required.
	//
	// The driver's own time-outs, for connecting and for a reply, should be about
	// timeout. That is a few seconds for a test that waits for them, and a long
	// time for a test in which they must not matter, however busy the machine is.
	New func(t *testing.T, addr string, timeout time.Duration) driver.Redis

	// Stays says that the driver works through connections that it has not made: when
	// the name of its server is given to another one, it stays with the first.
	Stays bool

	// Server returns a server that nobody else uses, and ends it with t.Cleanup.
	// Each test calls it. If it is nil, every test gets an embedded server.
	Server func(t *testing.T) Server
}

// A Server is one that a test has for itself. It is a single server, Redis 6.2 or
// later, or a compatible one. (The tests empty it first, so with
// go test -parallel 1 all tests may use the same server.)
type Server struct {
	// Dial connects to the server. Required.
	Dial func(ctx context.Context) (net.Conn, error)

	// Admin is the user as which the tests themselves log in, if drivers may not
	// do everything there.
	Admin Admin

	// Restart stops the server, without saving anything, and starts it again at
	// the same address. If it is nil, restarts are not tested.
	Restart func()

	// Sharded says that the server knows sharded Pub/Sub: Redis and Valkey
	// since 7.0.
	Sharded bool

	// Replicas starts some replicas of the server and returns them. It is called
	// once, by tests that need replicas. If it is nil, what a [driver.Acker]
	// learns of replicas is not tested.
	Replicas func() []Replica
}

// A Replica can be made to stand still, with its connection open, and to go on.
type Replica interface {
	Pause()
	Resume()
}

// An Admin is a user of a server that may do everything. The zero Admin does
// not log in.
type Admin struct{ User, Password string }

// Run runs all tests as subtests of t, side by side. They wait more than they
// work, so go test -parallel 8 or more makes them quicker.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.New == nil {
		t.Fatal("drivertest: Config.New is missing")
	}
	l := watchLeaks(t)
	t.Run("Batch", func(t *testing.T) {
		t.Parallel()
		if isA[driver.Batcher](t, cfg, l) {
			runAll(t, cfg, l, batchTests)
		}
	})
	t.Run("Acked", func(t *testing.T) {
		t.Parallel()
		if isA[driver.Acker](t, cfg, l) {
			runAll(t, cfg, l, ackedTests)
		}
	})
	runAll(t, cfg, l, []test{
		{"Traits", testTraits, short},
		{"Node", testNode, long},
		{"Replies", testReplies, long},
		{"Arguments", testArguments, long},
		{"UnknownScript", testUnknownScript, long},
		{"Concurrent", testConcurrent, long},
		{"Refused", testRefused, long},
		{"ErrorCodes", testErrorCodes, long},
		{"NothingListens", testNothingListens, short},
		{"SilentFromTheStart", testSilentFromTheStart, short},
		{"ReplyLost", testReplyLost(plainly), long},
		{"ReplyStalled", testReplyStalled, short},
		{"Interrupted", testInterrupted, long},
		{"FirstInterrupted", testFirstInterrupted, long},
		{"RequestLate", testRequestLate, long},
		{"FallbackReplyLost", testFallbackReplyLost(plainly), long},
		{"BrokenUnderLoad", testBrokenUnderLoad, long},
		{"Subscription", testSubscription, long},
		{"SubscribeWithoutServer", testSubscribeWithoutServer, long},
		{"SeveralSubscribers", testSeveralSubscribers, long},
		{"ManyChannels", testManyChannels, long},
		{"SubscribeAgainAndAgain", testSubscribeAgainAndAgain, long},
		{"SubscriptionRefused", testSubscriptionRefused, long},
		{"StopInHandler", testStopInHandler, long},
		{"SubscriptionSurvivesBreak", testSubscriptionSurvivesBreak, long},
		{"SubscriptionSurvivesSilence", testSubscriptionSurvivesSilence, short},
		{"ShardedSubscription", testShardedSubscription, long},
		{"BreakIsReported", testBreakIsReported, long},
		{"Scan", testScan, long},
		{"Restart", testRestart, long},
		{"NameMoves", testNameMoves(plainly), long},
	})
}

func runAll(t *testing.T, cfg Config, l *leaks, tests []test) {
	t.Helper()
	// Those that wait longest begin first.
	tests = slices.SortedStableFunc(slices.Values(tests), func(a, b test) int { return cmp.Compare(a.timeout, b.timeout) })
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l.mark(t)
			test.run(newEnv(t, cfg, test.timeout))
		})
	}
}

// isA says whether the driver is a T.
func isA[T any](t *testing.T, cfg Config, l *leaks) (ok bool) {
	t.Helper()
	t.Run("Offered", func(t *testing.T) {
		l.mark(t)
		_, ok = newEnv(t, cfg, short).r.(T)
	})
	return ok
}

type test struct {
	name    string
	run     func(*env)
	timeout time.Duration // of the driver, long unless the test waits for it
}

const (
	// patience is how long the tests wait for what must happen. It only decides
	// how long a failing test takes.
	patience = time.Minute

	// These are the time-outs for which drivers are asked: short to run into it,
	// middling to wait for a part of it and yet be in time, and long for all else,
	// where only what is stuck takes that long.
	short    = 4 * time.Second
	middling = 9 * time.Second
	long     = time.Minute

	// slack is what may go by until a busy machine has noticed that a time is
	// over. It tells those who come late from those who never come, and is less
	// than long, so that it also tells who waits for a server from who does not.
	slack = 30 * time.Second
)

// An env is what one test works with.
type env struct {
	*testing.T

	cfg      Config
	at       Server
	replicas []Replica // once they are needed
	proxy    *faultnet.Proxy
	addr     string // of the proxy
	r        driver.Redis
	server   *client // past the proxy
	prefix   string  // of this test's keys
}

var tests atomic.Int64

func newEnv(t *testing.T, cfg Config, timeout time.Duration) *env {
	t.Helper()
	e := bareEnv(t)
	e.cfg = cfg
	if cfg.Server != nil {
		e.at = cfg.Server(t)
	} else {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		t.Cleanup(mini.Close)
		e.at.Dial = func(context.Context) (net.Conn, error) { return mini.Dial() }
	}
	e.server = newClient(t, e.at.Dial, e.at.Admin)
	e.server.do("FLUSHALL")
	e.proxy = faultnet.New(e.at.Dial)
	t.Cleanup(e.proxy.Close)
	var err error
	if e.addr, err = e.proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	e.r = e.open(e.addr, timeout)
	return e
}

// open makes a driver for a server at addr.
func (e *env) open(addr string, timeout time.Duration) driver.Redis {
	e.Helper()
	return e.cfg.New(e.T, addr, timeout)
}

// bareEnv is an env without a server, a proxy and a driver.
func bareEnv(t *testing.T) *env {
	return &env{T: t, prefix: fmt.Sprintf("drivertest:%d:", tests.Add(1))}
}

// inTime fails the test if what began at start, and may take limit, has taken
// more than that.
func (e *env) inTime(what string, start time.Time, limit time.Duration) {
	e.Helper()
	if d := time.Since(start); d > limit+slack {
		e.Errorf("%s took %v, which is more than %v", what, d, limit)
	}
}

// script makes a script of this test alone.
func (e *env) script(source string) *driver.Script {
	return driver.NewScript(e.Name(), "-- "+e.prefix+"\n"+source)
}

// counter returns a script that counts how often it was executed, and the key.
func (e *env) counter() (s *driver.Script, key string) {
	e.Helper()
	return e.script("return redis.call('incr', KEYS[1])"), e.prefix + "counter"
}

// executed returns how often the counter script has been executed.
func (e *env) executed(key string) string {
	e.Helper()
	if n := e.server.do("GET", key); n != "" {
		return n
	}
	return "0"
}

// attempt runs a script, and again if the driver says, of itself, that it has not
// been executed: it may have less time to connect than a busy machine takes.
func (e *env) attempt(r driver.Redis, s *driver.Script, keys, args []string) (driver.Reply, error) {
	for end := time.Now().Add(patience); ; {
		reply, err := r.Run(context.Background(), s, keys, args)
		if !unsent(err) || time.Now().After(end) {
			return reply, err
		}
	}
}

// unsent says whether a script failed before the server had a word in it.
func unsent(err error) bool {
	var re *driver.RunError
	return errors.As(err, &re) && re.Outcome == driver.NotExecuted && re.Code == ""
}

// run runs a script that must succeed.
func (e *env) run(s *driver.Script, keys, args []string) driver.Reply {
	e.Helper()
	reply, err := e.attempt(e.r, s, keys, args)
	if err != nil {
		e.Fatalf("Run: %v", err)
	}
	return reply
}

// recovers runs a script until it succeeds: the connection may have to be made
// anew.
func (e *env) recovers(s *driver.Script) {
	e.Helper()
	e.eventually("a script succeeds again", func() bool {
		_, err := e.r.Run(context.Background(), s, nil, nil)
		return err == nil
	})
}

// eventually waits until f returns true.
func (e *env) eventually(what string, f func() bool) {
	e.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(end) {
			e.Fatalf("after %v still not true: %s", patience, what)
		}
	}
}

// settle waits until what f returns stays as it is: what was in flight when a
// connection broke may still be forwarded.
func (e *env) settle(f func() string) (settled string) {
	e.Helper()
	settled = "?"
	e.eventually("the server has executed what it has received", func() bool {
		was := settled
		settled = f()
		time.Sleep(20 * time.Millisecond)
		return settled == was
	})
	return settled
}

// is matches requests that run s.
func is(s *driver.Script) func(faultnet.Request) bool {
	return func(r faultnet.Request) bool { return r.Script() == s.SHA() }
}

// sent counts the requests that ran s, as EVALSHA or EVAL, since the proxy
// records.
func (e *env) sent(s *driver.Script) (evalsha, eval int) {
	for _, r := range e.proxy.Requests() {
		if r.Script() != s.SHA() {
			continue
		}
		if r.Args[0] == "EVAL" {
			eval++
		} else {
			evalsha++
		}
	}
	return evalsha, eval
}
