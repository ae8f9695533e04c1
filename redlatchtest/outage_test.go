package redlatchtest

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/latch"
)

// outages are the ways in which a server can be away.
var outages = map[string]func(s *Server){"stopped": (*Server).Stop, "paused": (*Server).Pause, "paused, then stopped": func(s *Server) { s.Pause(); s.Stop() }}

func inOutage(t *testing.T, story func(t *testing.T, c *redlatch.Client, s *Server, away func(s *Server))) {
	t.Helper()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			synctest.Test(t, func(t *testing.T) {
				s := NewServer(t)
				c, err := redlatch.New(s.Redis(), redlatch.Config{})
				if err != nil {
					t.Fatal(err)
				}
				story(t, c, s, away)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A hold outlives an outage that is shorter than its lease, and nobody gets the
// lock meanwhile.
func TestAHoldOutlivesAShortOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, c *redlatch.Client, s *Server, away func(s *Server)) {
		ctx := context.Background()
		h, err := c.Lock("x").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		away(s)
		away(s)
		time.Sleep(5 * time.Second)
		s.Start()
		s.Start()
		time.Sleep(time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("the hold is lost: %v", err)
		}
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// In a long one its holder is told, callers give up in time, and all is well when
// it is over.
func TestAHoldIsLostInALongOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, c *redlatch.Client, s *Server, away func(s *Server)) {
		ctx := context.Background()
		h, err := c.Lock("x").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		away(s)
		if _, err := c.Lock("y").Acquire(ctx); !errors.Is(err, redlatch.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		<-h.Context().Done()
		var lost *redlatch.LostError
		if !errors.As(h.Err(), &lost) || lost.Reason != redlatch.LostExpired {
			t.Errorf("got %v", h.Err())
		}
		s.Start()
		next, err := c.Lock("x").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// What the server had when it was stopped it has when it is started, and what is
// sent while it is paused arrives.
func TestAServerKeepsWhatItHas(t *testing.T) {
	inOutage(t, func(t *testing.T, c *redlatch.Client, s *Server, away func(s *Server)) {
		ctx := context.Background()
		l := latch.New(c, "ready")
		if _, err := l.TrySetCount(ctx, 2); err != nil {
			t.Fatal(err)
		}
		away(s)
		down := make(chan error, 1)
		go func() { down <- l.CountDown(ctx) }()
		time.Sleep(2 * time.Second)
		s.Start()
		if err := <-down; err != nil {
			t.Error(err)
		}
		if n, err := l.Count(ctx); n != 1 || err != nil {
			t.Errorf("the count is %d, %v, want 1", n, err)
		}
	})
}

// A request that was sent while the server was paused is lost when it is stopped:
// connections end before they could go on.
func TestAServerThatIsStoppedNeverHearsWhatAPauseKeptBack(t *testing.T) {
	s := NewServer(t)
	for range 500 {
		s.Pause()
		var all [8]net.Conn
		for i := range all {
			c, err := s.Dial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "*3\r\n$3\r\nSET\r\n$5\r\nheard\r\n$1\r\n1\r\n"); err != nil {
				t.Fatal(err)
			}
			all[i] = c
		}
		for range 100 {
			runtime.Gosched() // they stand still by then
		}
		s.Stop()
		s.Start()
		for _, c := range all {
			_ = c.Close()
		}
	}
	if s.mini.Exists("heard") {
		t.Error("the server has executed a request of before its end")
	}
}
