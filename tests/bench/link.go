package main

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/faultnet"
)

// A link is a way to the server on which each round trip takes longer: what a
// client sends arrives later.
type link struct {
	addr  string
	proxy *faultnet.Proxy
	over  chan struct{}
	done  sync.WaitGroup
}

func newLink(server string, delay time.Duration) (*link, error) {
	l := &link{over: make(chan struct{})}
	l.proxy = faultnet.New(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	})
	l.proxy.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Delay(delay) })
	addr, err := l.proxy.Listen()
	if err != nil {
		l.proxy.Close()
		return nil, err
	}
	l.addr = addr
	l.done.Go(l.keepTime)
	return l, nil
}

// keepTime makes timers of half a millisecond last that long: in a process that
// does nothing else they go off up to a millisecond late, which is the unit of
// what Go sleeps in then. It takes a tenth of a processor.
func (l *link) keepTime() {
	for {
		select {
		case <-l.over:
			return
		default:
		}
		pause := unix.Timeval{Usec: 40}
		_, _ = unix.Select(0, nil, nil, nil, &pause)
		runtime.Gosched() // looks at the timers
	}
}

func (l *link) close() {
	close(l.over)
	l.done.Wait()
	l.proxy.Close()
}
