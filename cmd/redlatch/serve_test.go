package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

var served = regexp.MustCompile(`(?m)^http://127\.0\.0\.1:\d+/$`)

// serve starts serve, and returns the address that it prints.
func (r *redis) serve(t *testing.T, args ...string) (*job, string) {
	t.Helper()
	j := start(t, r.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--interval", "1s"}, args...)...))
	eventually(t, "an address", func() bool { return served.MatchString(j.output()) }, j.output)
	return j, served.FindString(j.output())
}

func fetch(t *testing.T, url, host string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// What its user sees, on a server that goes away and comes back, until ctrl-C.
func TestServe(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders<b>", time.Hour)
	r.hold("stock", time.Hour)
	j, url := r.serve(t, "orders*")
	code, text := fetch(t, url, "")
	contains(t, text, "orders&lt;b&gt;", "redisson", r.Addr(), "<b>1</b> listed")
	if code != http.StatusOK || strings.Contains(text, "stock") || strings.Contains(text, password) {
		t.Errorf("%d: %s", code, text)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"events?name=stock", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	until := func(what string) {
		t.Helper()
		for {
			line, err := events.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if strings.Contains(line, what) {
				return
			}
		}
	}
	until("lock, held")
	ready := func(want int, says string) {
		t.Helper()
		eventually(t, says, func() bool {
			code, text := fetch(t, url+"readyz", "")
			return code == want && strings.Contains(text, says) && !strings.Contains(text, password)
		}, j.output)
	}
	ready(http.StatusOK, "ok")
	r.Close()
	until("has not answered since")
	ready(http.StatusServiceUnavailable, "server unavailable")
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	until("Live")
	ready(http.StatusOK, "ok")
	j.signal(os.Interrupt)
	j.ends(0)
}

// The name of another host that leads here opens nothing: its page could read what
// this one shows.
func TestServeIsForThisMachine(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	_, url := r.serve(t)
	for host, want := range map[string]int{
		"": 200, "localhost:1": 200, "LOCALHOST": 200, "a.localhost:80": 200, "127.0.0.1": 200, "[::1]:80": 200, "127.9.9.9:1": 200,
		"example.com": 421, "example.com:80": 421, "localhost.example.com": 421, "notlocalhost": 421, "10.0.0.1:80": 421, "0.0.0.0": 421,
	} {
		code, text := fetch(t, url, host)
		if code != want || want == 421 && !strings.Contains(text, "for this machine alone") {
			t.Errorf("%q: %d %s", host, code, text)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--interval 100ms", exitUsage, "at least 1s"},
		{"--listen 0.0.0.0:0", exitUsage, "no authentication"},
		{"--listen :0", exitUsage, "add --unauthenticated"},
		{"--listen nowhere", exitUsage, "write it as 127.0.0.1:7637"},
		{"--listen " + busy.Addr().String(), exitUnavailable, "another program has that address"},
	} {
		res := r.run(t, append([]string{"serve"}, strings.Fields(c.args)...)...)
		if res.code != c.code || res.out != "" || !strings.Contains(res.err, c.text) {
			t.Errorf("%s: %+v", c.args, res)
		}
	}
	open := start(t, r.command("serve", "--listen", "0.0.0.0:0", "--unauthenticated"))
	open.says("http://")
	open.signal(os.Interrupt)
	open.ends(0)
	r.Close()
	if res := r.run(t, "serve", "--listen", "127.0.0.1:0"); res.code != exitUnavailable || res.out != "" {
		t.Errorf("%+v", res)
	}
}
