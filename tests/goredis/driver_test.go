package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis would print each attempt to connect that fails, and many are to
	leaktest.Main(m, redial)
}

func newScript(t *testing.T, source string) *driver.Script {
	return driver.NewScript(t.Name(), source)
}

// forgetTimers has go-redis forget the timers with which callers have waited for a
// connection. It shares them among all that wait, and a timer of a bubble may not
// be set from anywhere else.
func forgetTimers() {
	runtime.GC()
	runtime.GC() // until then a sync.Pool keeps what it has
}

// inBubble runs a test with a driver for an embedded server, behind a proxy, in
// fake time.
func inBubble(t *testing.T, opt redis.Options, f func(t *testing.T, p *faultnet.Proxy, r driver.Redis), opts ...redlatchgoredis.Option) {
	t.Helper()
	onClient(t, opt, func(*redis.Client) {}, f, opts...)
}

// onClient is inBubble for a program that does something to its client before Use.
func onClient(
	t *testing.T, opt redis.Options, before func(*redis.Client), f func(t *testing.T, p *faultnet.Proxy, r driver.Redis), opts ...redlatchgoredis.Option,
) {
	t.Helper()
	forgetTimers()
	defer forgetTimers()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // go-redis goes on connecting for a subscription that has ended
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		defer mini.Close()
		p := faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })
		defer p.Close()
		opt.Addr = "127.0.0.1:1" // a host name would be looked up outside the bubble
		if opt.Dialer == nil {
			opt.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }
		}
		rdb := redis.NewClient(&opt)
		defer rdb.Close()
		before(rdb)
		f(t, p, redlatchgoredis.Use(rdb, opts...))
	})
}

// fails runs a script that must fail in time, and returns how long it took.
func fails(t *testing.T, r driver.Redis, want driver.Outcome) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := r.Run(context.Background(), newScript(t, "return 1"), nil, nil) // as a worker calls it
	took := time.Since(start)
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome != want {
		t.Errorf("Run failed with %v, want %q", err, want)
	}
	if limit := r.Traits().Timeout; took > limit {
		t.Errorf("Run took %v, Traits.Timeout is %v", took, limit)
	}
	return took
}

func TestRunInTime(t *testing.T) {
	t.Run("no handshake", func(t *testing.T) {
		inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			p.Blackhole(true)
			fails(t, r, driver.NotExecuted)
		})
	})
	t.Run("no connection", func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		inBubble(t, redis.Options{Dialer: hang, DialerRetries: 1}, func(t *testing.T, _ *faultnet.Proxy, r driver.Redis) {
			if took := fails(t, r, driver.NotExecuted); took != 3*time.Second {
				t.Errorf("Run took %v, want 3s", took)
			}
			var re *driver.RunError
			if _, err := r.(driver.Acker).Replicas(t.Context(), "k"); !errors.As(err, &re) || re.Outcome != driver.NotExecuted {
				t.Errorf("Replicas failed with %v, want that nothing was executed", err)
			}
			time.Sleep(time.Minute) // go-redis' attempt goes on for a while
		})
	})
	t.Run("no connection, with short time-outs", func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		short := time.Second / 2
		opt := redis.Options{Dialer: hang, DialerRetries: 1, DialTimeout: short, ReadTimeout: short, WriteTimeout: short}
		inBubble(t, opt, func(t *testing.T, _ *faultnet.Proxy, r driver.Redis) {
			if took := fails(t, r, driver.NotExecuted); took != short {
				t.Errorf("Run took %v, want %v", took, short)
			}
			time.Sleep(time.Minute) // go-redis' attempt goes on for a while
		})
	})
	t.Run("no reply", func(t *testing.T) {
		inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			if _, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil {
				t.Fatal(err)
			}
			p.OneWay(true)
			fails(t, r, driver.Unknown)
		})
	})
	t.Run("no reply, with context time-outs", func(t *testing.T) {
		inBubble(t, redis.Options{ContextTimeoutEnabled: true}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			if _, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil {
				t.Fatal(err)
			}
			p.OneWay(true)
			if took := fails(t, r, driver.Unknown); took != 3*time.Second {
				t.Errorf("Run took %v, want 3s", took)
			}
		})
	})
	t.Run("no free connection", func(t *testing.T) {
		inBubble(t, redis.Options{PoolSize: 1}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			if _, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil {
				t.Fatal(err)
			}
			p.OneWay(true)
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() { fails(t, r, driver.Unknown) })
			synctest.Wait()
			fails(t, r, driver.NotExecuted)
		})
	})
}

func TestAllEndsInTime(t *testing.T) {
	adaptertest.EndsInTime(t, func(t *testing.T, f func(t *testing.T, p *faultnet.Proxy, d driver.Acker)) {
		inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) { f(t, p, r.(driver.Acker)) })
	})
}

// A cluster that cannot tell who serves what is not listed as an empty one.
func TestAListingOfAClusterThatNamesNoNodeIsNotEmpty(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd == "CLUSTER" {
			c.WriteLen(0)
		}
		return cmd == "CLUSTER"
	})
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{mini.Addr()}})
	if primaries, err := use(t, rdb).Primaries(t.Context()); err == nil {
		t.Errorf("got %d primaries, want an error", len(primaries))
	}
}

// What is no Run has no use for the end of its caller's context.
func TestContextDoesNotEndPrimaries(t *testing.T) {
	inBubble(t, redis.Options{ContextTimeoutEnabled: true}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		p.SetRule(late(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := r.Primaries(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A subscription to a server that has fallen silent moves to a new connection,
// though nothing ever fails.
func TestSilentSubscription(t *testing.T) {
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		confirmed := make(chan struct{}, 10)
		stop := r.Subscribe("channel", false, func(n driver.Notice) {
			if n.Subscribed {
				confirmed <- struct{}{}
			}
		})
		<-confirmed
		time.Sleep(time.Hour) // and while the server answers pings, nothing happens
		synctest.Wait()
		if len(confirmed) != 0 {
			t.Fatal("confirmed again without a reason")
		}
		start := time.Now()
		p.OneWay(true)
		time.Sleep(3500 * time.Millisecond) // long enough to lose the answer to a ping
		p.OneWay(false)                     // the connection has lost something and stays silent
		<-confirmed
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("took %v", d)
		}
		stop()
		synctest.Wait()
	})
}

// Without subscriptions there is no goroutine, and a closed client ends those
// that were left.
func TestClosedClient(t *testing.T) {
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, _ driver.Redis) {
		rdb := redis.NewClient(&redis.Options{
			Addr:   "127.0.0.1:1",
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
		})
		r := redlatchgoredis.Use(rdb)
		confirmed := make(chan struct{}, 10)
		f := func(n driver.Notice) { confirmed <- struct{}{} }
		stop := r.Subscribe("channel", false, f)
		<-confirmed
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
		fails(t, r, driver.NotExecuted)
		defer r.Subscribe("channel", false, f)()
		time.Sleep(time.Minute) // the bubble ends with an error if a goroutine is left
		stop()
	})
}

func TestUseRefuses(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	defer func() {
		if recover() == nil {
			t.Error("Use took a Ring")
		}
	}()
	redlatchgoredis.Use(ring)
}

func TestTraits(t *testing.T) {
	plain := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer plain.Close()
	usual := 3*time.Second + plain.Options().ReadTimeout // go-redis has changed it once
	for _, test := range []struct {
		opt  redis.UniversalOptions
		want driver.Traits
	}{
		{redis.UniversalOptions{}, driver.Traits{Timeout: usual, Direct: true}},
		{
			redis.UniversalOptions{ReadTimeout: time.Second, WriteTimeout: 2 * time.Second},
			driver.Traits{Timeout: 5 * time.Second, Direct: true},
		},
		{
			redis.UniversalOptions{DialTimeout: time.Second / 2, ReadTimeout: time.Second / 2, WriteTimeout: time.Second / 2},
			driver.Traits{Timeout: time.Second, Direct: true},
		},
		{
			redis.UniversalOptions{DialTimeout: time.Second / 2, ReadTimeout: time.Second / 4, WriteTimeout: -1},
			driver.Traits{Direct: true},
		},
		{
			redis.UniversalOptions{ContextTimeoutEnabled: true, DialTimeout: time.Second / 2, ReadTimeout: time.Second / 2, WriteTimeout: time.Second / 4},
			driver.Traits{Timeout: time.Second, Direct: true},
		},
		{redis.UniversalOptions{ReadTimeout: -1}, driver.Traits{Direct: true}},
		{
			redis.UniversalOptions{ContextTimeoutEnabled: true, DialTimeout: time.Second / 2, ReadTimeout: -1},
			driver.Traits{Timeout: 3 * time.Second, Direct: true},
		},
		{redis.UniversalOptions{WriteTimeout: -2}, driver.Traits{Direct: true}},
		{redis.UniversalOptions{ContextTimeoutEnabled: true}, driver.Traits{Timeout: 3 * time.Second, Direct: true}},
		{redis.UniversalOptions{IsClusterMode: true}, driver.Traits{Timeout: usual, Cluster: true, Replicated: true}},
		{redis.UniversalOptions{MasterName: "m"}, driver.Traits{Timeout: usual, Direct: true, Replicated: true}},
	} {
		test.opt.Addrs = []string{"127.0.0.1:1"}
		rdb := redis.NewUniversalClient(&test.opt)
		test.want.Name, test.want.ContextValues = "redlatchgoredis", true
		if got := redlatchgoredis.Use(rdb).Traits(); got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.opt, got, test.want)
		}
		rdb.Close()
	}
}

// The driver took three seconds for connecting whatever the client's options said.
func TestShortTimeoutsAllowAShortWatchdogTimeout(t *testing.T) {
	short := time.Second / 2
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialTimeout: short, ReadTimeout: short, WriteTimeout: short})
	defer rdb.Close()
	c, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{WatchdogTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// A server that answers late, but in time, says that it does not know the script.
// It has to be told it nevertheless.
func TestASlowServerIsToldTheScript(t *testing.T) {
	opt := redis.Options{DialTimeout: 200 * time.Millisecond, ReadTimeout: time.Second, WriteTimeout: time.Second}
	inBubble(t, opt, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if r.Script() == "" {
				return faultnet.Pass
			}
			return faultnet.Delay(500 * time.Millisecond)
		})
		if reply, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil || reply.Int != 1 {
			t.Errorf("%v, %v", reply, err)
		}
		a := r.(driver.Acker)
		if reply, _, err := a.RunAcked(t.Context(), newScript(t, "return 2"), []string{"k"}, nil, 1, time.Millisecond); err != nil || reply.Int != 2 {
			t.Errorf("acknowledged: %v, %v", reply, err)
		}
	})
}

// A hook that keeps a command or a pipeline from the server keeps it from being
// executed.
type refusing struct{ err error }

func (refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r refusing) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return r.err }
}

func (r refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return r.err }
}

func TestNobodyTakesForAnAnswerThatAHookHasSentNothing(t *testing.T) {
	for _, hook := range []refusing{{errors.New("not now")}, {nil}} {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		rdb.AddHook(hook)
		d, s, keys := redlatchgoredis.Use(rdb), newScript(t, "return 1"), []string{"k"}
		_, run := d.Run(t.Context(), s, keys, nil)
		_, _, acked := d.RunAcked(t.Context(), s, keys, nil, 1, time.Second)
		for _, err := range []error{run, acked} {
			var re *driver.RunError
			if !errors.As(err, &re) || re.Outcome != driver.NotExecuted || hook.err != nil && !errors.Is(err, hook.err) {
				t.Errorf("a hook that returns %v: %v", hook.err, err)
			}
		}
		rdb.Close()
	}
}

// Waiting for replicas ends in time, whatever bounds a request.
func TestRunAckedInTime(t *testing.T) {
	for name, opt := range map[string]redis.Options{
		"read time-out":     {},
		"context time-outs": {ContextTimeoutEnabled: true},
		"one connection":    {PoolSize: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, opt, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
				s, a := newScript(t, "return 1"), r.(driver.Acker)
				if _, acked, err := a.RunAcked(t.Context(), s, []string{"k"}, nil, 1, time.Hour); err != nil || acked != 0 {
					t.Errorf("acknowledged by %d, %v", acked, err)
				}
				p.OneWay(true)
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						start := time.Now()
						_, _, err := a.RunAcked(t.Context(), s, []string{"k"}, nil, 1, time.Hour)
						if d := time.Since(start); err == nil || d > r.Traits().Timeout {
							t.Errorf("RunAcked: %v after %v, Traits.Timeout is %v", err, d, r.Traits().Timeout)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// go-redis panics where a server announces what there cannot be. That is an error,
// and a panic of the program's own hook goes on.
func TestWhatCannotBeReadEndsNoProcess(t *testing.T) {
	for _, answer := range []string{"$9223372036854775807\r\n", "*9223372036854775807\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(conn net.Conn) {
				defer conn.Close()
				for b := make([]byte, 4096); ; {
					n, err := conn.Read(b)
					if err != nil {
						return
					}
					if strings.Contains(string(b[:n]), "evalsha") {
						_, _ = conn.Write([]byte(answer))
						continue
					}
					_, _ = conn.Write([]byte("-ERR unknown command\r\n"))
				}
			}
			dial := func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go serve(far)
				return near, nil
			}
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: dial, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
			r, s := redlatchgoredis.Use(rdb), newScript(t, "return 1")
			var re *driver.RunError
			if _, err := r.Run(t.Context(), s, nil, nil); !errors.As(err, &re) || re.Outcome != driver.Unknown {
				t.Errorf("%q: %v", answer, err)
			}
			// The connection is in the pool, and what comes there next may be the rest of
			// that.
			if _, err := r.Run(t.Context(), s, nil, nil); !errors.As(err, &re) || re.Outcome != driver.NotExecuted {
				t.Errorf("after %q: %v, want that nothing is sent any more", answer, err)
			}
			_ = rdb.Close()

			rdb.AddHook(panics{})
			r = redlatchgoredis.Use(rdb)
			defer func() {
				if p := recover(); p != "mine" {
					t.Errorf("of the hook's panic is left: %v", p)
				}
			}()
			_, _ = r.Run(t.Context(), s, nil, nil)
		})
	}
}

// passes is what a hook does that only looks at commands one by one.
type passes struct{}

func (passes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (passes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// panics is a hook that does.
type panics struct{ passes }

func (panics) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { panic("mine") }
}

// A crowd needs a few pipelines, which hooks see as such; what is alone goes out
// as a command.
func TestSharedPipelines(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: testserver.Start(t, testserver.Redis).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	var hook counting
	rdb.AddHook(&hook)
	d := redlatchgoredis.Use(rdb, redlatchgoredis.SharedPipelines())
	if d.Traits().ContextValues {
		t.Error("a pipeline has the values of many contexts")
	}
	c, err := redlatch.New(d, redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	const crowd, each = 64, 20
	var all sync.WaitGroup
	for g := range crowd {
		all.Go(func() {
			l := c.Lock(fmt.Sprint("orders:", g))
			for range each {
				if err := l.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := hook.piped.Load(); n < crowd*each/4 || hook.pipelines.Load() > n/2 {
		t.Errorf("%d of %d scripts went out in %d pipelines, and %d alone", n, 2*crowd*each, hook.pipelines.Load(), hook.alone.Load())
	}
	before := hook.alone.Load()
	if err := c.Lock("alone").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if n := hook.alone.Load() - before; n == 0 {
		t.Error("a caller by itself got a pipeline")
	}
}

// A script is sent by its caller, while the server answers promptly.
func TestWhoSends(t *testing.T) {
	addr := testserver.Start(t, testserver.Redis).Addr()
	for name, c := range map[string]struct {
		opt  redis.Options
		opts []redlatchgoredis.Option
		ctx  context.Context //nolint:containedctx // of a test
	}{
		"a context that cannot end": {ctx: context.Background()},
		"a context that can end":    {ctx: t.Context()},
		"contexts have time-outs":   {opt: redis.Options{ContextTimeoutEnabled: true}, ctx: t.Context()},
		"shared pipelines":          {opts: []redlatchgoredis.Option{redlatchgoredis.SharedPipelines()}, ctx: t.Context()},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Addr = addr
			rdb := redis.NewClient(&c.opt)
			defer rdb.Close()
			hook := &senders{name: name}
			rdb.AddHook(hook) // before a client connects
			client, err := redlatch.New(redlatchgoredis.Use(rdb, c.opts...), redlatch.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			acquireAndRelease := func() {
				h, err := client.Lock(name).Acquire(c.ctx)
				if err == nil {
					err = h.Release(c.ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
			// What a client asks at first, workers ask, and what it asks while the machine is
			// busy.
			for end := time.Now().Add(time.Minute); ; {
				before := hook.callers.Load()
				acquireAndRelease()
				if hook.callers.Load() == before+2 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("callers sent %d scripts and workers %d", hook.callers.Load(), hook.workers.Load())
				}
			}
		})
	}
}

// senders counts the scripts about a lock in TestWhoSends.
type senders struct {
	counting
	name             string // of the lock
	callers, workers atomic.Int64
}

func (s *senders) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 3 && args[3] == s.name {
			by := &s.workers
			if strings.Contains(string(debug.Stack()), ".TestWhoSends.") {
				by = &s.callers
			}
			by.Add(1)
		}
		return next(ctx, cmd)
	}
}

// counting is a hook.
type counting struct{ alone, piped, pipelines atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.alone.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" { // not go-redis' own
			c.pipelines.Add(1)
			c.piped.Add(int64(len(cmds)))
		}
		return next(ctx, cmds)
	}
}
