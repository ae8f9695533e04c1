// Package driver says what redlatch needs of a client library, as
// database/sql/driver says what database/sql needs of a database driver. You need
// it only to write an adapter: the packages redlatchgoredis, redlatchrueidis and
// redlatchvalkey are adapters, and package drivertest checks any other.
//
// An adapter implements [Redis], and [Batcher], [Acker], [Sharer] and [Subscriber]
// if its library can do that. Its most important task is to say truthfully what
// became of a script that failed. [ServerError] does so for everything that a
// server answers.
package driver

import (
	"context"
	"time"
)

// Redis is all that redlatch needs of a client library: to run a script once and
// say truthfully what became of it, to subscribe, and to list keys. The packages
// redlatchgoredis, redlatchrueidis and redlatchvalkey implement it. Package
// drivertest checks any other implementation.
//
// An implementation may be an [io.Closer], too. Then Close of the last
// redlatch.Client that has it closes it. Further calls of its Close must do
// nothing, because the program may close it as well.
//
// Implementations must be safe for concurrent use.
type Redis interface {
	// Run executes the script once, with EVALSHA, and with EVAL if the server does
	// not know it yet. It must never send a command again whose outcome is
	// unknown. It must not retain or change keys and args. Without keys it runs the
	// script at any primary of a cluster that serves slots.
	//
	// ctx may be that of a caller, and may end. If Traits.Interruptible is set, its
	// end ends the call. Otherwise ctx carries values only, and Run must ignore its
	// end: many drivers would close a shared connection at a caller's deadline or
	// cancellation. In any case a call ends by the driver's own time-outs
	// (Traits.Timeout).
	//
	// A failure is a *RunError. Any other error counts as Unknown.
	Run(ctx context.Context, s *Script, keys, args []string) (Reply, error)

	// Subscribe starts to listen to channel and returns at once. It calls h with
	// every message, and whenever the server has confirmed the subscription: the
	// first time, and again after each reconnect. h is never called concurrently
	// with itself, and must not block. The subscription lasts until stop is
	// called, through any number of broken connections. stop does not wait for a
	// call of h that runs, and may be called more than once. With sharded,
	// Subscribe uses SSUBSCRIBE, at the node that serves the channel's slot.
	// Without it, in a cluster, it subscribes at any primary, because listeners
	// are counted at the primaries.
	Subscribe(channel string, sharded bool, h func(Notice)) (stop func())

	// Primaries returns every node that holds keys, for listing. After that, Node
	// tells the nodes of a cluster apart, if they say which slots they serve.
	Primaries(ctx context.Context) ([]Primary, error)

	// Node returns the name of the node that serves key, as far as the driver
	// knows, and "" where there is only one node. It does no I/O, is called often,
	// and does not wait for a goroutine that calls a function of OnBreak. Requests
	// to one node wait for no other node.
	Node(key string) string

	// OnBreak registers f. The driver calls f with the name of a node, as Node returns
	// it, whenever a connection to the node ended with an error, or the node answered
	// that it is no longer a primary, or another node serves its slots now. The name
	// "" means all nodes. f must not block. stop unregisters f.
	//
	// A driver that knows its server by a name alone leaves that server when it
	// answers that it is not the primary of a key (READONLY, MOVED, MASTERDOWN): the
	// name may lead to another server by now. What is sent after that answer goes over
	// new connections. Subscriptions follow when the first of it has succeeded. They
	// follow once more with a script that succeeds some seconds later, since a
	// replica, too, answers a script that only reads.
	OnBreak(f func(node string)) (stop func())

	// Traits returns fixed facts about the driver and its configuration.
	Traits() Traits
}

// A Sharer is a Redis that several Clients of a process may share. An adapter need
// not implement it. Without it these clients do not see one another's waiters, and
// give them their turns only once a second.
type Sharer interface {
	Redis

	// Listeners returns how many subscriptions to a channel have not been stopped,
	// of all clients that use this driver. For the server they are one subscriber.
	Listeners(channel string, sharded bool) int
}

// A Subscriber is a Redis that knows which subscriptions are up. An adapter need
// not implement it. Without it redlatch.Client.Healthy does not look at
// subscriptions.
type Subscriber interface {
	Redis

	// Unconfirmed returns how many channels have a listener although the server has
	// not confirmed the subscription for at least d: it never has, it refuses, or the
	// connection was lost and the library says so. It does no I/O.
	Unconfirmed(d time.Duration) int
}

// A Batcher is a Redis that can send many scripts in one go. An adapter need
// not implement it. Without it each script is sent by itself.
type Batcher interface {
	Redis

	// RunBatch does for each request what Run does, and sets its Reply and Err. Each
	// request is executed once, none waits for another's success, and the order is not
	// promised. There are at least two requests, and Node returned the same for all of
	// them when it was asked. RunBatch must not retain them. It is not called if
	// Traits.ContextValues is set.
	RunBatch(requests []*Request)
}

// An Acker is a Redis that can wait for replicas. An adapter need not implement
// it. Without it there is no replica acknowledgement (Config.Acks).
type Acker interface {
	Redis

	// RunAcked does what Run does. Then it waits, with WAIT, until so many replicas
	// have acknowledged what the script wrote, or timeout is over. It uses a
	// connection that nothing else uses meanwhile, because a connection that waits
	// stalls whatever shares it. A timeout for which the driver's own time-outs
	// leave no room is shortened.
	//
	// acked is how many replicas have acknowledged, which may be more or fewer than
	// replicas. It is negative if the server cannot say, because it does not know
	// WAIT or forbids it. It is valid if err is nil.
	//
	// If the answer to WAIT is lost, the outcome is Unknown, even if the script was
	// answered.
	//
	// There is at least one key. A driver limits how many connections to a node wait
	// at a time, so that others remain. A call that finds none free in time is
	// NotExecuted.
	RunAcked(ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration) (reply Reply, acked int, err error)

	// Replicas returns how many replicas the primary that has key is sending to right
	// now. It fails with the code READONLY if the node that answers is no primary. The
	// outcome Refused means that the server will never say. Then nobody waits for
	// replicas of that node until its connection breaks, unless Config.Acks demands a
	// number.
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
	// Scan runs one SCAN step for keys that match the glob pattern and are of a
	// type, named as TYPE names it ("hash", "string", "zset"). The first call has
	// the cursor 0, and a next of 0 is the end.
	Scan(ctx context.Context, cursor uint64, kind, pattern string, count int) (keys []string, next uint64, err error)
}

// Traits are fixed facts about a driver and its configuration.
type Traits struct {
	// Name is for messages: "redlatchgoredis", "redlatchrueidis".
	Name string
	// Timeout is how long Run can take at most, whatever the server does: to find
	// or make a connection, and to wait for the reply. 0 means that the driver
	// sets no limit, and redlatch.New refuses such a driver.
	Timeout time.Duration
	// ContextValues says that Run looks at its context's values, or passes them to
	// code that does, such as a hook of the client library.
	ContextValues bool
	// Interruptible says that Run, while it has a connection, returns when its context
	// ends. The outcome of the error is Unknown, unless nothing was sent. What was
	// sent may still be executed, its answer is dropped, and no other call notices.
	// After that the driver does not use keys and args.
	Interruptible bool
	// Direct says that a caller whose context can end may call Run itself while the
	// server answers promptly, although Run does not return when the context ends. If
	// the server falls silent at that moment the caller may be late by Timeout.
	// Without Direct or Interruptible, a second goroutine calls Run for such a caller.
	Direct bool
	// Cluster says that the keys of one script must share a hash slot.
	Cluster bool
	// Replicated says that the driver follows the primary to another server when a
	// replica takes over, as with Sentinel and in a cluster.
	Replicated bool
}

// A Notice is what a subscription delivers.
type Notice struct {
	// Subscribed is true when the server has confirmed the subscription: at the
	// start, and again after each reconnect. Messages that were published before
	// it are lost.
	Subscribed bool
	// Payload is the message, if Subscribed is false.
	Payload string
}
