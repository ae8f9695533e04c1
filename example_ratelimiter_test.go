package redlatch_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
)

// All processes together make a hundred calls in a second.
func ExampleRateLimiter_Acquire() {
	ctx, calls := context.Background(), newClient().RateLimiter("calls")
	if _, err := calls.TrySetRate(ctx, redlatch.Rate{Permits: 100, Interval: time.Second}); err != nil {
		log.Print(err)
	}
	for order := range 1000 {
		if err := calls.Acquire(ctx, 1); err != nil { // waits for its turn
			log.Print(err)
			return
		}
		_ = ship(ctx, order)
	}
}

// A visitor that comes too often is told when to come back.
func ExampleRateLimiter_TryAcquire() {
	visitors := newClient().RateLimiter("visitors")
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var busy *redlatch.BusyError
		if err := visitors.TryAcquire(r.Context(), 1, 0); errors.As(err, &busy) {
			w.Header().Set("Retry-After", strconv.Itoa(int(busy.RetryAfter/time.Second)+1))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		} else if err != nil {
			log.Print(err) // let them in: better than nobody
		}
		_, _ = w.Write([]byte("welcome"))
	})
}
