package drivertest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/script"
)

// A Config says what is tested.
type Config struct {
	// New returns a driver for the server at addr, a TCP "host:port". It must
	// see to its end with t.Cleanup. Its time-outs should be short, a second or
	// less, as the tests wait for them; for the embedded server it must speak
	// to a single server. Required.
	New func(t *testing.T, addr string) redlatch.Redis

	// Dial connects to the server, which must be a single one, Redis 6.2 or
	// later or compatible, and nobody else's. If Dial is nil, every test gets
	// an embedded one.
	Dial func(ctx context.Context) (net.Conn, error)

	// Admin is whom the tests are for the server themselves, if drivers may not do
	// everything there.
	Admin Admin

	// Restart stops the server, without saving anything, and starts it again
	// at the same address. If it is nil, what happens then is not tested.
	Restart func()

	// Sharded says that the server knows sharded Pub/Sub: Redis and Valkey
	// since 7.0.
	Sharded bool

	// Replicas are those that the server has from the beginning. If there are none,
	// what a [redlatch.Acker] learns of them is not tested.
	Replicas []Replica
}

// A Replica can be made to stand still, with its connection open, and to go on.
type Replica interface {
	Pause()
	Resume()
}

// An Admin is a user of a server who may do everything. The zero Admin does not
// log in.
type Admin struct{ User, Password string }

// Run runs all tests, one after the other, as subtests of t.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.New == nil {
		t.Fatal("drivertest: Config.New is missing")
	}
	for _, test := range []test{
		{"Traits", testTraits},
		{"Lane", testLane},
		{"Replies", testReplies},
		{"Arguments", testArguments},
		{"UnknownScript", testUnknownScript},
		{"Concurrent", testConcurrent},
		{"Refused", testRefused},
		{"ErrorCodes", testErrorCodes},
		{"NothingListens", testNothingListens},
		{"SilentFromTheStart", testSilentFromTheStart},
		{"ReplyLost", testReplyLost},
		{"ReplyStalled", testReplyStalled},
		{"RequestLate", testRequestLate},
		{"FallbackReplyLost", testFallbackReplyLost},
		{"BrokenUnderLoad", testBrokenUnderLoad},
		{"Subscription", testSubscription},
		{"SubscribeWithoutServer", testSubscribeWithoutServer},
		{"SeveralSubscribers", testSeveralSubscribers},
		{"ManyChannels", testManyChannels},
		{"SubscribeAgainAndAgain", testSubscribeAgainAndAgain},
		{"StopInHandler", testStopInHandler},
		{"SubscriptionSurvivesBreak", testSubscriptionSurvivesBreak},
		{"SubscriptionSurvivesSilence", testSubscriptionSurvivesSilence},
		{"ShardedSubscription", testShardedSubscription},
		{"BreakIsReported", testBreakIsReported},
		{"Scan", testScan},
		{"Restart", testRestart},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(newEnv(t, cfg)) })
	}
	t.Run("Batch", func(t *testing.T) {
		for _, test := range batchTests {
			t.Run(test.name, func(t *testing.T) {
				e := newEnv(t, cfg)
				if _, ok := e.r.(redlatch.Batcher); ok {
					test.run(e)
				}
			})
		}
	})
	t.Run("Acked", func(t *testing.T) {
		for _, test := range ackedTests {
			t.Run(test.name, func(t *testing.T) {
				e := newEnv(t, cfg)
				if _, ok := e.r.(redlatch.Acker); ok {
					test.run(e)
				}
			})
		}
	})
}

type test struct {
	name string
	run  func(*env)
}

// patience is how long the tests wait for what must happen. It only decides how
// long a failing test takes.
const patience = 30 * time.Second

// An env is what one test works with.
type env struct {
	*testing.T

	cfg    Config
	dial   func(context.Context) (net.Conn, error) // to the server itself
	proxy  *faultnet.Proxy
	addr   string // of the proxy
	r      redlatch.Redis
	server *client // past the proxy
	prefix string  // of this test's keys
}

var tests atomic.Int64

func newEnv(t *testing.T, cfg Config) *env {
	t.Helper()
	e := bareEnv(t)
	e.cfg, e.dial = cfg, cfg.Dial
	if e.dial == nil {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		t.Cleanup(mini.Close)
		e.dial = func(context.Context) (net.Conn, error) { return mini.Dial() }
	}
	e.server = newClient(t, e.dial, cfg.Admin)
	e.server.do("FLUSHALL")
	e.proxy = faultnet.New(e.dial)
	t.Cleanup(e.proxy.Close)
	var err error
	if e.addr, err = e.proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	e.r = cfg.New(t, e.addr)
	return e
}

// bareEnv is an env without a proxy and a driver, which looks for leaked
// goroutines at the end, but not for those of some functions.
func bareEnv(t *testing.T, leaves ...string) *env {
	t.Helper()
	// Config.Restart may leave a goroutine that waits for the server's process.
	ignore := []goleak.Option{goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait")}
	for _, f := range leaves {
		ignore = append(ignore, goleak.IgnoreAnyFunction(f))
	}
	t.Cleanup(func() {
		if !t.Failed() {
			goleak.VerifyNone(t, ignore...)
		}
	})
	return &env{T: t, prefix: fmt.Sprintf("drivertest:%d:", tests.Add(1))}
}

// script makes a script of this test alone.
func (e *env) script(source string) *redlatch.Script {
	e.Helper()
	s, err := script.New(e.Name(), "-- A test of a driver: "+e.prefix+"\n-- returns what the test wants\n"+source)
	if err != nil {
		e.Fatal(err)
	}
	return s
}

// counter returns a script that counts how often it was executed, and the key.
func (e *env) counter() (s *redlatch.Script, key string) {
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

// run runs a script that must succeed.
func (e *env) run(s *redlatch.Script, keys, args []string) redlatch.Reply {
	e.Helper()
	reply, err := e.r.Run(context.Background(), s, keys, args)
	if err != nil {
		e.Fatalf("Run: %v", err)
	}
	return reply
}

// recovers runs a script until it succeeds: the connection may have to be made
// anew.
func (e *env) recovers(s *redlatch.Script) {
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

// settle waits until what f returns stays as it is: what was under way when a
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
func is(s *redlatch.Script) func(faultnet.Request) bool {
	return func(r faultnet.Request) bool { return r.Script() == s.SHA() }
}

// sent counts the requests that ran s, as EVALSHA or EVAL, since the proxy
// records.
func (e *env) sent(s *redlatch.Script) (evalsha, eval int) {
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
