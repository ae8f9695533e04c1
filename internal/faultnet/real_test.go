package faultnet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
)

// withServers runs f once with every server, reached through a proxy.
func withServers(t *testing.T, f func(t *testing.T, s *testserver.Server, p *faultnet.Proxy)) {
	t.Helper()
	t.Parallel()
	for _, k := range testserver.Kinds() {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, k, testserver.Open...) // the clients are not redlatch
			p := faultnet.New(s.Dial)
			t.Cleanup(p.Close)
			f(t, s, p)
		})
	}
}

func TestRealScripts(t *testing.T) {
	withServers(t, func(t *testing.T, s *testserver.Server, p *faultnet.Proxy) {
		sha, _ := s.MustDo("SCRIPT", "LOAD", "return redis.call('incr',KEYS[1])").(string)
		var h faultnet.Held
		p.SetRule(faultnet.First(func(r faultnet.Request) bool { return r.Script() == sha && r.Args[3] == "held" }, faultnet.Hold(&h)))
		c := dial(t, p)
		c.send("SELECT 5", "EVALSHA "+sha+" 1 a", "MULTI", "INCR a", "EXEC", "EVALSHA "+strings.ToUpper(sha)+" 1 held")
		c.want("+OK|:1|+OK|+QUEUED|*1|:2|")
		c.wantClosed()
		s.MustDo("SELECT", "5")
		if v := s.MustDo("GET", "held"); v != nil {
			t.Fatalf("held = %v before Deliver", v)
		}
		if reply, err := h.Deliver(t.Context()); err != nil || reply != ":1\r\n" {
			t.Fatalf("Deliver: %q, %v", reply, err)
		}
		s.MustDo("SCRIPT", "FLUSH")
		if reply, err := h.Deliver(t.Context()); err != nil || !strings.HasPrefix(reply, "-NOSCRIPT") {
			t.Fatalf("Deliver without the script: %q, %v", reply, err)
		}
	})
}

func TestRealPubSub(t *testing.T) {
	withServers(t, func(t *testing.T, s *testserver.Server, p *faultnet.Proxy) {
		for _, mark := range []string{"*", ">"} {
			var h faultnet.Held
			p.SetRule(faultnet.First(command("PING end"), faultnet.Hold(&h)))
			c := dial(t, p)
			_ = c.c.SetReadDeadline(time.Now().Add(time.Minute))
			line := func() string {
				l, err := c.r.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			if mark == ">" {
				c.send("HELLO 3", "ECHO hello")
				l := line()
				for l != "hello\r\n" { // the map in front differs from server to server
					l = line()
				}
			}
			c.send("SUBSCRIBE x y", "PSUBSCRIBE p*", "UNSUBSCRIBE", "PUNSUBSCRIBE", "UNSUBSCRIBE", "SUBSCRIBE x")
			for range 8 { // x and y leave in any order
				first := line()
				if strings.HasPrefix(first, "-NOSUB ") { // Valkey refuses an UNSUBSCRIBE from nothing
					continue
				}
				if first != mark+"3\r\n" {
					t.Fatalf("a confirmation starts with %q", first)
				}
				line() // size of the kind
				line() // kind
				if size := line(); size != "$-1\r\n" && size != "_\r\n" {
					line() // channel
				}
				line() // count
			}
			s.MustDo("PUBLISH", "x", "hi")
			c.want(mark + "3|$7|message|$1|x|$2|hi|")
			// If the proxy is out of step, the end comes too early or never.
			c.send("UNSUBSCRIBE x", "PING a", "PING end")
			c.want(mark + "3|$11|unsubscribe|$1|x|:0|$1|a|")
			c.wantClosed()
		}
	})
}

// What a client had sent runs although it has closed its connection, every time
// and completely.
func TestRealLateRequests(t *testing.T) {
	withServers(t, func(t *testing.T, s *testserver.Server, p *faultnet.Proxy) {
		addr, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if r.Args[0] == "GET" {
				return faultnet.Delay(5 * time.Millisecond)
			}
			return faultnet.Pass
		})
		const n = 200
		for i := range n {
			var c *peer
			if i%2 == 0 {
				c = dial(t, p)
			} else {
				conn, err := netDial(t.Context(), addr)
				if err != nil {
					t.Fatal(err)
				}
				c = newPeer(t, conn)
			}
			c.send("PING", "GET x", "INCR n", "INCR n", "INCR n")
			c.want("+PONG|")
			c.c.Close()
		}
		eventually(t, "all increments ran", func() bool { return s.MustDo("GET", "n") == fmt.Sprint(3*n) })
	})
}

func TestRealPausedServer(t *testing.T) {
	withServers(t, func(t *testing.T, s *testserver.Server, p *faultnet.Proxy) {
		c := dial(t, p)
		c.send("PING")
		c.want("+PONG|")
		s.Pause()
		c.send("INCR n")
		c.c.Close()
		p.BreakAll()
		s.Resume()
		eventually(t, "the request ran", func() bool { return s.MustDo("GET", "n") == "1" })
		d := dial(t, p)
		s.Pause()
		d.send("INCR n")
		ended := make(chan struct{})
		go func() { p.Close(); close(ended) }()
		select {
		case <-ended: // does not wait for the server
		case <-time.After(time.Minute):
			t.Error("Close waits for a paused server")
		}
		s.Resume()
	})
}

func TestRealServerKilled(t *testing.T) {
	withServers(t, func(t *testing.T, s *testserver.Server, p *faultnet.Proxy) {
		c := dial(t, p)
		c.send("PING")
		c.want("+PONG|")
		s.Kill()
		c.wantClosed()
		if _, err := p.Dial(context.Background()); err == nil {
			t.Fatal("Dial to a killed server succeeded")
		}
		s.Restart()
		c = dial(t, p)
		c.send("PING")
		c.want("+PONG|")
	})
}
