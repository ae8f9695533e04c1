// Package driver is what redlatch asks of a client library, as database/sql/driver
// is what database/sql asks of a database's. Only who writes an adapter needs it: the
// packages goredis, rueidis and valkeygo are adapters, and package drivertest checks
// any other.
//
// An adapter implements [Redis], and as far as its library can do that [Batcher],
// [Acker] and [Sharer]. The heart of it is to say truthfully what became of a script
// that failed: [ServerError] does so for everything that a server answers.
package driver

import (
	"context"
	"time"
)

// Redis is all that redlatch asks of a client library: run a script once and
// say truthfully what became of it, subscribe, and list keys. The packages
// goredis, rueidis and valkeygo implement it; package drivertest checks any other
// implementation.
//
// Implementations must be safe for concurrent use.
type Redis interface {
	// Run executes the script once, with EVALSHA, and with EVAL if the server
	// does not know it yet. It must never send a command again whose outcome
	// is unknown. keys and args must not be retained or changed.
	//
	// ctx carries values only: many drivers would close a shared connection at a
	// caller's deadline or cancellation. A call ends by the driver's own time-outs
	// (Traits.Timeout). ctx may be a caller's, which can end: if Traits.Interruptible
	// is set, that ends the call; else Run must not mind.
	//
	// A failure is a *RunError. Any other error counts as Unknown.
	Run(ctx context.Context, s *Script, keys, args []string) (Reply, error)

	// Subscribe starts to listen to channel and returns at once; h is called,
	// never concurrently with itself, with every message and whenever the
	// subscription has been confirmed by the server: the first time, and again
	// after each reconnect. h must not block. The subscription lasts, through
	// any number of broken connections, until stop is called. stop does not
	// wait for a call of h that runs, and may be called more than once.
	// With sharded it is SSUBSCRIBE, at the node that serves the channel's slot.
	// Without, it is at any primary of a cluster: who listens is counted at these.
	Subscribe(channel string, sharded bool, h func(Notice)) (stop func())

	// Primaries returns every node that holds keys, for listing. After that Node tells
	// the nodes of a cluster apart, if they say which slots they serve.
	Primaries(ctx context.Context) ([]Primary, error)

	// Node names the node that serves key, as far as the driver knows: "" where
	// there is only one. It does no I/O, is asked often, and waits for nobody who
	// calls a function of OnBreak. What goes to one node waits for no other.
	Node(key string) string

	// OnBreak registers f to be called with the name of a node, as Node returns it,
	// whenever a connection to the node ended with an error, or the node answered that
	// it is no longer a primary, or another node serves its slots now. With "" all
	// nodes are meant. f must not block. stop unregisters f.
	OnBreak(f func(node string)) (stop func())

	// Traits returns fixed facts about the driver and its configuration.
	Traits() Traits
}

// A Sharer is a Redis that several Clients of a process may share. It need not be
// one: without it they do not see one another's waiters, and give them their turns
// only once a second.
type Sharer interface {
	Redis

	// Listeners returns how many subscriptions to a channel have not been stopped,
	// of all who use this driver. For the server they are one subscriber.
	Listeners(channel string, sharded bool) int
}

// A Batcher is a Redis that can send many scripts in one go. It need not be
// one: without it each script is sent by itself.
type Batcher interface {
	Redis

	// RunBatch does for each request what Run does, and sets its Reply and
	// Err: each is executed once, none waits for another's success, and the
	// order is not promised. Node returned the same for all of them when it was asked;
	// there are at least two.
	// They must not be retained. It is not called if Traits.ContextValues is
	// set.
	RunBatch(requests []*Request)
}

// An Acker is a Redis that can wait for replicas. It need not be one: without it
// there is no replica acknowledgement (Config.Acks).
type Acker interface {
	Redis

	// RunAcked does what Run does, on a connection that nothing else uses
	// meanwhile (one that waits stalls whatever shares it), and then waits there,
	// with WAIT, until so many replicas have acknowledged what the script wrote, or
	// timeout is over. A timeout for which the driver's own time-outs leave no room
	// is shortened.
	//
	// acked is how many have, which may be more or fewer, or negative if the server
	// cannot say, because it does not know WAIT or forbids it. It counts if err is
	// nil.
	//
	// If the answer to WAIT is lost, so is the primary's word: the outcome is Unknown.
	//
	// There is at least one key. A driver bounds how many connections to a node wait at
	// a time, so that others remain; a call that finds none free in time is NotExecuted.
	RunAcked(ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration) (reply Reply, acked int, err error)

	// Replicas returns how many replicas the primary that has key is sending to
	// right now. It fails with the code READONLY if the node that answers is no primary.
	// Refused means that the server will never say: then nobody waits for replicas of
	// that node, until its connection breaks, unless Config.Acks demands a number.
	Replicas(ctx context.Context, key string) (int, error)
}

// A Request is a script to run, and what became of it.
type Request struct {
	Script     *Script
	Keys, Args []string

	Reply Reply // if Err is nil
	Err   error // as Run returns it
}

// A Primary is one node that holds keys.
type Primary interface {
	// Scan runs one SCAN step for keys of a type, as TYPE says it ("hash",
	// "string", "zset"), that match the glob pattern. It starts and ends with
	// cursor 0.
	Scan(ctx context.Context, cursor uint64, kind, pattern string, count int) (keys []string, next uint64, err error)
}

// Traits are fixed facts about a driver and its configuration.
type Traits struct {
	// Name is for messages: "goredis", "rueidis", "valkeygo".
	Name string
	// Timeout is how long Run can take at most, whatever the server does:
	// finding or making a connection and waiting for the reply. 0 means that
	// the driver sets no bound, which New refuses.
	Timeout time.Duration
	// ContextValues says that Run looks at its context's values, or passes them
	// to somebody who does, such as a hook of the client library.
	ContextValues bool
	// Interruptible says that Run, while it has a connection, returns as soon as its
	// context ends, with an error whose outcome is Unknown unless nothing was sent.
	// What was sent stays in flight, its answer is dropped, and no other call notices.
	// The driver uses keys and args no longer.
	Interruptible bool
	// CallersStay says that callers whose contexts can end may be in Run all the same,
	// though it does not return when these end: the program has asked for that. A caller
	// whose context ends while the server does not answer returns when Run does.
	CallersStay bool
	// Cluster says that the keys of one script must share a hash slot.
	Cluster bool
	// Replicated says that the driver follows the primary to another server when a
	// replica takes over, as with Sentinel and in a cluster.
	Replicated bool
}

// A Notice is what a subscription delivers.
type Notice struct {
	// Subscribed is true when the server has confirmed the subscription: at
	// the start, and again after each reconnect. Messages before it are lost.
	Subscribed bool
	// Payload is the message, if Subscribed is false.
	Payload string
}
