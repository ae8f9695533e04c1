package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

// A server may be silent for longer than any caller waits. No attempt takes longer than one of a worker.
func TestNoCallerStaysForLongerThanAnAttempt(t *testing.T) {
	inBubble(t, redis.Options{ReadTimeout: time.Minute}, func(t *testing.T, p *faultnet.Proxy, r driver.Redis) {
		runs(t, r)
		p.Blackhole(true)
		start := time.Now()
		_, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil)
		if re := driver.Failure(err); re.Outcome != driver.Unknown {
			t.Error(err)
		}
		if took := time.Since(start); took > 3*time.Second+soon {
			t.Errorf("took %v", took)
		}
		p.Blackhole(false)
	})
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
