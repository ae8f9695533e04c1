// Package redlatch is Redisson's distributed locks for Go, on the wire: a Go
// service and a Java service share one lock in the same Redis or Valkey.
//
//	client, err := redlatchgoredis.Open("redis://localhost:6379", redlatch.Config{})
//	defer client.Close()
//	err = client.Lock("orders:42").Do(ctx, func(ctx context.Context) error {
//		return ship(ctx, "42") // ctx ends if the lock is lost
//	})
//
// # What a lock here does not promise
//
// A lock in Redis is a lease. Redis can forget it (a failover before
// replication, a restart without persistence, eviction, FLUSHALL), a holder can
// be paused for longer than its lease lasts, and an operator can release it by
// force. No client library can prevent that, and no lock without fencing
// protects a resource from a holder that has not noticed yet.
//
// # What it promises
//
// Among live clients, one owner at a time, as far as Redis can give it. A holder
// whose lease runs out is told before Redis can give the lock to anyone else, as
// long as the server keeps its data and its clock is not stepped: the context
// of its hold ends, with a *LostError as the cause. Every other loss is told as
// soon as it can be seen. docs/guarantees.md has the table.
//
// A lost reply, a late request, a retry or a cancelled context never doubles a
// hold, never cuts one short and never leaks one.
//
// # Names and holds
//
// A [Lock] is a name, a [Hold] is one acquisition:
//
//	orders := client.Lock("orders:42")
//	hold, err := orders.Acquire(ctx) // waits; ctx bounds the waiting only
//	defer hold.Release(ctx)
//	err = ship(hold.Context(), "42")
//
// Without [Lease] a watchdog keeps the hold for as long as the process lives
// (30 seconds, renewed every 10, as in Redisson). With it the lease is fixed.
//
// # Re-entry
//
// To acquire a lock with a context that descends from a live hold of it is to
// enter once more: no goroutine id counts. Of several goroutines that re-enter
// from one hold, one has its turn. [WithOwner] makes all under a context one
// owner.
//
// # More locks
//
// [Client.FairLock] and [Client.ReadWriteLock] are Redisson's types of those
// names, as Lock with [Fenced] is its fenced lock. [Client.StripedLock] is many
// locks under one name, and [MultiLock] and [RedLock] make one lock of several.
// Package redisson has group locks, spin locks, and the locks of map entries, for
// services that share them with Redisson.
//
// # Beside locks
//
// Package semaphore has permits that are only counted, so that a crash loses them,
// and permits with leases, which are a [Hold] and come back. Nobody owns latches,
// barriers and rate limits (packages latch, barrier and ratelimit). Package
// election lets one process lead at a time.
//
// Package admin says who holds what and who waits, and releases a lock for its
// holder. Package observe calls functions of yours when something happens,
// [Client.Stats] counts, and [Client.Healthy] is for readiness probes. Package
// redlatchtest is for tests.
//
// # Drivers
//
// Packages redlatchgoredis, redlatchrueidis and redlatchvalkey work on go-redis,
// rueidis and valkey-go. Open of each makes a client from a URL, with connections
// of its own, and OpenSettings makes one from Redisson's file, which package
// redissonyaml reads. Require all of these modules at the same version. Any
// [driver.Redis] that passes package drivertest will do.
//
// The wire format is that of Redisson 3.10 to 4.7; docs/protocol.md lists every
// key, channel and script, and where redlatch departs from Redisson's conduct.
package redlatch
