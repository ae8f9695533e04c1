// Command quickstart is the service of docs/quickstart.md. It ships each order by
// one request at a time.
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchprom"
)

// routes is what the service answers. A test gives it locks of its own.
func routes(locks *redlatch.Client, ship func(ctx context.Context, id string) error) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/ship", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		ran, err := locks.Lock("order:"+id).TryDo(r.Context(), 2*time.Second, func(ctx context.Context) error {
			return ship(ctx, id) // ctx ends if the lock is lost
		})
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case !ran && errors.Is(err, redlatch.ErrBusy):
			http.Error(w, err.Error(), http.StatusConflict) // it says who has the order
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// run serves until ctx ends.
func run(ctx context.Context, redisURL, addr string) error {
	locks, err := redlatchgoredis.Open(redisURL, redlatch.Config{Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer locks.Close()

	metrics := prometheus.NewRegistry()
	metrics.MustRegister(redlatchprom.New(redlatchprom.Options{}, locks))
	mux := routes(locks, ship)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))

	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.ListenAndServe() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), locks.Shutdown(ctx))
}

// ship is the work that must not be done twice at a time. It stops when its
// context ends.
func ship(ctx context.Context, id string) error {
	select {
	case <-time.After(5 * time.Second):
		slog.InfoContext(ctx, "shipped", "order", id)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, "redis://localhost:6379", "localhost:8080")
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
