// Package drivertest proves that an implementation of [driver.Redis] keeps its
// contract. Call [Run] from a test of the implementation:
//
//	func TestContract(t *testing.T) {
//		drivertest.Run(t, drivertest.Config{
//			New: func(t *testing.T, addr string, timeout time.Duration) driver.Redis {
//				client := mylib.New(addr, mylib.Timeout(timeout))
//				t.Cleanup(client.Close)
//				return mydriver.Use(client)
//			},
//		})
//	}
//
// The tests put a proxy between the driver and the server, which loses replies,
// breaks connections and falls silent, and look at the server to see what was
// executed, and how often. Above all, a script whose reply was lost must have been
// sent once.
//
// They run side by side, each with a server of its own, and judge nothing by how long
// it took on a busy machine: what takes longer than Traits.Timeout fails only if it
// takes half a minute longer. To show that a driver is exact, test it in fake time
// ([testing/synctest]).
//
// # What is checked
//
//   - Replies, keys and arguments arrive as they were sent, whatever bytes they
//     have, and under load each goes to its own caller.
//   - A script that the server does not know is sent once more, in full.
//   - Every failure has the right outcome, and comes within Traits.Timeout: an
//     error reply, no server, silence, a lost reply, a request that arrives late,
//     connections that break under load.
//   - Subscriptions outlive broken and silent connections, and say so; messages
//     come in order and to whom they are for; a stopped one is over at the server.
//   - OnBreak reports lost connections, Primaries and Scan find all hashes, and
//     after a restart all is as before.
//   - No goroutine is left a minute after a driver's end.
//   - In a cluster ([RunCluster]) requests follow their slot with MOVED and ASK
//     and are executed once, and keys of two slots are refused. After a failover,
//     there and elsewhere ([RunFailover]), scripts succeed and messages arrive
//     again.
//
// Of a driver that is a [driver.Sharer]: it says how many listen to a channel.
//
// Of a driver that is a [driver.Batcher] all of this is asked once more for
// batches: results go to their requests, also beside other batches and runs; what
// fails costs only itself; only what is unknown to the server is sent again; when
// a connection is lost in the middle, what had no answer is unknown and nothing is
// executed twice; nothing that was handed in is used after the return. A batch in
// a cluster has the keys of one node, as the driver has it, which may be on several.
//
// Of one that is a [driver.Acker], once more, of scripts that wait for replicas: it
// says how many have acknowledged, also while some of [Server.Replicas] stand still,
// and that a server cannot wait or does not tell of its replicas; waiting ends in
// time, delays nobody else, and takes a bounded number of connections, which are used
// again. In a cluster each primary has replicas of its own, and slots that move are
// followed.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch and has
// its version numbers: require the same version of both.
package drivertest
