package prom

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// No program tells anything, and still somebody is woken by a loss and sees an
// outage: by what redlatch exporter serves, which promtool has no complaint about,
// and Prometheus reads whatever the names are.
func TestARealPrometheusReadsTheExporter(t *testing.T) {
	promtool := program(t, "promtool")
	program(t, "prometheus")
	redis := testserver.Start(t, testserver.Redis)
	open := func(cfg redlatch.Config) *redlatch.Client {
		c, err := redlatch.New(drivers.Rueidis.Open(t, drivers.Single(redis.Addr())), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	exporter := dashboard.New(open(redlatch.Config{OutageTimeout: time.Second}), dashboard.Options{Interval: time.Second})
	t.Cleanup(exporter.Close)
	target := httptest.NewServer(exporter.Metrics())
	t.Cleanup(target.Close)

	shop := open(redlatch.Config{})
	var holds []*redlatch.Hold
	for _, name := range []string{"a\x00b:1", "c\nd\x1b[0m:1", "e\xff:1", `"f\:1`, "orders:1", "orders:2"} {
		h, err := shop.Lock(name).Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	waited := locktest.Later(func() error {
		h, err := shop.Lock("orders:2").TryAcquire(bg, locktest.Generous)
		if err == nil {
			err = h.Release(bg)
		}
		return err
	})

	s := scraping(t, filepath.Join(pages, "rules.yml"), time.Second, 5*time.Minute, map[string][]string{"exporter": {target.Listener.Addr().String()}})
	s.await(`redlatch_server_up == 1 and redlatch_server_complete == 1`)
	s.await(`redlatch_server_waiters{prefix="orders"} == 1 and redlatch_server_held == 2 and redlatch_server_longest_wait_seconds > 0`)
	s.await(`redlatch_server_clients{answered="true"} == 2`)
	var prefixes []string
	for _, labels := range s.await(`redlatch_server_held == 1`) {
		prefixes = append(prefixes, labels["prefix"])
	}
	if want := []string{`"f\`, "a\uFFFDb", "c\uFFFDd\uFFFD[0m", "e\uFFFD"}; !slices.Equal(slices.Sorted(slices.Values(prefixes)), want) {
		t.Errorf("the holds are of %q, want %q", prefixes, want)
	}
	checkMetrics(t, promtool, target.URL)

	if alerts, err := s.ask("ALERTS"); err != nil || len(alerts) > 0 {
		t.Errorf("before anything has happened: %v, %v", alerts, err)
	}
	redis.MustDo("DEL", "orders:1")
	fired := s.await(`ALERTS{alertname="RedlatchLockLost", alertstate="firing"}`)
	if len(fired) != 1 || fired[0]["reason"] != string(redlatch.LostGone) || fired[0]["job"] != "exporter" {
		t.Errorf("the alerts are %v", fired)
	}
	s.await(`redlatch_server_lost_within_an_hour{prefix="orders"} == 1`)

	for _, h := range holds {
		_ = h.Release(bg) // one is lost
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	redis.Kill()
	s.await(`redlatch_server_up == 0 unless on () redlatch_server_held`)
	checkMetrics(t, promtool, target.URL)
	redis.Restart()
	s.await(`redlatch_server_up == 1 and on () redlatch_server_lost_total{reason="gone"} == 1`)
}

// checkMetrics has promtool look at what is served: it lints, too.
func checkMetrics(t *testing.T, promtool, url string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(string(text))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s\n%s", err, out, fmt.Sprintf("%.4000s", text))
	}
}
