// Package goredis lets redlatch use a go-redis client that the program has
// already: for a single server, for Sentinel (a failover client) or for a
// cluster.
//
// Each script is sent as a command that forbids go-redis to send it again,
// whatever MaxRetries says. So a lost reply is reported, and does not lead to a
// second execution. Other commands of the program keep their retries.
//
// # Leaving
//
// go-redis returns when it has an answer, or after ReadTimeout, whatever becomes of
// the context. A caller of redlatch returns when its context ends. For that, Use adds a
// hook to a *redis.Client, which wraps each connection that go-redis makes from then on.
// When a caller leaves, the connection over which its request was sent is closed, unless
// the answer comes within some 5 ms. Nobody else uses that connection: go-redis gives
// one to one command at a time. Closing it takes at most 20 ms. Where a new connection is
// being made for the caller, and the server has been silent for 0.1 s, all connections
// in that state are closed.
//
// The first scripts replace the connections that the client had before Use, one by one.
// Hooks of the program see a command that fails with an error which says so. Then they
// see the same command again. A client that is used for several Drivers gets a hook
// for each. Call Use before other goroutines use the client: in go-redis 9.19, a hook
// must not be added meanwhile.
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
// number of scripts in flight at once. With ContextTimeoutEnabled no script takes longer than
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
// # Limits
//
// If a connection is lost while it lies idle in the pool, go-redis replaces it
// without telling anybody. So OnBreak reports only the loss of a connection in
// use, and of the one for subscriptions.
package goredis
