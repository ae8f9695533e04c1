package redlatchtest

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/pipe"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// A Server is a Redis server inside the process. It has no address: [Server.Dial]
// makes the connections to it. [Server.Stop] and [Server.Pause] are its outages.
// It is safe for concurrent use.
type Server struct {
	tb   testing.TB
	mini *miniredis.Miniredis
	kept *miniredis.RedisDB // what the server keeps, as it was when somebody last asked it

	mu      sync.Mutex // guards what follows
	links   map[*link]bool
	stopped bool
	paused  chan struct{} // closed when a pause ends; nil: there is none
}

// NewServer starts a server, which ends with the test. In a synctest bubble,
// call it inside the bubble.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{tb: tb, mini: miniredis.NewMiniRedis()}
	s.mini.ClockTTL(true)
	s.kept = s.mini.DB(0)
	tb.Cleanup(func() {
		s.Start()
		s.mini.Close()
	})
	register(tb, s)
	return s
}

// Dial connects to the server, in memory. ctx is not used after Dial has
// returned.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := s.mini.Dial()
	if err != nil {
		return nil, err
	}
	l, err := s.link(c)
	if err != nil {
		return nil, err
	}
	return pipe.Buffered(l), nil
}

// Redis returns a driver for the server, to make clients with [redlatch.New],
// which leave it open. It is closed when the test ends, after the functions that
// the test registers with Cleanup from now on. So close the clients in such
// functions, or in the test. [Server.Client] does all of that.
func (s *Server) Redis() driver.Redis { return s.Through(s.Dial) }

// Through does what [Server.Redis] does, with connections that dial makes, for
// example through a proxy.
func (s *Server) Through(dial func(ctx context.Context) (net.Conn, error)) driver.Redis {
	s.tb.Helper()
	d, err := redlatchrueidis.New(rueidis.ClientOption{
		InitAddress:       []string{"embedded"},
		ForceSingleClient: true, // miniredis looks like a cluster
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx)
		},
		// The default buffers, for thousands of requests at a time, would be
		// most of what a small test costs.
		ReadBufferEachConn: 8 << 10, WriteBufferEachConn: 8 << 10, RingScaleEachConn: 8,
	})
	if err != nil {
		s.tb.Fatal("redlatchtest: ", err) // not by the server's fault: these options are wrong
	}
	s.tb.Cleanup(func() { _ = d.Close() })
	return shared{d}
}

// A shared driver stays open when its clients are closed.
type shared struct{ redis }

type redis interface {
	driver.Batcher
	driver.Acker
	driver.Sharer
	driver.Subscriber
}
