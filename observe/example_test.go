package observe_test

import (
	"context"
	"expvar"
	"log"
	"sync/atomic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// How often each kind of lock was acquired, or was not and why; how many callers wait, and
// for how long holds last. Functions are called by several goroutines at a time.
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

// What an operator wants to read in the log.
func ExampleHooks() {
	observe.Add(newClient(), observe.Hooks{
		Lost:             func(e observe.LostEvent) { log.Print("lost: ", e.Err) },
		SlowWait:         func(e observe.SlowWaitEvent) { log.Printf("slow: %+v", e) },
		PossibleDeadlock: func(e observe.PossibleDeadlockEvent) { log.Printf("deadlock: %+v", e) },
	})
}
