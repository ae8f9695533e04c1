package rueidis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

const count = "return redis.call('incr', KEYS[1])"

func requests(s *driver.Script, keys ...string) (all []*driver.Request) {
	for _, key := range keys {
		all = append(all, &driver.Request{Script: s, Keys: []string{key}})
	}
	return all
}

func outcome(t *testing.T, err error) driver.Outcome {
	t.Helper()
	var re *driver.RunError
	if !errors.As(err, &re) {
		t.Fatalf("failed with %T (%v)", err, err)
	}
	return re.Outcome
}

// A batch ends as soon as a Run, with or without others on the connection.
func TestBatchInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, p *faultnet.Proxy, d *redlatchrueidis.Driver) {
		s := newScript(t, count)
		for round := range 2 {
			succeeds(t, d)
			p.OneWay(true)
			start := time.Now()
			all := requests(s, "a", "b", "c")
			if round == 1 { // others as well
				go func() { _, _ = d.Run(t.Context(), s, []string{"d"}, nil) }()
			}
			d.RunBatch(all)
			if took := time.Since(start); took > d.Traits().Timeout {
				t.Errorf("RunBatch took %v, Traits.Timeout is %v", took, d.Traits().Timeout)
			}
			for _, r := range all {
				if outcome(t, r.Err) != driver.Unknown {
					t.Errorf("%v, want that the outcome is unknown", r.Err)
				}
			}
			p.OneWay(false)
			time.Sleep(10 * time.Second)
		}
		d.Close()
		all := requests(s, "a", "b")
		d.RunBatch(all)
		for _, r := range all {
			if outcome(t, r.Err) != driver.NotExecuted {
				t.Errorf("a closed driver: %v", r.Err)
			}
		}
	})
}

// redirecting answers scripts that have a key with REDIRECT.
func redirecting(m *miniredis.Miniredis, key, addr string) {
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		switch {
		case cmd == "CLIENT":
			c.WriteOK()
		case slices.Contains(args, key):
			c.WriteError("REDIRECT " + addr)
		default:
			return false
		}
		return true
	})
}

func redirects(addr string) rueidis.ClientOption {
	opt := options(addr)
	opt.ForceSingleClient, opt.DisableCache, opt.Standalone.EnableRedirect = false, true, true
	return opt
}

// rueidis would send all again.
func TestBatchIsRedirectedOneByOne(t *testing.T) {
	for name, open := range map[string]func(*testing.T, rueidis.ClientOption) driver.Redis{"new": newDriver, "use": use} {
		from, to := miniredis.RunT(t), miniredis.RunT(t)
		redirecting(to, "", "")
		redirecting(from, "moves", to.Addr())
		d := open(t, redirects(from.Addr())).(driver.Batcher)
		s := newScript(t, count)
		if _, err := d.Run(t.Context(), s, []string{"warm"}, nil); err != nil {
			t.Fatal(err)
		}
		all := requests(s, "a", "b", "moves", "c")
		d.RunBatch(all)
		for _, r := range all {
			key := r.Keys[0]
			n, _ := from.Get(key)
			m, _ := to.Get(key)
			if r.Err != nil || r.Reply.Int != 1 || n+m != "1" {
				t.Errorf("%s: %s answered %v, %v; executed %q times, and %q times at the new address", name, key, r.Reply, r.Err, n, m)
			}
		}
	}
}

// rueidis would try for ever.
func TestRedirectToNowhereEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := miniredis.NewMiniRedis()
		defer from.Close()
		opt := redirects("from")
		opt.DialCtxFn = func(_ context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if addr != "from" {
				return nil, errors.New("nowhere")
			}
			c, err := from.Dial()
			redirecting(from, "moves", "nowhere:1")
			return c, err
		}
		d := newDriver(t, opt)
		all := requests(newScript(t, count), "moves", "a")
		for what, f := range map[string]func() error{
			"Run":      func() error { _, err := d.Run(t.Context(), all[0].Script, all[0].Keys, nil); return err },
			"RunBatch": func() error { d.(driver.Batcher).RunBatch(all); return all[0].Err },
		} {
			start := time.Now()
			err := f()
			if took, limit := time.Since(start), d.Traits().Timeout; err == nil || took > limit {
				t.Errorf("%s: %v after %v, want at most %v", what, err, took, limit)
			}
		}
		if r := all[1]; r.Err != nil || r.Reply.Int != 1 {
			t.Errorf("beside it: %v, %v", r.Reply, r.Err)
		}
	})
}

// What rueidis could not take together, or at all, must not cost others anything.
func TestBatchInTatteredCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	open := func() driver.Batcher {
		return newDriver(t, rueidis.ClientOption{InitAddress: c.Addrs(), ConnWriteTimeout: timeout}).(driver.Batcher)
	}
	s, one := newScript(t, count), newScript(t, "return 1")
	d := open()
	for round, odd := range []*driver.Request{{Script: one}, {Script: s, Keys: []string{"a", "b"}}} {
		all := append(requests(s, "a", "b"), odd)
		d.RunBatch(all)
		for _, r := range all[:2] {
			if r.Err != nil || r.Reply.Int != int64(round+1) {
				t.Errorf("beside %q, %q: %v, %v", odd.Keys, r.Keys, r.Reply, r.Err)
			}
		}
		switch {
		case round == 0 && odd.Err != nil:
			t.Errorf("without keys: %v", odd.Err)
		case round == 1 && outcome(t, odd.Err) != driver.Refused:
			t.Errorf("keys of two slots: %v", odd.Err)
		}
	}

	slot := fmt.Sprint(c.Nodes[0].MustDo("CLUSTER", "KEYSLOT", "{hole}"))
	for _, n := range c.Nodes {
		n.MustDo("CLUSTER", "DELSLOTS", slot)
	}
	keys := []string{"{hole}"}
	for i := range 4 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	all := requests(s, keys...)
	open().RunBatch(all)
	if outcome(t, all[0].Err) != driver.NotExecuted {
		t.Errorf("a slot without a node: %v", all[0].Err)
	}
	for _, r := range all[1:] {
		if r.Err != nil || r.Reply.Int != 1 {
			t.Errorf("beside a slot without a node, %q: %v, %v", r.Keys, r.Reply, r.Err)
		}
	}
}

func batchOf(s *driver.Script, n int) []*driver.Request {
	all := make([]*driver.Request, n)
	for i := range all {
		all[i] = &driver.Request{Script: s, Keys: []string{"key"}, Args: []string{"30000", "owner"}}
	}
	return all
}

func BenchmarkRunBatch(b *testing.B) {
	addr := testserver.Start(b, testserver.Redis).Addr()
	d, err := redlatchrueidis.New(options(addr))
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	all := batchOf(one, 8)
	if _, err := d.Run(context.Background(), all[0].Script, all[0].Keys, all[0].Args); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if d.RunBatch(all); all[7].Err != nil || all[7].Reply.Int != 1 {
			b.Fatal(all[7].Reply, all[7].Err)
		}
	}
}
