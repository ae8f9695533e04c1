package faultnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// bubble runs f in fake time with a fresh server and proxy. It fails when a
// goroutine of the proxy outlives Close, or a server connection does.
func bubble(t *testing.T, f func(t *testing.T, s *fake, p *faultnet.Proxy)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		p := faultnet.New(s.dial)
		t.Cleanup(func() {
			p.Close()
			synctest.Wait()
			if n := s.open(); n != 0 {
				t.Errorf("%d server connections are open after Close", n)
			}
		})
		f(t, s, p)
	})
}

func dial(t *testing.T, p *faultnet.Proxy) *peer {
	t.Helper()
	c, err := p.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(t, c)
}

func command(name string) func(faultnet.Request) bool {
	return func(r faultnet.Request) bool { return strings.EqualFold(strings.Join(r.Args, " "), name) }
}

func TestPassesEveryShapeOfReply(t *testing.T) {
	for _, raw := range []string{
		"+OK|", "-ERR x|", ":5|", "$3|a\nb|", "$0||", "$-1|", "*-1|", "*0|", "*2|*1|:1|$-1|",
		"_|", "#t|", ",1.5|", "(123|", "=7|txt:abc|", "!3|ERR|", "~2|+a|+b|", "%1|+k|%1|+k|*0|", "%0|",
		"|1|+ttl|:3|*1|:1|",
	} {
		bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
			var reply string
			if strings.HasPrefix(raw, "|") { // an attribute, whose type byte is "|"
				reply = "|" + strings.ReplaceAll(raw[1:], "|", "\r\n")
			} else {
				reply = strings.ReplaceAll(raw, "|", "\r\n")
			}
			p.SetRule(faultnet.First(command("INCR c"), faultnet.DropReply))
			c := dial(t, p)
			// The reply behind it is dropped only if this one is taken as one.
			if _, err := io.WriteString(c.c, fmt.Sprintf("*2\r\n$3\r\nRAW\r\n$%d\r\n%s\r\n", len(reply), reply)+encode("INCR c")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(reply))
			if _, err := io.ReadFull(c.r, got); err != nil || string(got) != reply {
				t.Fatalf("got %q (%v), want %q", got, err, reply)
			}
			c.wantClosed()
		})
	}
}

func TestRequestsAreCompleteAndOrdered(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.Record(true)
		c := dial(t, p)
		for _, b := range []byte(encode("incr a") + "\r\nping\r\n*0\r\n" + encode("INCR a")) {
			if _, err := c.c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		c.want(":1|+PONG|:2|")
		d := dial(t, p)
		d.send("PING")
		d.want("+PONG|")
		var got []string
		for _, r := range p.Requests() {
			got = append(got, fmt.Sprint(r.Conn, r.N, r.Args))
		}
		if want := "1 1 [INCR a]; 1 2 [PING]; 1 3 [INCR a]; 2 4 [PING]"; strings.Join(got, "; ") != want {
			t.Fatalf("log %q, want %q", strings.Join(got, "; "), want)
		}
		p.Record(false)
		d.send("PING")
		d.want("+PONG|")
		if n := len(p.Requests()); n != 4 {
			t.Fatalf("%d requests in the log after Record(false), want 4", n)
		}
	})
}

func TestScript(t *testing.T) {
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // of "return 1"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"EVAL", "return 1", "0"}, sha},
		{[]string{"EVALSHA", strings.ToUpper(sha), "0"}, sha},
		{[]string{"EVALSHA_RO", sha, "0"}, sha},
		{[]string{"EVAL"}, ""},
		{[]string{"GET", "return 1"}, ""},
	} {
		if got := (faultnet.Request{Args: c.args}).Script(); got != c.want {
			t.Errorf("Script of %q = %q, want %q", c.args, got, c.want)
		}
	}
}

func TestDropReply(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("INCR b"), faultnet.DropReply))
		c := dial(t, p)
		c.send("INCR a", "INCR b", "INCR c")
		c.want(":1|")
		c.wantClosed()
		synctest.Wait()
		if h := s.history(); h != "INCR a, INCR b, INCR c" {
			t.Fatalf("the server ran %q", h)
		}
		c = dial(t, p)
		c.send("INCR b")
		c.want(":2|")
	})
}

func TestStallReply(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("INCR b"), faultnet.StallReply))
		c := dial(t, p)
		c.send("INCR a", "INCR b", "INCR c")
		c.want(":1|")
		c.wantSilence()
		c.send("QUIT") // the server's end of the connection does not show either
		c.wantSilence()
		if h := s.history(); h != "INCR a, INCR b, INCR c, QUIT" {
			t.Fatalf("the server ran %q", h)
		}
		p.BreakAll()
		c.wantClosed()
	})
}

func TestHoldAndDeliver(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		var h faultnet.Held
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Wait without a request: %v", err)
		}
		if _, ok := h.Request(); ok {
			t.Fatal("a request out of nothing")
		}
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if r.Args[0] == "WHO" {
				return faultnet.Hold(&h)
			}
			return faultnet.Pass
		})
		c := dial(t, p)
		c.send("AUTH me pw", "INCR a", "SELECT 7", "WHO", "INCR lost")
		if err := h.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.want("+OK|:1|+OK|")
		c.wantClosed()
		if r, ok := h.Request(); !ok || r.N != 4 || r.Args[0] != "WHO" {
			t.Fatalf("held %v %v", r, ok)
		}
		time.Sleep(time.Hour)
		if got := s.history(); got != "AUTH me pw, INCR a, SELECT 7" {
			t.Fatalf("the server ran %q before Deliver", got)
		}
		for range 2 {
			if reply, err := h.Deliver(t.Context()); err != nil || reply != "$4\r\nme@7\r\n" {
				t.Fatalf("Deliver: %q, %v", reply, err)
			}
		}
		d := dial(t, p) // h is full: passes
		d.send("WHO")
		d.want("$8|nobody@0|")
		if got := s.count("lost"); got != 0 {
			t.Fatal("a request behind the held one reached the server")
		}
		s.setRefuse(true)
		if _, err := h.Deliver(t.Context()); err == nil {
			t.Fatal("Deliver to a dead server succeeded")
		}
		s.setRefuse(false)
		p.Close()
		if _, err := h.Deliver(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("Deliver after Close: %v", err)
		}
	})
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := faultnet.New(func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }() // reads and never answers
			return near, nil
		})
		defer p.Close()
		var h faultnet.Held
		p.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Hold(&h) })
		c := dial(t, p)
		c.send("PING")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Deliver: %v", err)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("INCR a"), faultnet.Delay(time.Minute)))
		c, other := dial(t, p), dial(t, p)
		c.send("INCR a", "INCR b")
		other.send("INCR c")
		other.want(":1|")
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if h := s.history(); h != "INCR c" {
			t.Fatalf("the server ran %q within the delay", h)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if h := s.history(); h != "INCR c, INCR a, INCR b" {
			t.Fatalf("the server ran %q after the delay", h)
		}
		c.want(":1|:1|")
	})
}

func TestDelayedRequestOutlivesItsConnection(t *testing.T) {
	for name, end := range map[string]func(*peer, *faultnet.Proxy){
		"client closes": func(c *peer, _ *faultnet.Proxy) { c.c.Close() },
		"BreakAll":      func(_ *peer, p *faultnet.Proxy) { p.BreakAll() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				p.SetRule(faultnet.First(command("INCR a"), faultnet.Delay(time.Minute)))
				c := dial(t, p)
				c.send("INCR a", "INCR b")
				synctest.Wait()
				end(c, p)
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := s.history(); h != "INCR a, INCR b" {
					t.Fatalf("the server ran %q", h)
				}
				if n := s.open(); n != 0 {
					t.Fatalf("%d server connections are still open", n)
				}
			})
		})
	}
}

func TestCloseDropsDelayed(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("INCR a"), faultnet.Delay(time.Minute)))
		c := dial(t, p)
		c.send("INCR a")
		synctest.Wait()
		p.Close()
		c.wantClosed()
		time.Sleep(time.Hour)
		if h := s.history(); h != "" {
			t.Fatalf("the server ran %q", h)
		}
		if _, err := p.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("Dial after Close: %v", err)
		}
		if _, err := p.Listen(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("Listen after Close: %v", err)
		}
	})
}

func TestDuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("INCR a"), faultnet.Duplicate))
		c := dial(t, p)
		c.send("INCR a", "INCR b")
		c.want(":1|:1|")
		c.send("INCR a")
		c.want(":3|")
	})
}

func TestBlackhole(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.Record(true)
		used, idle := dial(t, p), dial(t, p)
		used.send("INCR a")
		used.want(":1|")
		p.Blackhole(true)
		used.send("INCR a")
		late, unused := dial(t, p), dial(t, p)
		late.send("INCR a")
		used.wantSilence()
		late.wantSilence()
		if n := s.count("a"); n != 1 {
			t.Fatalf("a = %d: a request crossed the black hole", n)
		}
		if n := len(p.Requests()); n != 3 {
			t.Fatalf("%d requests in the log, want 3", n)
		}
		p.Blackhole(false)
		used.send("INCR b") // cannot skip what was lost
		used.wantSilence()
		idle.send("INCR c")
		idle.want(":1|")
		unused.send("INCR c")
		unused.want(":2|")
		if n := s.count("b"); n != 0 {
			t.Fatal("a connection skipped the request that it lost")
		}
		s.setRefuse(true)
		p.Blackhole(true)
		c := dial(t, p)
		p.Blackhole(false)
		c.send("PING")
		c.wantClosed()
		if _, err := p.Dial(t.Context()); err == nil {
			t.Fatal("Dial to a dead server succeeded")
		}
	})
}

func TestBlackholeHidesClosing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		p.SetRule(faultnet.First(command("QUIT"), faultnet.Delay(time.Minute)))
		c := dial(t, p)
		c.send("QUIT")
		p.OneWay(true)
		c.wantSilence()
		if h := s.history(); h != "QUIT" {
			t.Fatalf("the server ran %q", h)
		}
		p.OneWay(false)
		c.wantSilence()
	})
}

func TestHoldInBlackholeCatchesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		var h faultnet.Held
		p.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Hold(&h) })
		p.Blackhole(true)
		c := dial(t, p)
		c.send("PING")
		c.wantSilence()
		if _, ok := h.Request(); ok {
			t.Fatal("caught a request that vanished")
		}
	})
}

func TestOneWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		c := dial(t, p)
		p.OneWay(true)
		c.send("INCR a")
		c.wantSilence()
		p.OneWay(false)
		c.send("INCR a")
		c.wantSilence()
		if n := s.count("a"); n != 2 {
			t.Fatalf("a = %d, want 2", n)
		}
		d := dial(t, p)
		d.send("INCR a")
		d.want(":3|")
	})
}

func TestBreakAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		a, b := dial(t, p), dial(t, p)
		p.BreakAll()
		a.wantClosed()
		b.wantClosed()
		synctest.Wait()
		if n := s.open(); n != 0 {
			t.Fatalf("%d server connections are open", n)
		}
		c := dial(t, p)
		c.send("PING")
		c.want("+PONG|")
	})
}

func TestPubSub(t *testing.T) {
	for _, resp3 := range []bool{false, true} {
		t.Run(fmt.Sprintf("resp3=%v", resp3), func(t *testing.T) {
			mark := "*"
			hello := func(c *peer) {}
			if resp3 {
				mark = ">"
				hello = func(c *peer) {
					c.send("HELLO 3")
					c.want("%2|+server|+fake|+modules|*1|%1|+a|_|")
				}
			}
			sub := func(kind, ch string, n int) string {
				return fmt.Sprintf("%s3|$%d|%s|$%d|%s|:%d|", mark, len(kind), kind, len(ch), ch, n)
			}
			message := mark + "3|$7|message|$1|x|$2|hi|"
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				p.SetRule(faultnet.First(command("INCR dropped"), faultnet.DropReply))
				c := dial(t, p)
				hello(c)
				c.send("INCR a", "SUBSCRIBE x y", "INCR a", "PING")
				c.want(":1|" + sub("subscribe", "x", 1) + sub("subscribe", "y", 2) + ":2|+PONG|")
				s.publish("x", "hi")
				c.want(message)
				c.send("UNSUBSCRIBE y", "SUBSCRIBE forbidden", "UNSUBSCRIBE", "UNSUBSCRIBE", "SUBSCRIBE x")
				c.want(sub("unsubscribe", "y", 1) + "-NOPERM no|" + sub("unsubscribe", "x", 0))
				c.want(mark + "3|$11|unsubscribe|$-1|:0|" + sub("subscribe", "x", 1))
				// Still in step: messages are not taken as the reply, and exactly
				// the right reply is dropped.
				s.publish("x", "hi")
				c.want(message)
				c.send("INCR a", "BAD", "INCR dropped", "INCR a")
				c.want(":3|-ERR bad|")
				c.wantClosed()
			})
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				p.SetRule(faultnet.First(command("SUBSCRIBE x"), faultnet.DropReply))
				c := dial(t, p)
				hello(c)
				c.send("SUBSCRIBE x")
				c.wantClosed()
			})
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				p.SetRule(faultnet.First(command("SUBSCRIBE x"), faultnet.StallReply))
				c := dial(t, p)
				hello(c)
				c.send("SUBSCRIBE x")
				synctest.Wait()
				s.publish("x", "hi")
				c.wantSilence()
			})
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				p.SetRule(faultnet.First(command("SUBSCRIBE x y"), faultnet.Duplicate))
				c := dial(t, p)
				hello(c)
				c.send("SUBSCRIBE x y", "PING")
				c.want(sub("subscribe", "x", 1) + sub("subscribe", "y", 2) + "+PONG|")
			})
			bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
				var h faultnet.Held
				p.SetRule(faultnet.First(command("INCR a"), faultnet.Hold(&h)))
				c := dial(t, p)
				hello(c)
				c.send("SUBSCRIBE x", "UNSUBSCRIBE", "INCR a")
				c.want(sub("subscribe", "x", 1) + sub("unsubscribe", "x", 0))
				c.wantClosed()
				if reply, err := h.Deliver(t.Context()); err != nil || reply != ":1\r\n" {
					t.Fatalf("Deliver: %q, %v", reply, err)
				}
			})
		})
	}
}

// A client that writes a long pipeline before it reads the first reply must not
// deadlock with a server that answers while it reads.
func TestLongPipelineOverPipes(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		c := dial(t, p)
		const n = 5000
		c.send(strings.Split(strings.TrimSuffix(strings.Repeat("INCR a,", n), ","), ",")...)
		for i := range n {
			c.want(fmt.Sprintf(":%d|", i+1))
		}
	})
}

func TestMalformedRequestEndsTheConnection(t *testing.T) {
	for _, raw := range []string{"*1\r\n:5\r\n", "*x\r\n", "*1\r\n$-1\r\n", "*1\r\n$1\r\nabc", "*1\r\n$999999999999\r\n"} {
		bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
			c := dial(t, p)
			go func() { _, _ = io.WriteString(c.c, raw) }()
			c.wantClosed()
			if h := s.history(); h != "" {
				t.Fatalf("%q reached the server: %q", raw, h)
			}
		})
	}
}

func TestMalformedReplyEndsTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		c := dial(t, p)
		c.send(`RAW ?what\r\n`)
		c.wantClosed()
	})
}

func TestConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
		var seen sync.Map
		p.Record(true)
		p.SetRule(func(r faultnet.Request) faultnet.Action {
			if _, dup := seen.LoadOrStore(r.N, true); dup {
				t.Errorf("N %d was given twice", r.N)
			}
			switch r.N % 4 {
			case 1:
				return faultnet.Duplicate
			case 2:
				return faultnet.Delay(time.Millisecond)
			}
			return faultnet.Pass
		})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				c := dial(t, p)
				for range 50 {
					c.send(fmt.Sprintf("RAW +%d\\r\\n", i))
					c.want(fmt.Sprintf("+%d|", i))
				}
			})
		}
		wg.Wait()
		if n := len(p.Requests()); n != 1000 {
			t.Fatalf("%d requests in the log, want 1000", n)
		}
	})
}

// Closing at any moment ends every goroutine; the bubble sees the ones left.
func TestCloseAtAnyMoment(t *testing.T) {
	for i := range 50 {
		bubble(t, func(t *testing.T, s *fake, p *faultnet.Proxy) {
			actions := []faultnet.Action{
				faultnet.Pass, faultnet.DropReply, faultnet.StallReply, faultnet.Duplicate,
				faultnet.Delay(time.Second), faultnet.Hold(new(faultnet.Held)),
			}
			p.SetRule(func(r faultnet.Request) faultnet.Action { return actions[int(r.N)%len(actions)] })
			for range 8 {
				go func() {
					for range 5 {
						c, err := p.Dial(context.Background())
						if err != nil {
							return
						}
						_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
						_, _ = io.WriteString(c, encode("INCR a")+encode("SUBSCRIBE x")+encode("INCR b"))
						_, _ = io.Copy(io.Discard, c)
						c.Close()
					}
				}()
			}
			time.Sleep(time.Duration(i) * 20 * time.Millisecond)
		})
	}
}
