// Package redlatchgoredis lets redlatch use go-redis, for a single server, for
// Sentinel (a failover client) or for a cluster.
//
//	client, err := redlatchgoredis.Open("redis://localhost:6379", redlatch.Config{})
//	if err != nil { ... }
//	defer client.Close()
//
// [Open] makes a client of redlatch from a URL, with connections of its own. [Use]
// makes a driver of a go-redis client that the program has already.
//
// Each script is sent as a command that forbids go-redis to send it again,
// whatever MaxRetries says. So a lost reply is reported, and does not lead to a
// second execution. Other commands of the program keep their retries.
//
// A hook of the program must not do it either: it must call the next hook at most
// once for a command. Where it calls that twice, both sends are executed, and the
// second answer counts. The second of two releases finds nothing to release. So
// each Release then returns a *redlatch.LostError, although the lock was held
// until then.
//
// # Leaving
//
// go-redis returns when it has an answer, or after ReadTimeout, whatever becomes
// of the context. A caller of redlatch returns at most 20 ms after its context has
// ended, because a second goroutine waits for go-redis. That costs up to half as
// much CPU time again. So a caller does without it while the server answers
// promptly: the latest answer took at most 10 ms and is no older than that, none
// has been waited for for longer, and the deadline of the caller's context is
// farther away. In a cluster it never does without.
//
// Callers that are in go-redis at the moment when the server, or the connection
// that they use, falls silent can return late: at most the Timeout of
// [Driver.Traits] after their contexts. Callers that come later are not late.
//
// Nothing is added to the client, and no connection is closed for a caller that
// leaves.
//
// Subscriptions share one connection (with sharded Pub/Sub, one per node). It
// exists as long as there is a subscription.
//
// # Versions
//
// This package is a module of its own, so that a program needs one client library
// only. It is released together with redlatch, and has the same version numbers.
// Require the same version of both.
//
// It needs go-redis 9.19. In older versions a command cannot forbid go-redis to
// send it again, and a script whose reply is lost is executed twice.
//
// # Options that matter
//
// ReadTimeout and WriteTimeout, 5 s by default (3 s before go-redis 9.22), are the
// time that it takes to notice that a connection is dead. [Driver.Traits] says
// what follows. PoolSize is the number of scripts in flight at once. Commands of
// the program that block (BLPOP, XREAD) keep a connection for as long as they do.
// Count them in PoolSize, or give redlatch a client of its own: renewals that find
// no connection lose the lock. With ContextTimeoutEnabled no script takes longer
// than 3 s, including the time to connect.
//
// Config.WatchdogTimeout must be at least three times as long as the Timeout of
// [Driver.Traits]. So for a short WatchdogTimeout lower DialTimeout, too, which is
// 5 s by default. Half a second for each of the three time-outs allows 3 s.
//
// # Many callers
//
// Each script is a command of its own, with the values of its caller's context, as
// hooks and traces expect. With [SharedPipelines] the scripts of many callers go
// out together, which saves system calls.
//
// # When a name moves
//
// A fixed address may lead to another server when a replica has taken over. When a
// *redis.Client that does not ask sentinels is told that its server is no primary
// (READONLY, MOVED, MASTERDOWN), the idle connections of its pool are closed. For
// that go-redis gets one command for each of them that it cannot send. Hooks of
// the program, and a Limiter, see that these fail.
//
// # Limits
//
// If a connection is lost while it lies idle in the pool, go-redis replaces it
// without telling anybody. So OnBreak reports only the loss of a connection in
// use, and of the one for subscriptions.
package redlatchgoredis
