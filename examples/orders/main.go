// Command orders is a shop of two replicas that ship orders, each order by one
// request at a time.
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

// ship handles POST /orders/{id}/ship. Whoever asks for an order that is being
// shipped waits a little, and is told to come again. The lock's end ends ctx, and
// so the work: nobody ships on without the lock. The wait is longer than the
// client library takes to say that it cannot connect, half a second: a shorter one
// would call that a busy order.
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

// A warehouse is what must not do two things to one order at a time. It notices.
type warehouse struct {
	at             sync.Map // the orders that are being shipped
	twice, parcels atomic.Int32
}

func (w *warehouse) ship(ctx context.Context, id string) error {
	if _, there := w.at.LoadOrStore(id, true); there {
		w.twice.Add(1)
	}
	defer w.at.Delete(id)
	select {
	case <-time.After(100 * time.Millisecond): // the work
		w.parcels.Add(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func run(ctx context.Context, out io.Writer) error {
	clients, stop, err := embedded.Clients(2)
	if err != nil {
		return err
	}
	defer stop()
	w := &warehouse{}
	servers := make([]*httptest.Server, len(clients))
	for i, c := range clients {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /orders/{id}/ship", (&shop{c, w}).ship)
		servers[i] = httptest.NewServer(mux)
		defer servers[i].Close()
	}

	const count = 60
	var shipped atomic.Int32
	var refusal atomic.Value // the last answer that told somebody to come again
	defer http.DefaultClient.CloseIdleConnections()
	g, requests := errgroup.WithContext(ctx)
	for i := range count {
		g.Go(func() error {
			url := fmt.Sprintf("%s/orders/%d/ship", servers[i%2].URL, i%5)
			r, err := http.NewRequestWithContext(requests, http.MethodPost, url, nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			text, _ := io.ReadAll(answer.Body)
			switch answer.StatusCode {
			case http.StatusNoContent:
				shipped.Add(1)
			case http.StatusConflict, http.StatusServiceUnavailable:
				refusal.Store(fmt.Sprintf("%s: %s", answer.Status, text))
			default:
				return fmt.Errorf("%s: %s", answer.Status, text)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for i, c := range clients { // a replica at SIGTERM: requests in flight come to their end first, for they may still want a lock
		if err := errors.Join(servers[i].Config.Shutdown(ctx), c.Shutdown(ctx)); err != nil {
			return err
		}
	}
	if shipped.Load() == 0 {
		return fmt.Errorf("nothing was shipped: %v", refusal.Load())
	}
	_, _ = fmt.Fprintf(out, "%d requests for 5 orders at 2 replicas: %d shipped, %d told to come again\n", count, shipped.Load(), count-shipped.Load())
	if w.twice.Load() > 0 || w.parcels.Load() != shipped.Load() {
		return fmt.Errorf("%d orders were shipped by two at a time; %d parcels", w.twice.Load(), w.parcels.Load())
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
