package admin

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/ratelimit"
)

// Info says who holds a lock, and who queues for it, or in what state a
// synchronizer is, at the moment at which the server was asked.
type Info struct {
	Name    string        // of a lock its key; of several locks as one those of its members, separated by commas, equal ones once
	Kind    redlatch.Kind // that of the lock that was asked, else a guess from what is stored
	Holders []Holder      // none if the lock is free; of an expirable semaphore the permits that are taken
	// TTL is how long the key lasts unless somebody uses it. It is 0 if there is no
	// key, or if all who hold the lock hold another side or other values of it, and -1
	// if the key never expires: so it is with most synchronizers, but with no lock of
	// redlatch or Redisson.
	TTL time.Duration
	// Queue has the callers that wait for a fair lock, or have arrived at a barrier,
	// in order. Other kinds have no queue in Redis.
	Queue []Waiter
	// Token is the last fencing token that an acquisition got; 0 if none did, or if
	// redlatch.Config.TokenTTL has passed since then.
	Token int64
	// Members are those of several locks as one, in the order in which they are
	// acquired. Such an Info has nothing else but its name and its kind.
	Members []Info

	// Free is how many permits a semaphore has that nobody has taken, or a rate
	// limiter would give now (to this client, if clients have a rate each).
	Free       int
	Permits    int            // how many permits an expirable semaphore has in all
	Rate       ratelimit.Rate // of a rate limiter
	CountDowns int            // how many count-downs a latch still waits for
	Parties    int            // how many make a generation of a barrier
	Generation string         // of a barrier: the current one
	Number     int            // what is stored of a redlatch.KindCounter, whatever it counts
}

// Held says whether anybody holds the lock, or a permit that has an id; of several
// locks as one, whether anybody holds a member.
func (i Info) Held() bool { return len(i.Holders) > 0 || slices.ContainsFunc(i.Members, Info.Held) }

// A Holder is one owner of a lock. A read-write lock can have many. An owner that
// writes, and reads inside of that or has done so, is two holders. A group lock
// has a holder for each value that is locked, an expirable semaphore one for each
// permit.
type Holder struct {
	Owner    string        // as it stands in Redis, but for the ":write" behind that of a writer; or the id of a permit
	Client   string        // the client's UUID, first part of Owner; empty if Owner has another shape
	Count    int           // how often the owner has entered; of redlatch's it may lag behind for a moment
	Redlatch bool          // whether the client is of redlatch, which can be told by the UUID's version
	TTL      time.Duration // for how long it still holds unless it renews, -1 for ever; less than Info.TTL where holders have leases of their own
	Mode     string        // of a read-write lock: "read" or "write"
	Value    string        // of a group lock: the value, if it is the asked lock's, else its hash in Redis
	By       string        // the client's redlatch.Config.Identity, such as "billing@host-7 pid 4121"; only Info, LockInfo and Watch ask for it, and of at most 8 clients that it does not know yet; else empty
	Since    time.Time     // since when, if the client that is asked has the lock itself; else zero: Participants asks the others
	Renewed  bool          // with Since: the watchdog renews it
	Note     string        // with Since: what the hold is for (redlatch.Hold.SetNote), in a form that can be printed
}

// A Waiter is a caller in the queue of a fair lock, or one that has arrived at a
// barrier.
type Waiter struct {
	Owner    string    // as it stands in Redis
	Client   string    // as in Holder
	Redlatch bool      // as in Holder
	Until    time.Time // from when on it may be dropped when it is the first, or its client counts as dead; zero if that is not stored
}

// infoOf is what was read, as users have it.
func infoOf(e *bridge.Engines, in inspect.Info) Info {
	info := Info{
		Name: e.Server.Name(in.Name), Kind: redlatch.Kind(in.Kind), TTL: in.TTL, Token: in.Token, Generation: in.Generation,
	}
	switch info.Kind {
	case redlatch.KindSemaphore:
		info.Free = in.Count
	case redlatch.KindExpirable:
		info.Free, info.Permits = in.Count, in.Total
	case redlatch.KindRateLimiter:
		info.Free, info.Rate = in.Count, ratelimit.Rate(in.Rate)
	case redlatch.KindLatch:
		info.CountDowns = in.Count
	case redlatch.KindBarrier:
		info.Parties = in.Total
	case redlatch.KindCounter:
		info.Number = in.Count
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
