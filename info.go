package redlatch

import (
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
)

// A Kind says what has a name: a lock, several locks as one, or a synchronizer.
type Kind string

// The kinds of lock. Spin locks, non-reentrant locks and the stripes of a StripedLock are
// of KindLock: what Redis has of them is the same.
const (
	KindLock      Kind = "lock"
	KindFenced    Kind = "fenced lock"
	KindFair      Kind = "fair lock"
	KindReadWrite Kind = "read-write lock"
	KindGroup     Kind = "group lock"
)

// The kinds of several locks as one, as events say them. Redis has only their members.
const (
	KindMultiLock Kind = "multi lock"
	KindRedLock   Kind = "red lock"
)

// The kinds of synchronizer.
const (
	KindSemaphore   Kind = "semaphore"
	KindExpirable   Kind = "expirable semaphore"
	KindLatch       Kind = "latch"
	KindRateLimiter Kind = "rate limiter"
	KindBarrier     Kind = "barrier"
	// KindCounter is a number whose purpose is not stored: a semaphore, an expirable
	// semaphore of which no permit is taken, a latch, or any other number.
	KindCounter Kind = "semaphore or latch"
)

// A Rate is how many permits a rate limiter gives, as package ratelimit sets it.
type Rate struct {
	Permits   int           // in an interval
	Interval  time.Duration // of whole milliseconds
	PerClient bool          // each client gets as many; else all share them
	KeepAlive time.Duration // for how long a limiter lasts that nobody uses; 0: for ever
}

// Info says who holds a lock, and who queues for it, or in what state a synchronizer
// is, at the moment at which the server was asked.
type Info struct {
	Name    string   // of a lock its key
	Kind    Kind     // that of the lock that was asked, else a guess from what is stored
	Holders []Holder // none if the lock is free; of an expirable semaphore the permits that are taken
	// TTL is how long the key lasts unless somebody uses it. It is 0 if there is no
	// key, or if all who hold the lock hold another side or other values of it, and -1 if
	// the key never expires: so it is with most synchronizers, but with no lock of redlatch
	// or Redisson.
	TTL time.Duration
	// Queue has the callers that wait for a fair lock, or have arrived at a barrier,
	// in order. Other kinds have no queue in Redis.
	Queue []Waiter
	// Token is the last fencing token that an acquisition got; 0 if none did, or if
	// Config.TokenTTL has passed since then.
	Token int64

	// Count is how many permits of a semaphore are free, how many count-downs a latch
	// still waits for, how many permits a rate limiter would give now (to this client,
	// if clients have a rate each), or how many callers have arrived at a barrier.
	Count int
	// Total is how many permits an expirable semaphore has in all, or a rate
	// limiter gives in an interval, or how many make a generation of a barrier; 0 if
	// that is not stored.
	Total      int
	Rate       Rate   // of a rate limiter
	Generation string // of a barrier: the current one
}

// Held says whether anybody holds the lock, or a permit that has an id.
func (i Info) Held() bool { return len(i.Holders) > 0 }

// A Holder is one owner of a lock. A read-write lock can have many. An owner that
// writes, and reads inside of that or has done so, is two holders. A group lock has a
// holder for each value that is locked, an expirable semaphore one for each permit.
type Holder struct {
	Owner    string        // as it stands in Redis, but for the ":write" behind that of a writer; or the id of a permit
	Client   string        // the client's UUID, first part of Owner; empty if Owner has another shape
	Count    int           // how often the owner has entered; of redlatch's it may lag behind for a moment
	Redlatch bool          // whether the client is of redlatch, which can be told by the UUID's version
	TTL      time.Duration // for how long it still holds unless it renews, -1 for ever; less than Info.TTL where holders have leases of their own
	Mode     string        // of a read-write lock: "read" or "write"
	Value    string        // of a group lock: the value, if it is the asked lock's, else its hash in Redis
	By       string        // the client's Config.Identity, such as "billing@host-7 pid 4121"; only Info asks for it, and of at most 8 clients that it does not know yet; else empty
	Since    time.Time     // since when, if the client that is asked has the lock itself; else zero: Participants asks the others
	Renewed  bool          // with Since: the watchdog renews it
}

// A Waiter is a caller in the queue of a fair lock, or one that has arrived at a barrier.
type Waiter struct {
	Owner    string    // as it stands in Redis
	Client   string    // as in Holder
	Redlatch bool      // as in Holder
	Until    time.Time // from when on it may be dropped when it is the first, or its client counts as dead; zero if that is not stored
}

// infoOf is what was read, as users have it.
func (c *Client) infoOf(in inspect.Info) Info {
	info := Info{
		Name: c.server.Name(in.Name), Kind: Kind(in.Kind), TTL: in.TTL, Token: in.Token,
		Count: in.Count, Total: in.Total, Rate: Rate(in.Rate), Generation: in.Generation,
	}
	for _, h := range in.Holders {
		info.Holders = append(info.Holders, Holder{
			Owner: h.Owner, Client: h.Client, Count: h.Count, Redlatch: h.Redlatch, TTL: h.TTL, Mode: h.Mode, Value: h.Value,
		})
	}
	for _, w := range in.Queue {
		info.Queue = append(info.Queue, Waiter(w))
	}
	return info
}
