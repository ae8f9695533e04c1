// Package redlatchtest runs redlatch without a Redis server, for the unit tests
// of programs that use it:
//
//	synctest.Test(t, func(t *testing.T) {
//		client := redlatchtest.NewClient(t, redlatch.Config{})
//		hold, err := client.Lock("orders:42").Acquire(t.Context())
//		...
//		redlatchtest.Lose(hold) // hold.Context() has ended
//	})
//
// [NewClient] makes a client with a server of its own. [Server.Client] makes one
// more client of a server, as another process would have it. [Lose] takes a lock
// or a permit away from its holder. [Server.Stop] and [Server.Pause] are outages.
//
// Everything works inside a [testing/synctest] bubble, where a test of leases and
// renewals over hours takes milliseconds, and leaves no goroutine behind.
//
// The server is miniredis, inside the test's own process. It differs from a real
// server:
//
//   - It is one process and stores nothing on disk.
//   - There is no replication, no cluster and no sharded Pub/Sub, so nothing that
//     a failover does can be tested with it.
//   - It has about a fifth of the speed of a real server, so it is not for
//     benchmarks.
//   - Time goes on inside a script, where a real server stops it.
//   - The code of an error that a command raises inside a script, such as
//     WRONGTYPE, comes inside another text. redlatch finds the code there. Other
//     programs may not.
//   - A number with a fraction that a script gives to a command is written with
//     fewer digits, or with an exponent. Its value is the same.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch, and
// has the same version numbers. Require the same version of both.
package redlatchtest
