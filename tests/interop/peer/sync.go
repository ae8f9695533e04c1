package peer

import (
	"context"
	"time"
)

// The kinds of what is not a lock. They are the types in a [Call.Op].
const (
	Semaphore   = "semaphore"
	Permits     = "permits" // of a PermitExpirableSemaphore
	Latch       = "latch"
	RateLimiter = "rate"
)

// What a request about a semaphore, a latch or a rate limiter has besides, and
// its answer; see Sync.java.
type (
	syncRequest struct {
		N           int      `json:"n,omitempty"`
		IDs         []string `json:"ids,omitempty"`
		IntervalMs  int64    `json:"intervalMs,omitempty"`
		KeepAliveMs int64    `json:"keepAliveMs,omitempty"`
		PerClient   bool     `json:"perClient,omitempty"`
	}
	syncAnswer struct {
		IDs        []string `json:"ids"`
		IntervalMs int64    `json:"intervalMs"`
		PerClient  bool     `json:"perClient"`
	}
)

// A Call is one op of these types; zero fields are left out. See Sync.java for
// what there is.
type Call struct {
	Op          string // "type.method"
	N           int
	IDs         []string
	Wait, Lease time.Duration
	Rate        Rate // its Permits are N
}

// An Answer is what it returned, as far as it returns such things.
type Answer struct {
	OK    bool
	Count int
	IDs   []string
}

// A Rate is that of a rate limiter.
type Rate struct {
	Permits   int
	Interval  time.Duration
	PerClient bool
	KeepAlive time.Duration
}

// Call performs an op on the object of this name.
func (t Thread) Call(ctx context.Context, name string, c Call) (Answer, error) {
	a, err := t.sync(ctx, name, c)
	return Answer{OK: a.OK, Count: a.Count, IDs: a.syncAnswer.IDs}, err
}

// Rate returns the rate of the limiter of this name, all zero if it has none.
// Redisson does not tell the KeepAlive.
func (t Thread) Rate(ctx context.Context, name string) (Rate, error) {
	a, err := t.sync(ctx, name, Call{Op: "rate.config"})
	interval := time.Duration(a.syncAnswer.IntervalMs) * time.Millisecond
	return Rate{Permits: a.Count, Interval: interval, PerClient: a.syncAnswer.PerClient}, err
}

func (t Thread) sync(ctx context.Context, name string, c Call) (answer, error) {
	n := c.N
	if c.Rate.Permits != 0 {
		n = c.Rate.Permits
	}
	return t.client.peer.call(ctx, request{
		Op:      c.Op,
		Client:  t.client.handle,
		Thread:  t.name,
		Name:    name,
		WaitMs:  c.Wait.Milliseconds(),
		LeaseMs: c.Lease.Milliseconds(),
		syncRequest: syncRequest{
			N: n, IDs: c.IDs, IntervalMs: c.Rate.Interval.Milliseconds(),
			KeepAliveMs: c.Rate.KeepAlive.Milliseconds(), PerClient: c.Rate.PerClient,
		},
	})
}
