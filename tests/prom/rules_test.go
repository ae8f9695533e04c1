package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/redlatchprom"
	"github.com/redlatch/redlatch/redlatchtest"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const pages = "../../redlatchprom" // the folder of the rules and the dashboard

// program returns the path of promtool, or of prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs " + name)
	}
	look := []string{"../../.servers/bin/" + name, name}
	if dir := os.Getenv("REDLATCH_SERVERS"); dir != "" {
		look = []string{filepath.Join(dir, name)}
	}
	for _, file := range look {
		if path, err := exec.LookPath(file); err == nil {
			path, err = filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("no %s in %q: run scripts/promtool.sh, or install the Debian package prometheus", name, look)
	return ""
}

// The rules are what Prometheus reads, and each alert fires when it should and
// only then: rules_test.yml tells the stories.
func TestTheRulesFireWhenTheyShould(t *testing.T) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = pages
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// told serves metrics until the test is over, or dead, and returns where.
func told(t *testing.T, m *redlatchprom.Metrics, dead *atomic.Bool) (addr string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dead.Load() {
			panic(http.ErrAbortHandler)
		}
		metrics.ServeHTTP(w, r)
	}))
	t.Cleanup(target.Close)
	return target.Listener.Addr().String()
}

// A server is a Prometheus.
type server struct {
	*testing.T

	url string
}

// scraping starts a Prometheus that scrapes itself and the targets of each job,
// and evaluates the rules, that often. It believes a value for as long as back if
// it is not told another.
func scraping(t *testing.T, rules string, often, back time.Duration, jobs map[string][]string) server {
	t.Helper()
	path := program(t, "prometheus")
	dir, addr := t.TempDir(), heldport.Refusing(t)
	rules, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: %dms, scrape_timeout: %[1]dms, evaluation_interval: %[1]dms}\n"+
		"rule_files: [%q]\nscrape_configs:\n- {job_name: prometheus, static_configs: [{targets: [%q]}]}\n", often.Milliseconds(), rules, addr)
	for job, targets := range jobs {
		config += fmt.Sprintf("- {job_name: %q, static_configs: [{targets: [%s]}]}\n", job, strings.Join(targets, ", "))
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--query.lookback-delta="+back.String())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("Prometheus said:\n%s", text)
		}
	})
	return server{t, "http://" + addr}
}

// ask asks a query, and returns the labels of the results; an error as long as
// there is no answer.
func (s server) ask(query string) (results []map[string]string, err error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, answer.Error)
	}
	for _, r := range answer.Data.Result {
		results = append(results, r.Metric)
	}
	return results, nil
}

// await waits until a query has a result.
func (s server) await(query string) []map[string]string {
	s.Helper()
	var results []map[string]string
	var err error
	if !locktest.Within(2*time.Minute, func() bool {
		results, err = s.ask(query)
		return err == nil && len(results) > 0
	}) {
		s.Fatalf("%s has no result: %v", query, err)
	}
	return results
}

var variable = regexp.MustCompile(`"\$(job|instance|kind)"`)

// A service is scraped, loses a lock, and somebody is woken. Its locks have odd
// names.
func TestARealPrometheusTellsOfALoss(t *testing.T) {
	program(t, "prometheus")
	m := redlatchprom.New(redlatchprom.Options{Name: func(name string) string { return name }})
	target := told(t, m, new(atomic.Bool))
	client := redlatchtest.NewClient(t, redlatch.Config{})
	m.Watch(client)
	acquire := func(name string) *redlatch.Hold {
		h, err := client.Lock(name).Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, name := range []string{"a\x00b", "c\nd\x1b[0m", "e\xff", `"f\`} {
		if err := acquire(name).Release(bg); err != nil {
			t.Fatal(err)
		}
	}
	hold := acquire("orders")

	s := scraping(t, filepath.Join(pages, "rules.yml"), time.Second, 5*time.Minute, map[string][]string{"shop": {target}})
	s.await(`redlatch_held == 1 and redlatch_clients == 1`)
	var names []string
	for _, labels := range s.await(`redlatch_hold_seconds_count{reason="released"}`) {
		names = append(names, labels["name"])
	}
	if want := []string{`"f\`, "a\uFFFDb", "c\uFFFDd\uFFFD[0m", "e\uFFFD"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("the holds are of %q, want %q", names, want)
	}
	if alerts, err := s.ask("ALERTS"); err != nil || len(alerts) > 0 {
		t.Errorf("before anything has happened: %v, %v", alerts, err)
	}

	redlatchtest.Lose(hold)
	fired := s.await(`ALERTS{alertname="RedlatchLockLost", alertstate="firing"}`)
	if len(fired) != 1 || fired[0]["reason"] != string(redlatch.LostGone) || fired[0]["job"] != "shop" {
		t.Errorf("the alerts are %v", fired)
	}

	ctx, resign := context.WithCancel(bg)
	resigned := make(chan error, 1)
	go func() {
		resigned <- election.New(client, "scheduler").Run(ctx, func(ctx context.Context, _ int64) error { <-ctx.Done(); return nil })
	}()
	defer func() {
		resign()
		t.Log(<-resigned) // as it was told
	}()
	s.await(`redlatch_leader{name="scheduler"} == 1`)

	// What the dashboard asks can be answered.
	text, err := os.ReadFile(filepath.Join(pages, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, panel := range board.Panels {
		for _, of := range panel.Targets {
			asked++
			query := strings.ReplaceAll(variable.ReplaceAllString(of.Expr, `".*"`), "$__rate_interval", "1m")
			if results, err := s.ask(query); err != nil || len(results) == 0 {
				t.Errorf("panel %q: %s has %d results: %v", panel.Title, query, len(results), err)
			}
		}
	}
	if asked == 0 {
		t.Error("the dashboard asks nothing")
	}
}
