package rueidis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, cleanup, refresh, redirect)
}

func newScript(t *testing.T, source string) *driver.Script {
	return driver.NewScript(t.Name(), source)
}

// inBubble runs a test in fake time, with an embedded server behind a proxy and
// a driver for it, which has the default time-outs.
func inBubble(t *testing.T, f func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		defer mini.Close()
		p := faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })
		defer p.Close()
		d, err := redlatchrueidis.New(through(p.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		f(t, p, d)
	})
}

func through(dial func(context.Context) (net.Conn, error)) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{"embedded"}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) { return dial(ctx) },
	}
}

// fails runs a script that must fail.
func fails(t *testing.T, r driver.Redis, want driver.Outcome) {
	t.Helper()
	_, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil)
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome != want {
		t.Errorf("Run failed with %v, want %q", err, want)
	}
}

// failsInTime is for fake time. It returns how long the script took.
func failsInTime(t *testing.T, r driver.Redis, want driver.Outcome) time.Duration {
	t.Helper()
	start := time.Now()
	fails(t, r, want)
	took := time.Since(start)
	if limit := r.Traits().Timeout; took > limit {
		t.Errorf("Run took %v, Traits.Timeout is %v", took, limit)
	}
	return took
}

func succeeds(t *testing.T, r driver.Redis) {
	t.Helper()
	if reply, err := r.Run(t.Context(), newScript(t, "return 1"), nil, nil); err != nil || reply.Int != 1 {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestRunInTime(t *testing.T) {
	for name, f := range map[string]func(*testing.T, *faultnet.Proxy, *redlatchrueidis.Driver){
		"no handshake": func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
			p.Blackhole(true)
			p.BreakAll()
			time.Sleep(2500 * time.Millisecond) // a ping has noticed
			failsInTime(t, d, driver.NotExecuted)
			p.Blackhole(false)
			succeeds(t, d)
		},
		"no reply": func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
			succeeds(t, d)
			p.OneWay(true)
			failsInTime(t, d, driver.Unknown)
		},
		"no reply, many": func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() { succeeds(t, d) })
			}
			wg.Wait()
			p.OneWay(true)
			for range 50 {
				wg.Go(func() { failsInTime(t, d, driver.Unknown) })
			}
			wg.Wait()
			p.OneWay(false)
			time.Sleep(10 * time.Second)
			succeeds(t, d)
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, f) })
	}
}

func TestConnectInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := redlatchrueidis.New(through(func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			failsInTime(t, d, driver.NotExecuted)
			time.Sleep(300 * time.Millisecond)
		}
		d.Close()
	})
}

// The same when it was connected before, for many at once.
func TestConnectAgainInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		defer mini.Close()
		p := faultnet.New(func(context.Context) (net.Conn, error) { return mini.Dial() })
		defer p.Close()
		var hang atomic.Bool
		d, err := redlatchrueidis.New(through(func(ctx context.Context) (net.Conn, error) {
			if !hang.Load() {
				return p.Dial(ctx)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		succeeds(t, d)
		hang.Store(true)
		p.BreakAll()
		time.Sleep(2500 * time.Millisecond) // a ping has noticed
		var wg sync.WaitGroup
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			wg.Go(func() { failsInTime(t, d, driver.NotExecuted) })
		}
		wg.Wait()
		hang.Store(false)
		succeeds(t, d)
	})
}

func TestAllEndsInTime(t *testing.T) {
	adaptertest.EndsInTime(t, func(t *testing.T, f func(t *testing.T, p *faultnet.Proxy, d driver.Acker)) {
		inBubble(t, func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) { f(t, p, d) })
	})
}

// A caller that leaves is told what it may have done: nothing if it comes too
// late.
func TestContextEndsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
		s := newScript(t, "return 1")
		succeeds(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Run(ctx, s, nil, nil); driver.Failure(err).Outcome != driver.NotExecuted || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Delay(time.Second) })
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := d.Run(ctx, s, nil, nil); driver.Failure(err).Outcome != driver.Unknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("left after %v", took)
		}
		if _, err := d.Primaries(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestSilentSubscription(t *testing.T) {
	inBubble(t, func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
		confirmed := make(chan struct{}, 10)
		stop := d.Subscribe("channel", false, func(n driver.Notice) {
			if n.Subscribed {
				confirmed <- struct{}{}
			}
		})
		<-confirmed
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(confirmed) != 0 {
			t.Fatal("confirmed again without a reason")
		}
		start := time.Now()
		p.OneWay(true)
		time.Sleep(2500 * time.Millisecond) // long enough to lose the answer to a ping
		p.OneWay(false)
		<-confirmed
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("took %v", d)
		}
		stop()
	})
}

// Close ends what is in flight, and what comes later fails at once.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
		confirmed := make(chan driver.Notice, 10)
		stop := d.Subscribe("channel", false, func(n driver.Notice) { confirmed <- n })
		<-confirmed
		succeeds(t, d)
		p.OneWay(true)
		var wg sync.WaitGroup
		wg.Go(func() { failsInTime(t, d, driver.Unknown) })
		synctest.Wait()
		start := time.Now()
		d.Close()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		wg.Wait()
		if took := failsInTime(t, d, driver.NotExecuted); took != 0 {
			t.Errorf("a closed driver took %v", took)
		}
		if _, err := d.Primaries(t.Context()); err == nil {
			t.Error("a closed driver lists nodes")
		}
		d.Subscribe("channel", false, func(driver.Notice) { t.Error("a closed driver subscribes") })()
		stop()
		d.Close()
	})
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"no address":         func(o *rueidis.ClientOption) { o.InitAddress = nil },
		"replicas only":      func(o *rueidis.ClientOption) { o.ReplicaOnly = true },
		"no time-out":        func(o *rueidis.ClientOption) { o.ConnWriteTimeout = -1 },
		"wrong multiplexing": func(o *rueidis.ClientOption) { o.PipelineMultiplex = rueidis.MaxPipelineMultiplex + 1 },
	} {
		opt := options("127.0.0.1:1")
		change(&opt)
		d, err := redlatchrueidis.New(opt)
		if err == nil {
			d.Close()
			t.Errorf("%s: New did not refuse it", name)
			continue
		}
		t.Logf("%s: %v", name, err)
	}
}

func TestUseRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Use took a client with a ConnLifetime")
		}
	}()
	redlatchrueidis.Use(nil, rueidis.ClientOption{ConnLifetime: time.Hour})
}

// The node of a cluster that was asked first cannot tell yet who serves what. A
// listing then is of the nodes that it names when it can, or fails: it is never
// empty without a word.
func TestAListingOfAClusterThatNamesNoNodeIsNotEmpty(t *testing.T) {
	t.Parallel()
	for _, silent := range []int64{1, math.MaxInt64} {
		mini := miniredis.RunT(t)
		var asked atomic.Int64
		mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			if cmd != "CLUSTER" || asked.Add(1) > silent {
				return false
			}
			c.WriteLen(0)
			return true
		})
		opt := options(mini.Addr())
		opt.ForceSingleClient = false
		primaries, err := newDriver(t, opt).Primaries(t.Context())
		if found := silent == 1; (err == nil) != found || (len(primaries) == 1) != found {
			t.Errorf("after %d answers without a node: %d primaries, %v", silent, len(primaries), err)
		}
	}
}

// A server that is down is no reason to fail, and is found when it is up.
func TestNewWithoutServer(t *testing.T) {
	t.Parallel()
	addr := heldport.Refusing(t)
	for name, test := range map[string]struct {
		opt     rueidis.ClientOption
		cluster bool
	}{
		"single":   {rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, false},
		"any":      {rueidis.ClientOption{InitAddress: []string{addr}}, true},
		"sentinel": {rueidis.ClientOption{InitAddress: []string{addr}, Sentinel: rueidis.SentinelOption{MasterSet: "m"}}, false},
	} {
		d, err := redlatchrueidis.New(test.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := d.Traits(); got.Cluster != test.cluster || got.Timeout != 3*time.Second {
			t.Errorf("%s: Traits %+v", name, got)
		}
		fails(t, d, driver.NotExecuted)
		d.Close()
	}

	s := testserver.Start(t, testserver.Redis)
	s.Kill()
	opt := options(s.Addr())
	opt.ForceSingleClient = false
	d := newDriver(t, opt)
	confirmed := make(chan driver.Notice, 100)
	defer d.Subscribe("channel", false, func(n driver.Notice) { confirmed <- n })()
	fails(t, d, driver.NotExecuted)
	s.Restart()
	select {
	case <-confirmed:
	case <-time.After(time.Minute):
		t.Error("the subscription was not confirmed")
	}
	succeeds(t, d)
	if node := d.Node("key"); node == "" {
		t.Error("the driver changed its mind about nodes")
	}
}
