// Package adaptertest has the tests that all adapters have in common, beside those
// of package drivertest. It imports no client library: an adapter is tested with
// more than one version of its own.
package adaptertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/drivertest"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
)

// Admin is whom the tests are for the servers that testserver starts.
var Admin = drivertest.Admin{User: testserver.Admin, Password: testserver.AdminPassword}

// An Open returns a driver, as drivertest.Config.New does.
type Open = func(t *testing.T, addr string, timeout time.Duration) driver.Redis

// Embedded runs the contract on embedded servers.
func Embedded(t *testing.T, open Open) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	drivertest.Run(t, drivertest.Config{New: open})
}

// Servers runs the contract on real servers of all kinds.
func Servers(t *testing.T, open Open) {
	t.Helper()
	t.Parallel()
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, drivertest.Config{New: open, Server: Start(kind)})
		})
	}
}

// Start returns a function that starts a real server, which can get replicas.
func Start(kind testserver.Kind) func(*testing.T) drivertest.Server {
	return func(t *testing.T) drivertest.Server {
		t.Helper()
		s := testserver.Start(t, kind, "--repl-diskless-sync-delay", "0")
		return drivertest.Server{
			Dial: s.Dial, Admin: Admin, Restart: s.Restart, Sharded: kind.Sharded(),
			Replicas: func() []drivertest.Replica {
				return []drivertest.Replica{testserver.StartReplica(t, s), testserver.StartReplica(t, s)}
			},
		}
	}
}

// EndsInTime checks that nothing takes longer than the driver says, whatever the
// server does, and whether or not it was there before; and that a subscription
// waits for nobody. inBubble runs f in fake time with a driver behind a proxy.
func EndsInTime(t *testing.T, inBubble func(t *testing.T, f func(t *testing.T, p *faultnet.Proxy, d driver.Acker))) {
	t.Helper()
	for name, fault := range map[string]func(*faultnet.Proxy){
		"nothing listens": func(p *faultnet.Proxy) { p.Close() },
		"silence":         func(p *faultnet.Proxy) { p.Blackhole(true) },
		"no replies":      func(p *faultnet.Proxy) { p.OneWay(true) },
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, connected before: %v", name, before), func(t *testing.T) {
				inBubble(t, func(t *testing.T, p *faultnet.Proxy, d driver.Acker) {
					t.Helper()
					endsInTime(t, d, before, func() { fault(p) })
				})
			})
		}
	}
}

func endsInTime(t *testing.T, d driver.Acker, before bool, fault func()) {
	t.Helper()
	calls := calls(t, d)
	if before {
		for _, what := range []string{"Run", "RunAcked"} {
			if err := calls[what](); err != nil {
				t.Fatal(err)
			}
		}
	}
	fault()
	for range 2 {
		for what, call := range calls {
			start := time.Now()
			err := call()
			if took, limit := time.Since(start), d.Traits().Timeout; err == nil || took > limit {
				t.Errorf("%s: %v after %v, Traits.Timeout is %v", what, err, took, limit)
			}
		}
		start := time.Now()
		d.Subscribe("channel", false, func(driver.Notice) {})()
		if took := time.Since(start); took != 0 {
			t.Errorf("Subscribe and its end took %v", took)
		}
	}
}

// calls are those that ask a server something.
func calls(t *testing.T, d driver.Acker) map[string]func() error {
	t.Helper()
	s, keys := driver.NewScript(t.Name(), "return 1"), []string{"k"}
	all := map[string]func() error{
		"Run":      func() error { _, err := d.Run(t.Context(), s, keys, nil); return err },
		"RunAcked": func() error { _, _, err := d.RunAcked(t.Context(), s, keys, nil, 1, time.Hour); return err },
		"Replicas": func() error { _, err := d.Replicas(t.Context(), "k"); return err },
	}
	if b, ok := d.(driver.Batcher); ok {
		all["RunBatch"] = func() error {
			requests := []*driver.Request{{Script: s, Keys: []string{"a"}}, {Script: s, Keys: []string{"b"}}}
			b.RunBatch(requests)
			return requests[1].Err
		}
	}
	return all
}
