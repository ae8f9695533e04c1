package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/lock"
)

// WithOwner returns a context under which everything is one owner, as a thread
// is for Redisson: any number of goroutines that acquire a lock with a context
// that descends from it share the lock, and Redis counts their holds. It is for
// code that carries its ownership through contexts it does not get from holds.
//
// It gives up what the other way of re-entering guarantees: that siblings
// exclude each other.
//
// Values of a context that waits may be asked for when somebody asks for Participants, also
// just after the call that waited has returned.
func WithOwner(ctx context.Context) context.Context { return lock.WithOwner(ctx) }
