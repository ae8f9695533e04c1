package ratelimit_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ratelimit"
)

// All processes together make a hundred calls in a second.
func ExampleLimiter_Acquire() {
	ctx := context.Background()
	calls := ratelimit.New(newClient(), "calls", ratelimit.Rate{Permits: 100, Interval: time.Second})
	for order := range 1000 {
		if err := calls.Acquire(ctx, 1); err != nil { // waits for its turn
			log.Print(err)
			return
		}
		_ = ship(ctx, order)
	}
}

// A visitor that comes too often is told when to come back.
func ExampleLimiter_TryAcquire() {
	visitors := ratelimit.New(newClient(), "visitors", ratelimit.Rate{Permits: 10, Interval: time.Second})
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

func newClient() *redlatch.Client { return nil }

func ship(context.Context, int) error { return nil }

// Each process makes ten calls in a second, however many processes there are; and
// a limiter that nobody uses goes away.
func ExampleRate() {
	calls := ratelimit.New(newClient(), "calls", ratelimit.Rate{
		Permits: 10, Interval: time.Second, PerClient: true, KeepAlive: time.Hour,
	})
	if err := calls.Acquire(context.Background(), 1); err != nil {
		log.Print(err)
	}
}
