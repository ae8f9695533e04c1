package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// inFlight is how many requests are there when the deploy comes.
const inFlight = 20

// A shop is an HTTP server on a port of its own, whose handler takes a lock, and
// another one in the middle of its work. It has taken the first one for all
// requests that are in flight.
type shop struct {
	*locktest.World

	locks   *redlatch.Client
	server  *http.Server
	closing chan struct{}   // closed when the server takes no more requests
	goOn    chan struct{}   // closed for the requests to go on
	answers <-chan []answer // of all requests
}

type answer struct {
	status int
	err    error // of the request
	end    error // of the context of the first lock, when its holder went on
}

// openShop returns a shop whose requests are in flight. What they leave behind
// stays for longer than the test waits.
func openShop(t *testing.T) *shop {
	t.Helper()
	w := locktest.InRealTime(t)
	s := &shop{World: w, closing: make(chan struct{}), goOn: make(chan struct{})}
	s.locks = w.Client(redlatch.Config{WatchdogTimeout: 10 * time.Minute, CloseTimeout: locktest.Generous})
	locked, ends := make(chan struct{}), make(chan error, inFlight)
	s.server = &http.Server{ReadHeaderTimeout: locktest.Generous, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		err := s.locks.Lock("order"+r.URL.Path).Do(r.Context(), func(ctx context.Context) error {
			locked <- struct{}{}
			select {
			case <-s.goOn:
			case <-ctx.Done():
			}
			ends <- context.Cause(ctx)
			return s.locks.Lock("stock"+r.URL.Path).Do(ctx, func(context.Context) error { return nil })
		})
		switch {
		case err == nil:
			rw.WriteHeader(http.StatusNoContent)
		case errors.Is(err, redlatch.ErrClosed):
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})}
	s.server.RegisterOnShutdown(func() { close(s.closing) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.OK(err)
	served := locktest.Later(func() error { return s.server.Serve(listener) })
	t.Cleanup(func() {
		_ = s.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	var requests []<-chan answer
	for i := range inFlight {
		requests = append(requests, locktest.Later(func() answer { return visit(t.Context(), fmt.Sprintf("http://%s/%d", listener.Addr(), i)) }))
	}
	for range inFlight {
		<-locked
	}
	s.answers = locktest.Later(func() (all []answer) {
		for _, request := range requests {
			a := <-request
			a.end = <-ends
			all = append(all, a)
		}
		return all
	})
	return s
}

// visit sends a request on a connection of its own.
func visit(ctx context.Context, url string) (a answer) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	var own http.Transport
	defer own.CloseIdleConnections()
	got, err := own.RoundTrip(r)
	if err != nil {
		return answer{err: err}
	}
	return answer{status: got.StatusCode, err: got.Body.Close()}
}

// want checks the answers to all requests, how the contexts of their first locks
// ended, and that they leave nothing.
func (s *shop) want(status int, end error) {
	s.Helper()
	for _, a := range <-s.answers {
		if a.err != nil || a.status != status || !errors.Is(a.end, end) {
			s.Errorf("%d, %v, and the first lock's context: %v; want %d and %v", a.status, a.err, a.end, status, end)
		}
	}
	s.WantNoKeys()
}

// Shutdown beside the HTTP server's, as the documents had it, ended the sections
// of the requests that were in flight: 20 of 20 were answered with 500. In this
// order each one finishes its work, also if it wants another lock for that.
func TestADeployFailsNoRequestThatIsInFlight(t *testing.T) {
	s := openShop(t)
	ctx, cancel := context.WithTimeout(bg, locktest.Generous)
	defer cancel()
	down := locktest.Later(func() error { return errors.Join(s.server.Shutdown(ctx), s.locks.Shutdown(ctx)) })
	<-s.closing
	close(s.goOn)
	s.want(http.StatusNoContent, nil)
	s.OK(<-down)
}

// With no time left Shutdown closed the client at once: the locks of the requests
// were left to their TTL.
func TestADeployThatHasNoTimeLeftForTheLocksLeavesNone(t *testing.T) {
	s := openShop(t)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var server, locks error
	down := locktest.Later(func() error {
		server = s.server.Shutdown(ctx)
		locks = s.locks.Shutdown(ctx)
		return nil
	})
	<-s.closing
	cancel()
	s.OK(<-down)
	s.WantErr(server, context.Canceled)
	s.OK(locks)
	s.want(http.StatusServiceUnavailable, redlatch.ErrClosed)
}

// Shutdown ended what was held at once, whatever time it had.
func TestAShutdownBesideTheHTTPServersDisturbsNoHold(t *testing.T) {
	s := openShop(t)
	busy := s.Acquire(bg, s.Client(redlatch.Config{}).Lock("busy"))
	waiting := locktest.Later(func() error { _, err := s.locks.Lock("busy").Acquire(bg); return err })
	ctx, cancel := context.WithTimeout(bg, locktest.Generous)
	defer cancel()
	var down []<-chan error
	for _, shutdown := range []func(context.Context) error{s.locks.Shutdown, s.server.Shutdown} {
		down = append(down, locktest.Later(func() error { return shutdown(ctx) }))
	}
	<-s.closing
	s.WantErr(<-waiting, redlatch.ErrClosed) // so both have begun
	s.Release(busy)
	close(s.goOn)
	s.want(http.StatusServiceUnavailable, nil) // the second lock is refused
	for _, err := range down {
		s.OK(<-err)
	}
}
