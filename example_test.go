package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Package redlatchgoredis has the whole program, with its client of Redis.
func Example() {
	client, err := redlatch.New(openRedis(), redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Lock("orders:42").Do(context.Background(), func(ctx context.Context) error {
		return ship(ctx, 42) // ctx ends if the lock is lost
	})
	if err != nil {
		log.Print(err)
	}
}

// ctx bounds the waiting only. The hold has a context of its own, which ends with
// the hold.
func ExampleLock_Acquire() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	hold, err := newClient().Lock("orders:42").Acquire(ctx)
	if err != nil {
		log.Print(err) // if the lock was busy, the error says who holds it
		return
	}
	defer func() { _ = hold.Release(context.Background()) }()

	_ = ship(hold.Context(), 42)
}

// It waits for two seconds at most.
func ExampleLock_TryAcquire_wait() {
	ctx, client := context.Background(), newClient()
	hold, err := client.Lock("orders:42").TryAcquire(ctx, 2*time.Second)
	if errors.Is(err, redlatch.ErrBusy) {
		fmt.Println("somebody else is at it")
		return
	} else if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()

	if err := ship(hold.Context(), 42); errors.Is(hold.Err(), redlatch.ErrLost) {
		log.Print("the lock was lost on the way: ", err)
	}
}

func ExampleClient_Shutdown() {
	client, server := newClient(), new(http.Server) // whose handlers use the client
	term, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-term.Done()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// The server first: the requests that are in flight still get the locks that they
	// want.
	if err := errors.Join(server.Shutdown(ctx), client.Shutdown(ctx)); err != nil {
		log.Print(err) // some requests have not ended, or some locks were not released in time and are left to their lease
	}
}

func ExampleMinHold() {
	// Every replica's cron starts this at the full hour, as its clock says.
	hold, err := newClient().Lock("hourly", redlatch.MinHold(10*time.Minute)).TryAcquire(context.Background(), 0)
	if errors.Is(err, redlatch.ErrBusy) {
		return // another replica does it, or has just done it
	} else if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(context.Background()) }()

	_ = ship(hold.Context(), 42)
}

func ExampleLock_TryAcquire() {
	hold, err := newClient().Lock("orders:42", redlatch.Lease(10*time.Second)).TryAcquire(context.Background(), 0)
	var busy *redlatch.BusyError
	switch {
	case errors.As(err, &busy):
		fmt.Println(busy) // lock "orders:42" is held by billing@host-7 pid 4121 (...); its lease ends in 29.5s unless it is renewed
	case err != nil:
		log.Print(err)
	default:
		defer func() { _ = hold.Release(context.Background()) }()
	}
}

// A handler hands its lock over to a job in another process.
func ExampleHold_Detach() {
	client := newClient()
	http.HandleFunc("POST /reports/7", func(w http.ResponseWriter, r *http.Request) {
		hold, err := client.Lock("reports:7", redlatch.Lease(10*time.Minute)).TryAcquire(r.Context(), 0)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		id, err := hold.Detach()
		if err == nil {
			err = enqueue("reports:7", id) // the job gets the name of the lock and the id
		}
		if err != nil { // nobody has the id who could release it
			_ = hold.Release(r.Context())
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// The job, in its own process, knows the name of the lock and the id.
func ExampleLock_ReleaseID() {
	ctx, lock, id := context.Background(), newClient().Lock("reports:7"), "the id that came with the job"
	for step := range 10 {
		if err := lock.ExtendID(ctx, id, 10*time.Minute); err != nil {
			log.Print(err) // ErrNotHeld: the lease was over, and somebody else may have the lock
			return
		}
		_ = ship(ctx, step)
	}
	if err := lock.ReleaseID(ctx, id); err != nil {
		log.Print(err)
	}
}

// Whether the function ran tells a busy lock from the function's own error, which
// may be ErrBusy of another lock.
func ExampleLock_TryDo() {
	ran, err := newClient().Lock("orders:42").TryDo(context.Background(), 0, func(ctx context.Context) error {
		return ship(ctx, 42)
	})
	switch {
	case !ran && errors.Is(err, redlatch.ErrBusy):
		fmt.Println("somebody else is at it")
	case err != nil:
		log.Print(err)
	}
}

// A context that descends from a hold re-enters its lock.
func ExampleHold_Context() {
	orders := newClient().Lock("orders:42")
	_ = orders.Do(context.Background(), func(ctx context.Context) error {
		return orders.Do(ctx, func(ctx context.Context) error { // once more, without waiting for itself
			return ship(ctx, 42)
		})
	})
}

// Whoever waits in vain reads in the error how far the work is, and an operator
// sees it with redlatch show.
func ExampleHold_SetNote() {
	_ = newClient().Lock("import", redlatch.Note("starting")).Do(context.Background(), func(ctx context.Context) error {
		for row := range 9000 {
			if err := redlatch.HoldFrom(ctx).SetNote(fmt.Sprintf("row %d of 9000", row)); err != nil {
				return err // the lock was lost
			}
			if err := ship(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// Whoever asked first gets the lock first, in whichever process it is.
func ExampleClient_FairLock() {
	ctx, tickets := context.Background(), newClient().FairLock("tickets")
	ran, err := tickets.TryDo(ctx, time.Minute, func(ctx context.Context) error {
		return ship(ctx, 42)
	})
	if !ran && errors.Is(err, redlatch.ErrBusy) {
		fmt.Println("too many before us; we have left the queue")
	}
}

// openRedis returns a driver of an adapter: redlatchgoredis.Use,
// redlatchrueidis.New or redlatchvalkey.New make one.
func openRedis() driver.Redis { return nil }

func newClient() *redlatch.Client { return nil }

func ship(context.Context, int) error { return nil }

func enqueue(_, _ string) error { return nil }
