package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
)

// soon is how long a caller may take to leave a request that was sent.
const soon = 20 * time.Millisecond

// leaves runs a script whose caller leaves after some time, and returns how much longer that took.
func leaves(t *testing.T, r driver.Redis, after time.Duration, want driver.Outcome) (longer time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	start := time.Now()
	_, err := r.Run(ctx, newScript(t, "return redis.call('get', KEYS[1])"), []string{"k"}, []string{"a", ""})
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome != want {
		t.Errorf("Run failed with %v, want %q", err, want)
	}
	return time.Since(start) - after
}

// runs runs a script that must succeed, for a caller that could leave.
func runs(t *testing.T, r driver.Redis) {
	t.Helper()
	if _, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil {
		t.Error(err)
	}
}

func TestACallerLeavesASilentServer(t *testing.T) {
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		runs(t, r)
		p.Blackhole(true)
		for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 33 * time.Millisecond, time.Second} {
			// The first one has the connection; the next ones are in a handshake.
			if longer := leaves(t, r, after, driver.Unknown); longer > soon {
				t.Errorf("a caller with %v took %v longer", after, longer)
			}
			p.Blackhole(false)
			runs(t, r)
			p.Blackhole(true)
		}
		p.Blackhole(false)
	})
}

func TestACallerLeavesAHandshake(t *testing.T) {
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		p.Blackhole(true)
		for _, after := range []time.Duration{time.Millisecond, 300 * time.Millisecond} {
			if longer := leaves(t, r, after, driver.NotExecuted); longer > 200*time.Millisecond {
				t.Errorf("a caller with %v took %v longer", after, longer)
			}
		}
		p.Blackhole(false)
		runs(t, r)
	})
}

// What waits for a connection leaves, and what has one is not disturbed.
func TestACallerLeavesTheWaitForAConnection(t *testing.T) {
	inBubble(t, redis.Options{PoolSize: 1}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		runs(t, r)
		p.SetRule(late(time.Second))
		first := make(chan error)
		go func() {
			_, err := r.Run(context.Background(), newScript(t, "return 1"), nil, nil)
			first <- err
		}()
		synctest.Wait()
		if longer := leaves(t, r, 50*time.Millisecond, driver.NotExecuted); longer > soon {
			t.Errorf("took %v longer", longer)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// late delays all requests.
func late(by time.Duration) func(faultnet.Request) faultnet.Action {
	return func(faultnet.Request) faultnet.Action { return faultnet.Delay(by) }
}

// dials counts the connections that a client makes.
type dials struct {
	p *faultnet.Proxy
	n atomic.Int64
}

func (d *dials) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.n.Add(1)
	return d.p.Dial(ctx)
}

// An answer that comes within milliseconds is taken, and the connection stays.
func TestWhoLeavesAHealthyServerClosesNothing(t *testing.T) {
	var d dials
	inBubble(t, redis.Options{Dialer: d.dial}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		d.p = p
		runs(t, r)
		for range 100 {
			p.SetRule(late(4 * time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(8)+1)*time.Millisecond)
			if _, err := r.Run(ctx, newScript(t, "return 1"), nil, nil); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if n := d.n.Load(); n != 1 {
			t.Errorf("%d connections were made, want 1", n)
		}
	})
}

// A far server takes its time for each step of a handshake. Callers that leave before that is over break off none but their
// own: what the program sends meanwhile succeeds.
func TestWhoLeavesAHandshakeDisturbsNoOther(t *testing.T) {
	for _, step := range []time.Duration{130 * time.Millisecond, 250 * time.Millisecond} {
		var rdb *redis.Client
		onClient(t, redis.Options{}, func(c *redis.Client) { rdb = c }, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			p.SetRule(late(step))
			stop := make(chan struct{})
			var callers, program sync.WaitGroup
			callers.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						callers.Go(func() { leaves(t, r, 10*time.Millisecond, driver.NotExecuted) })
					}
				}
			})
			for range 3 {
				program.Go(func() {
					for range 5 {
						if err := rdb.Set(t.Context(), "own", 1, 0).Err(); err != nil {
							t.Errorf("a step takes %v: %v", step, err)
						}
					}
				})
			}
			time.Sleep(2 * step) // then connections are there, and callers leave scripts that were sent
			close(stop)
			callers.Wait()
			program.Wait()
		})
	}
}

// What a request has at its end says nothing of what it is.
func TestACommandWithTheWordsOfAHandshakeIsNone(t *testing.T) {
	for _, word := range []string{"client", "auth", "hello", "select"} {
		var rdb *redis.Client
		onClient(t, redis.Options{}, func(c *redis.Client) { rdb = c }, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			p.SetRule(late(300 * time.Millisecond))
			var beside sync.WaitGroup
			beside.Go(func() {
				if n, err := rdb.RPush(t.Context(), "list", strings.Repeat("x", 600), word, "7").Result(); n != 3 || err != nil {
					t.Errorf("%s: %d elements, %v", word, n, err)
				}
			})
			synctest.Wait()
			leaves(t, r, 10*time.Millisecond, driver.NotExecuted) // it needs a connection of its own
			beside.Wait()
		})
	}
}

// A password may be longer than what a connection remembers, a key longer than what go-redis writes at once; and a hook of the
// program may change keys.
func TestACallerLeavesRequestsOfAnySize(t *testing.T) {
	inBubble(t, redis.Options{Username: "me", Password: strings.Repeat("x", 1500)}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		p.Blackhole(true)
		if longer := leaves(t, r, 10*time.Millisecond, driver.NotExecuted); longer > 200*time.Millisecond {
			t.Errorf("a handshake: took %v longer", longer)
		}
		p.Blackhole(false)
	})
	prefix := func(c *redis.Client) { c.AddHook(prefixes{}) }
	onClient(t, redis.Options{WriteBufferSize: 1024}, prefix, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		for _, size := range []int{10, 450, 900, 1000, 2000} {
			runs(t, r)
			p.Blackhole(true)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			start := time.Now()
			_, err := r.Run(ctx, newScript(t, "return 1"), []string{strings.Repeat("k", size), "second"}, []string{"a", "b"})
			cancel()
			if longer := time.Since(start) - 10*time.Millisecond; err == nil || longer > soon {
				t.Errorf("a key of %d bytes: %v, took %v longer", size, err, longer)
			}
			p.Blackhole(false)
		}
	})
}

// A prefixes is a hook that gives the first key of each script a prefix.
type prefixes struct{ passes }

func (prefixes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if words := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && words[2] != 0 {
			words[3] = "tenant:" + words[3].(string)
		}
		return next(ctx, cmd)
	}
}

// Of callers that ask the very same, only those that leave go without an answer. No connection is closed that is idle.
func TestWhoLeavesBreaksOffNoOther(t *testing.T) {
	var d dials
	inBubble(t, redis.Options{Dialer: d.dial}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		d.p = p
		s, keys, args := newScript(t, "return redis.call('get', KEYS[1])"), []string{"k"}, []string{"a", ""}
		var others sync.WaitGroup
		ask := func() {
			others.Go(func() {
				if _, err := r.Run(context.Background(), s, keys, args); err != nil {
					t.Error(err)
				}
			})
		}
		p.SetRule(late(time.Second))
		for range 10 {
			ask()
		}
		others.Wait()
		time.Sleep(20 * time.Minute)
		var breaks atomic.Int64
		defer r.OnBreak(func(string) { breaks.Add(1) })()
		for range 20 {
			before := d.n.Load()
			ask()
			synctest.Wait() // it has been sent
			if longer := leaves(t, r, 10*time.Millisecond, driver.Unknown); longer > soon {
				t.Errorf("took %v longer", longer)
			}
			others.Wait()
			for range 10 {
				ask()
			}
			others.Wait()
			if n := d.n.Load() - before; n > 1 {
				t.Errorf("%d connections were closed, want one", n)
			}
		}
		if n := breaks.Load(); n > 0 {
			t.Errorf("%d breaks reported", n)
		}
	})
}

// Connections that are not ours come up after Use, too: those that the program has the client make just then, and all of a copy
// of a client. A caller leaves these as well.
func TestACallerLeavesConnectionsThatAreNotOurs(t *testing.T) {
	for name, use := range map[string]func(c *redis.Client) driver.Redis{
		"made meanwhile": func(c *redis.Client) driver.Redis { return goredis.Use(c) },
		"of a copy":      func(c *redis.Client) driver.Redis { return goredis.Use(c.WithTimeout(2 * time.Second)) },
	} {
		var d dials
		inBubble(t, redis.Options{Dialer: d.dial}, func(t *testing.T, p *faultnet.Proxy, _ driver.Redis) {
			d.p = p
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MinIdleConns: 2, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				time.Sleep(time.Millisecond)
				return p.Dial(ctx)
			}})
			defer rdb.Close()
			time.Sleep(time.Microsecond) // so that it dials
			r := use(rdb)
			time.Sleep(time.Second)
			runs(t, r)
			p.Blackhole(true)
			if longer := leaves(t, r, 10*time.Millisecond, driver.Unknown); longer > soon {
				t.Errorf("%s: took %v longer", name, longer)
			}
			p.Blackhole(false)
			time.Sleep(time.Minute)
			runs(t, r)
		})
	}
}

// A hook of the program may keep what it sees: commands, which it prints later, and contexts, for whose end it waits.
func TestHooksMayKeepCommandsAndContexts(t *testing.T) {
	k := keeps{seen: make(chan redis.Cmder, 100), open: new(atomic.Int64)}
	before := func(c *redis.Client) {
		c.Ping(context.Background()) // a connection that is replaced later
		c.AddHook(k)
	}
	onClient(t, redis.Options{}, before, func(t *testing.T, _ *faultnet.Proxy, r driver.Redis) {
		var prints sync.WaitGroup
		prints.Go(func() {
			for range 10 {
				_ = fmt.Sprint((<-k.seen).Args()...)
			}
		})
		for range 10 {
			runs(t, r)
		}
		prints.Wait()
		synctest.Wait()
		if n := k.open.Load(); n > 0 {
			t.Errorf("%d contexts have not ended", n)
		}
	})
}

type keeps struct {
	passes

	seen chan redis.Cmder
	open *atomic.Int64
}

func (k keeps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		k.open.Add(1)
		context.AfterFunc(ctx, func() { k.open.Add(-1) })
		err := next(ctx, cmd)
		k.seen <- cmd
		return err
	}
}

// A program has used its client before. A caller could not leave the connections of that time.
func TestConnectionsFromBeforeUseAreReplaced(t *testing.T) {
	var d dials
	inBubble(t, redis.Options{Dialer: d.dial, PoolSize: 3}, func(t *testing.T, p *faultnet.Proxy, _ driver.Redis) {
		d.p = p
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: d.dial, PoolSize: 3})
		defer rdb.Close()
		var wg sync.WaitGroup
		p.SetRule(late(time.Millisecond))
		for range 3 {
			wg.Go(func() { rdb.Ping(t.Context()) })
		}
		wg.Wait()
		p.SetRule(nil)
		if n := d.n.Load(); n != 3 {
			t.Fatalf("%d connections were made, want 3", n)
		}
		r := goredis.Use(rdb)
		if _, err := r.Run(context.Background(), newScript(t, "return 1"), nil, nil); err != nil || d.n.Load() != 3 {
			t.Errorf("a caller that cannot leave: %v, %d connections", err, d.n.Load())
		}
		runs(t, r)
		if n := d.n.Load(); n != 4 {
			t.Errorf("%d connections were made, want 4: one for a caller that can leave", n)
		}
		for range 10 {
			runs(t, r)
		}
		if n := d.n.Load(); n != 4 {
			t.Errorf("%d connections were made, want 4", n)
		}
		p.Blackhole(true)
		if longer := leaves(t, r, time.Millisecond, driver.Unknown); longer > soon {
			t.Errorf("took %v longer", longer)
		}
		p.Blackhole(false)
	})
}

// A lock whose caller has left is not left behind, and a later caller has it.
func TestALockWhoseCallerLeftIsFree(t *testing.T) {
	inBubble(t, redis.Options{}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		client, err := redlatch.New(r, redlatch.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		try := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			return client.Lock("orders").Do(ctx, func(context.Context) error { return nil })
		}
		if err := try(time.Second); err != nil {
			t.Fatal(err)
		}
		p.Blackhole(true)
		for range 4 {
			start := time.Now()
			if err := try(30 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if took := time.Since(start); took > 30*time.Millisecond+soon {
				t.Errorf("left after %v", took)
			}
		}
		p.Blackhole(false)
		if err := try(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
}

// Callers leave at random, beside commands of the program on the same client.
func TestWhoLeavesDisturbsNoCommandOfTheProgram(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: testserver.Start(t, testserver.Redis).Addr(), PoolSize: 4})
	defer rdb.Close()
	r := goredis.Use(rdb)
	busy := newScript(t, "for i = 1, ARGV[1] do redis.call('get', KEYS[1]) end return redis.call('incr', KEYS[1])")
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key, want := fmt.Sprint("own:", g), fmt.Sprint(i)
				if err := rdb.Set(t.Context(), key, want, 0).Err(); err != nil {
					t.Error(err)
				}
				if got, err := rdb.Get(t.Context(), key).Result(); got != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	var callers sync.WaitGroup
	left := make([]int, 4)
	for g := range left {
		callers.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(10*time.Millisecond))
				_, err := r.Run(ctx, busy, []string{fmt.Sprint("script:", g)}, []string{fmt.Sprint(rand.N(10_000))})
				if err != nil {
					left[g]++
				}
				cancel()
			}
		})
	}
	callers.Wait()
	close(stop)
	wg.Wait()
	t.Log(left, "of 100 callers left")
}

// go-redis 9.19 does not close a connection whose handshake the server has refused: it leaves that to the garbage collector. So
// nothing else may keep it.
func TestRefusedConnectionsAreNotKept(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	rdb := redis.NewClient(&redis.Options{
		Addr: testserver.Quoting(t), Password: "x", MaxRetries: -1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			counted := &struct{ net.Conn }{c}
			runtime.AddCleanup(counted, func(int) { open.Add(-1) }, 0)
			return counted, nil
		},
	})
	r := use(t, rdb)
	for range 5 {
		if err := refusal(t, r); err == nil {
			t.Error("the server has let the client in")
		}
	}
	for end := time.Now().Add(time.Minute); open.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("%d connections are kept", open.Load())
		}
	}
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("the server has let the client in")
	}
}
