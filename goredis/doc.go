// Package goredis lets redlatch use a go-redis client that the program has
// already: for a single server, for Sentinel (a failover client) or for a
// cluster.
//
// Each script is sent as a command that forbids go-redis to send it again,
// whatever MaxRetries says. So a lost reply is reported, and does not lead to a
// second execution. Other commands of the program keep their retries.
//
// A hook of the program must not do it either: it must call the next hook at most once for a command. Where
// it calls that twice, both sends are executed, and the second answer counts. The second of two
// releases finds nothing to release. So each Release then returns a *redlatch.LostError, although the lock
// was held until then.
//
// # Leaving
//
// go-redis returns when it has an answer, or after ReadTimeout, whatever becomes of
// the context. A caller of redlatch returns when its context ends. For that, Use adds a
// hook to a *redis.Client, for good. It wraps each connection that go-redis makes from
// then on. When a caller leaves, the connection over which its request was sent is closed,
// unless the answer comes within some 5 ms. The caller returns at most 20 ms after the end
// of its context. go-redis gives a connection to one command at a time, so no other
// command notices. There is one exception: of two scripts with the same keys and arguments
// that are sent at the very same time, the other may be broken off. Only questions can be
// so alike, and redlatch asks them again.
//
// A caller that waits for a new connection leaves the wait at once, and a handshake that
// go-redis has begun for it when the server has been silent for 0.1 s.
//
// Not promised: a caller stays until go-redis returns if its script went over a
// connection that Use did not wrap, and others were being written to at that time. The first
// scripts with a context that can end replace such connections one by one. Hooks of the program,
// and a Limiter, see a command that fails with an error which says so. Then they see the same
// command again. Nor can a caller leave whose command a hook of the program has replaced by
// another one; a hook may change the arguments in place.
//
// Pass the client itself. A copy of a client (WithTimeout) makes connections that Use cannot
// wrap: callers that leave then leave a goroutine behind, until go-redis returns. Call Use
// once, and before other goroutines use the client: each call adds a hook, and in go-redis
// 9.19 a hook must not be added meanwhile. Hooks that were there before get connections of
// this package, whose method NetConn returns what is below.
//
// With a *redis.ClusterClient, and with a ReadTimeout or WriteTimeout that is negative, nothing
// is added: a second goroutine sends the scripts of a caller whose context can end.
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
// It needs go-redis 9.19. In older versions a command cannot forbid go-redis to send
// it again, and a script whose reply is lost is executed twice.
//
// # Options that matter
//
// ReadTimeout and WriteTimeout, 5 s by default (3 s before go-redis 9.22), are the time that it
// takes to notice that a connection is dead. [Driver.Traits] says what follows. PoolSize is the
// number of scripts in flight at once. Commands of the program that block (BLPOP, XREAD) keep a connection for
// as long as they do. Count them in PoolSize, or give redlatch a client of its own: renewals that find no
// connection lose the lock. With ContextTimeoutEnabled no script takes longer than
// 3 s, including the time to connect.
//
// Config.WatchdogTimeout must be at least three times as long as the Timeout of
// [Driver.Traits]. So for a short WatchdogTimeout lower DialTimeout, too, which is 5 s by
// default. Half a second for each of the three time-outs allows 3 s.
//
// # Many callers
//
// Each script is a command of its own, with the values of its caller's context, as hooks
// and traces expect. With [SharedPipelines] the scripts of many callers go out together,
// which saves system calls.
//
// # When a name moves
//
// A fixed address may lead to another server when a replica has taken over. When a
// *redis.Client that does not ask sentinels is told that its server is no primary
// (READONLY, MOVED, MASTERDOWN), the idle connections of its pool are closed. For that go-redis gets one
// command for each of them that it cannot send. Hooks of the program, and a Limiter, see
// that these fail.
//
// # Limits
//
// If a connection is lost while it lies idle in the pool, go-redis replaces it
// without telling anybody. So OnBreak reports only the loss of a connection in
// use, and of the one for subscriptions.
package goredis
