package observe_test

import (
	"context"
	"expvar"
	"log"
	"sync/atomic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// How often each kind of lock was acquired, or was not and why; how many callers
// wait, and for how long holds last. Functions are called by several goroutines at
// a time.
func ExampleAdd() {
	var waiting atomic.Int64
	outcomes := expvar.NewMap("lock_outcomes")
	observe.Add(newClient(), observe.Hooks{
		AcquireStart: func(ctx context.Context, _ observe.AcquireStartEvent) context.Context {
			waiting.Add(1)
			return ctx // or one with a span
		},
		AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) {
			waiting.Add(-1)
			outcomes.Add(string(e.Kind)+" "+string(e.Outcome), 1) // "fair lock timed_out"
		},
		HoldEnd: func(_ context.Context, e observe.HoldEndEvent) {
			if e.Reason == observe.EndLost {
				log.Print(e.Name, " was lost after ", e.Held, ": ", e.Err)
			}
		},
	})
}

func newClient() *redlatch.Client { return nil }

// What an operator wants to read in the log. Set those that you want.
func ExampleHooks() {
	observe.Add(newClient(), observe.Hooks{
		// Somebody else may have it now.
		Lost: func(e observe.LostEvent) { log.Print("lost: ", e.Err) },
		// The program waits for itself, or for a program that waits for it.
		SlowWait:         func(e observe.SlowWaitEvent) { log.Printf("slow: %s waits for %s", e.WaitSite, e.HoldSite) },
		PossibleDeadlock: func(e observe.PossibleDeadlockEvent) { log.Printf("deadlock: %v", e.Waits) },
		Requeued: func(e observe.RequeuedEvent) {
			log.Printf("%s: back at the end of the line after %v", e.Name, e.Waited)
		},
		// A Hold that was garbage without having been released: a mistake in the program.
		Dropped: func(e observe.DroppedEvent) {
			log.Printf("%s was acquired at %s, and nobody released it", e.Name, e.Site)
		},
		// The server, or its replicas, do not answer. Nothing is lost yet.
		RenewFailed:     func(e observe.RenewFailedEvent) { log.Printf("%d holds were not renewed: %v", e.Holds, e.Err) },
		ReleaseFailed:   func(e observe.ReleaseFailedEvent) { log.Printf("%s is left to its lease: %v", e.Name, e.Err) },
		NotAcknowledged: func(e observe.NotAcknowledgedEvent) { log.Printf("%s: a failover may lose it: %v", e.Name, e.Err) },
		// More happened than could be told one by one.
		Skipped: func(e observe.SkippedEvent) { log.Printf("%d events more", e.Events) },
	})
}
