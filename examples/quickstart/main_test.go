package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchtest"
)

// post asks for order 42 to be shipped, and returns the status of the answer.
func post(routes http.Handler) int {
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders/42/ship", nil))
	return w.Code
}

func TestAnOrderIsShippedByOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redlatchtest.NewClient(t, redlatch.Config{})
		service := routes(locks, func(context.Context, string) error {
			time.Sleep(time.Minute) // fake time: it costs nothing
			return nil
		})
		first := make(chan int)
		go func() { first <- post(service) }()
		synctest.Wait() // the first one is at it

		if code := post(service); code != http.StatusConflict {
			t.Errorf("the second request: %d", code)
		}
		if code := <-first; code != http.StatusNoContent {
			t.Errorf("the first request: %d", code)
		}
	})
}

func TestNobodyShipsOnWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redlatchtest.NewClient(t, redlatch.Config{})
		service := routes(locks, func(ctx context.Context, _ string) error {
			redlatchtest.Lose(redlatch.HoldFrom(ctx)) // as a failover could
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if code := post(service); code != http.StatusServiceUnavailable {
			t.Errorf("a request that loses its lock: %d", code)
		}
	})
}
