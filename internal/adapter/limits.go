package adapter

import (
	"context"
	"sync/atomic"
	"time"
)

// Limits are contexts that end after some time. What is asked for at about the
// same time shares one, so that a call costs neither a timer nor memory: its
// context ends earlier by up to a sixteenth of that time. The methods are safe for
// concurrent use.
type Limits struct {
	After  time.Duration
	latest atomic.Pointer[limit]
}

type limit struct {
	context.Context //nolint:containedctx // this is a context
	made            time.Time
}

// Get returns a context that ends after After, or a little earlier.
func (limits *Limits) Get() context.Context {
	now := time.Now()
	if x := limits.latest.Load(); x != nil && now.Sub(x.made) <= limits.After/16 {
		return x
	}
	ctx, cancel := context.WithTimeout(context.Background(), limits.After)
	context.AfterFunc(ctx, cancel) // nobody ends it before: many may have it
	x := &limit{ctx, now}
	limits.latest.Store(x)
	return x
}
