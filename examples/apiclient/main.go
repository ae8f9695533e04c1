// Command apiclient calls an API that allows so many requests in a second, from
// several processes.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch/examples/internal/embedded"
	"github.com/redlatch/redlatch/ratelimit"
)

// The API's rate, for all processes together.
var rate = ratelimit.Rate{Permits: 20, Interval: 500 * time.Millisecond}

// A limited is a transport that waits for its turn. The request's context bounds
// the waiting.
type limited struct {
	limiter *ratelimit.Limiter
	next    http.RoundTripper
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.limiter.Acquire(r.Context(), 1); err != nil {
		if r.Body != nil { // a transport closes it, also of a request that it does not send
			_ = r.Body.Close()
		}
		return nil, err
	}
	return l.next.RoundTrip(r)
}

func run(ctx context.Context, out io.Writer) error {
	processes, stop, err := embedded.Clients(3)
	if err != nil {
		return err
	}
	defer stop()
	var calls atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer api.Close()

	const count = 60
	start := time.Now()
	defer http.DefaultClient.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	for i := range count {
		limiter := ratelimit.New(processes[i%len(processes)], "api", rate) // whoever comes first sets it
		client := &http.Client{Transport: limited{limiter, http.DefaultTransport}}
		g.Go(func() error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL, nil)
			if err != nil {
				return err
			}
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			return answer.Body.Close()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// The first ones go at once, and each further so many an interval later.
	least := time.Duration(count/rate.Permits-1) * rate.Interval
	took := time.Since(start)
	_, _ = fmt.Fprintf(out, "%d calls of 3 processes at %d in %v: none sooner than it may\n", calls.Load(), rate.Permits, rate.Interval)
	if calls.Load() != count || took < least {
		return fmt.Errorf("%d calls in %v; they may not take less than %v", calls.Load(), took, least)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
