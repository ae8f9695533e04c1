// Command orders is a shop of two replicas that ship orders, each order by one request at a time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/internal/embedded"
)

// A shop is one replica of the service.
type shop struct {
	locks     *redlatch.Client
	warehouse *warehouse
}

// ship handles POST /orders/{id}/ship. Whoever asks for an order that is being shipped waits a little, and is told to
// come again. The lock's end ends ctx, and so the work: nobody ships on without the lock. The wait is longer than the client
// library takes to say that it cannot connect, half a second: a shorter one would call that a busy order.
func (s *shop) ship(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	ran, err := s.locks.Lock("order:"+id).TryDo(r.Context(), time.Second, func(ctx context.Context) error {
		return s.warehouse.ship(ctx, id)
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case !ran && errors.Is(err, redlatch.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusConflict) // it says who has the order
	case redlatch.IsRetryable(err):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// end is what a replica does at SIGTERM. The requests in flight come to their end first: they may still want a lock.
func end(server *http.Server, locks *redlatch.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), locks.Shutdown(ctx))
}

// A warehouse is what must not do two things to one order at a time. It notices.
type warehouse struct {
	mu     sync.Mutex
	at     map[string]bool
	twice  int
	parcel atomic.Int32
}

func (w *warehouse) ship(ctx context.Context, id string) error {
	w.mu.Lock()
	if w.at[id] {
		w.twice++
	}
	w.at[id] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.at, id)
		w.mu.Unlock()
	}()
	select {
	case <-time.After(100 * time.Millisecond): // the work
		w.parcel.Add(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func run(ctx context.Context, out io.Writer) error {
	redis, err := embedded.Start()
	if err != nil {
		return err
	}
	defer redis.Stop()
	clients, err := redis.Clients(2)
	if err != nil {
		return err
	}
	w := &warehouse{at: map[string]bool{}}
	var urls []string
	servers := make([]*http.Server, len(clients))
	for i, c := range clients {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /orders/{id}/ship", (&shop{c, w}).ship)
		server := httptest.NewServer(mux)
		defer server.Close()
		servers[i] = server.Config
		urls = append(urls, server.URL)
	}

	var shipped, again atomic.Int32
	var refusal atomic.Value // the last answer that told somebody to come again
	defer http.DefaultClient.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	for i := range 60 {
		g.Go(func() error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/orders/%d/ship", urls[i%2], i%5), nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			if answer.StatusCode == http.StatusNoContent {
				shipped.Add(1)
				return nil
			}
			text, _ := io.ReadAll(answer.Body)
			said := fmt.Sprintf("%s: %s", answer.Status, text)
			if answer.StatusCode != http.StatusConflict && answer.StatusCode != http.StatusServiceUnavailable {
				return errors.New(said)
			}
			again.Add(1)
			refusal.Store(said)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, server := range servers {
		if err := end(server, clients[i]); err != nil {
			return err
		}
	}
	if shipped.Load() == 0 {
		return fmt.Errorf("nothing was shipped: %v", refusal.Load())
	}
	_, _ = fmt.Fprintf(out, "60 requests for 5 orders at 2 replicas: %d shipped, %d told to come again\n", shipped.Load(), again.Load())
	if w.twice > 0 || w.parcel.Load() != shipped.Load() {
		return fmt.Errorf("%d orders were shipped by two at a time; %d parcels", w.twice, w.parcel.Load())
	}
	_, _ = fmt.Fprintln(out, "no order was ever shipped by two at a time")
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
