package main

import (
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

var exported = regexp.MustCompile(`(?m)^http://127\.0\.0\.1:\d+/metrics$`)

// export starts exporter, and returns the address that it prints.
func (r *redis) export(t *testing.T, args ...string) (*job, string) {
	t.Helper()
	j := start(t, r.command(append([]string{"exporter", "--listen", "127.0.0.1:0"}, args...)...))
	eventually(t, "an address", func() bool { return exported.MatchString(j.output()) }, j.output)
	return j, exported.FindString(j.output())
}

// until scrapes until a line is there, and returns the page.
func until(t *testing.T, url, line string) (text string) {
	t.Helper()
	eventually(t, line, func() bool {
		var code int
		if code, text = fetch(t, url, ""); code != http.StatusOK {
			t.Errorf("%d %s", code, text)
		}
		return strings.Contains("\n"+text, "\n"+line+"\n")
	}, func() string { return text })
	if strings.Contains(text, password) {
		t.Error(text)
	}
	return text
}

// What Prometheus reads, from a server that goes away and comes back, until
// ctrl-C.
func TestExporter(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders:1", time.Hour)
	r.hold("orders:2", time.Hour)
	r.hold(`"}`+"\n\xff:1", time.Hour)
	r.hold("nightly", time.Hour)
	j, url := r.export(t)
	text := until(t, url, `redlatch_server_held{prefix="orders"} 2`)
	contains(t, text, "redlatch_server_up 1\n", `redlatch_server_objects{kind="lock"} 4`, `redlatch_server_held{prefix=""} 1`,
		`redlatch_server_held{prefix="\"}`+"\uFFFD\uFFFD"+`"} 1`, `redlatch_server_clients{answered="true"} 1`)
	if code, text := fetch(t, strings.TrimSuffix(url, "metrics"), ""); code != http.StatusOK || !strings.Contains(text, "/metrics") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := fetch(t, url, "example.com"); code != http.StatusMisdirectedRequest {
		t.Errorf("under the name of another host: %d", code)
	}
	keys := r.DB(0).Keys()
	r.Close()
	if text := until(t, url, "redlatch_server_up 0"); strings.Contains(text, "held") {
		t.Error(text)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, url, `redlatch_server_held{prefix="orders"} 2`)
	if now := r.DB(0).Keys(); strings.Join(now, " ") != strings.Join(keys, " ") {
		t.Errorf("it has left %q, there were %q", now, keys)
	}
	j.signal(os.Interrupt)
	j.ends(0)
}

// An exporter that is started during an outage says that there is one, and tells
// the rest as soon as it is over.
func TestAnExporterWaitsForItsServer(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders:1", time.Hour)
	r.Close()
	j, url := r.export(t)
	if text := until(t, url, "redlatch_server_up 0"); !strings.Contains(text, `redlatch_server_lost_total{reason="gone"} 0`) {
		t.Error(text)
	}
	j.says("the server does not answer")
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, url, `redlatch_server_held{prefix="orders"} 1`)
	j.says("the server answers")
	j.signal(os.Interrupt)
	j.ends(0)

	r.SetError("LOADING Redis is loading the dataset in memory")
	j, url = r.export(t)
	until(t, url, "redlatch_server_up 0")
	r.SetError("WRONGPASS invalid username-password pair") // somebody has to mend that, and may
	j.says("WRONGPASS")
	eventually(t, "why", func() bool {
		_, text := fetch(t, url, "")
		return strings.HasPrefix(text, "# the server could not be asked yet: ") && strings.Contains(text, "WRONGPASS")
	}, j.output)
	r.SetError("")
	until(t, url, "redlatch_server_up 1")
	j.signal(os.Interrupt)
	j.ends(0)

	r.Close()
	j, url = r.export(t)
	until(t, url, "redlatch_server_up 0")
	j.signal(os.Interrupt) // it still waits
	j.ends(0)
}

// The pages and the metrics are one server's, and the metrics are there only if
// somebody wants them.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders:1", time.Hour)
	r.hold("stock:1", time.Hour)
	_, url := r.serve(t, "--metrics", "--prefixes", "orders:,jobs:")
	text := until(t, url+"metrics", `redlatch_server_held{prefix="orders:"} 1`)
	contains(t, text, `redlatch_server_held{prefix="jobs:"} 0`, `redlatch_server_held{prefix="other"} 1`)
	if _, text := fetch(t, url, ""); !strings.Contains(text, "orders:1") {
		t.Error(text)
	}
	_, url = r.serve(t)
	if code, text := fetch(t, url+"metrics", ""); code != http.StatusNotFound {
		t.Errorf("%d %s", code, text)
	}
}

// On a real server the clients say who waits, and nothing stays there.
func TestExporterOnARealServer(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	r := &redis{nil, "redis://" + s.Addr()}
	j, url := r.export(t)
	holding := start(t, r.command("run", "orders:42", "--", "sleep", "1000"))
	until(t, url, `redlatch_server_held{prefix="orders"} 1`)
	waiting := start(t, r.command("run", "orders:42", "--", "true"))
	text := until(t, url, `redlatch_server_waiters{prefix="orders"} 1`)
	contains(t, text, `redlatch_server_clients{answered="true"} 3`, "redlatch_server_complete 1")
	if strings.Contains(text, `redlatch_server_oldest_hold_seconds{prefix="orders"} 0`+"\n") {
		t.Error(text)
	}
	holding.signal(os.Interrupt)
	holding.ends(128 + 2)
	waiting.ends(0)
	text = until(t, url, `redlatch_server_held{prefix="orders"} 0`)
	contains(t, text, `redlatch_server_waiters{prefix="orders"} 0`)
	if keys := s.Keys(); len(keys) > 0 {
		t.Errorf("there is %q", keys)
	}
	j.signal(os.Interrupt)
	j.ends(0)
}

// What somebody else has to mend ends it at once, and its server's silence does
// not.
func TestExporterRefuses(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	stranger := &redis{r.Miniredis, strings.Replace(r.url, password, "wrong", 1)}
	for _, c := range []struct {
		redis *redis
		args  string
		code  int
		text  string
	}{
		{r, "exporter --interval 100ms", exitUsage, "at least 1s"},
		{r, "exporter --listen 0.0.0.0:0", exitUsage, "no authentication"},
		{r, "exporter --listen " + busy.Addr().String(), exitUnavailable, "another program has that address"},
		{r, "exporter --url nonsense://x", exitUsage, "unknown scheme"},
		{stranger, "exporter --listen 127.0.0.1:0", exitUnavailable, "check the user"},
		{r, "serve --prefixes orders:", exitUsage, "add --metrics"},
	} {
		res := c.redis.run(t, strings.Fields(c.args)...)
		if res.code != c.code || res.out != "" || !strings.Contains(res.err, c.text) {
			t.Errorf("%s: %+v", c.args, res)
		}
	}
	open := start(t, r.command("exporter", "--listen", "0.0.0.0:0", "--unauthenticated"))
	open.says("/metrics")
	open.signal(os.Interrupt)
	open.ends(0)
}
