// Package goredis lets redlatch use a go-redis client that the program has
// already: a single server, Sentinel (a failover client) or a cluster.
//
// Nothing of the client is changed. Each script is sent as a command that
// forbids go-redis to send it again, whatever MaxRetries says, so that a lost
// reply is reported and not turned into a second execution; other commands of
// the program keep their retries. Contexts with a deadline or a cancellation
// never reach go-redis.
//
// Subscriptions share one connection (with sharded Pub/Sub, one per node), which
// is there as long as there is a subscription.
//
// # Options that matter
//
// ReadTimeout and WriteTimeout bound how long a dead connection can go
// unnoticed; negative values remove the bound, and then [redlatch.Traits] says
// so. PoolSize is the number of scripts under way at once. A lost connection
// that lies idle in the pool is noticed when it is next used.
package goredis
