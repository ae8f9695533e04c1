// Package goredis lets redlatch use a go-redis client that the program has
// already: a single server, Sentinel (a failover client) or a cluster.
//
// Nothing of the client is changed. Each script is sent as a command that
// forbids go-redis to send it again, whatever MaxRetries says, so that a lost
// reply is reported and not turned into a second execution; other commands of
// the program keep their retries. The deadline and the cancellation of a caller's
// context never reach go-redis.
//
// Subscriptions share one connection (with sharded Pub/Sub, one per node), which
// is there as long as there is a subscription.
//
// # Versions
//
// This package is a module of its own, so that a program has one client library only.
// It is released together with redlatch and has its version numbers: require the same
// version of both.
//
// It needs go-redis 9.19. Before that, a command could not forbid go-redis to send it
// again, and a script whose reply was lost was executed twice.
//
// # Options that matter
//
// ReadTimeout and WriteTimeout, 5 s by default (3 s before go-redis 9.22), are how
// long it takes to notice that a connection is dead; see [Driver.Traits] for what
// follows. PoolSize is the number of scripts in flight at once. With
// ContextTimeoutEnabled no script takes longer than 3 s, connecting included. A WatchdogTimeout has to be at least three
// times as long as the Timeout of [Driver.Traits]. So for a short one lower DialTimeout, 5 s by
// default, too: half a second for each of the three time-outs allows 3 s.
//
// # Many callers
//
// Each script is a command of its own, with the values of its caller's context, as hooks
// and traces expect. With [SharedPipelines] those of many callers go out together, which
// saves system calls. With [CallersStay] a caller whose context can be cancelled needs no
// other goroutine.
//
// # Limits
//
// go-redis replaces a connection that was lost while it lay idle in the pool
// without telling anybody, so OnBreak reports the loss of a connection in use, and
// of the one for subscriptions, and no other.
package goredis
