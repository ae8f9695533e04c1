// Package drivertest tests that an implementation of [driver.Redis] keeps its
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
// The tests put a proxy between the driver and the server. The proxy loses
// replies, breaks connections and falls silent. The tests look at the server to
// see what was executed, and how often. Above all, a script whose reply was lost
// must have been sent once.
//
// The tests run side by side, each with a server of its own. They judge nothing by
// how long it took on a busy machine: what takes longer than Traits.Timeout fails
// only if it takes half a minute longer. To show that a driver is exact, test it
// in fake time ([testing/synctest]).
//
// # What is checked
//
//   - Replies, keys and arguments arrive as they were sent, whatever bytes they
//     have, and under load each goes to its own caller.
//   - A script that the server does not know is sent once more, in full.
//   - Every failure has the right outcome, and comes within Traits.Timeout: an
//     error reply, no server, silence, a lost reply, a request that arrives late,
//     connections that break under load.
//   - Subscriptions outlive broken and silent connections, and say so. Messages
//     come in order, and only to the handlers that they are for. A subscription
//     that was stopped is over at the server. A subscription that the server
//     refuses does not affect the others.
//   - OnBreak reports lost connections, Primaries and Scan find all hashes, and
//     after a restart everything is as before.
//   - When the name of its server is given to another server, the driver leaves
//     the first one as soon as that answers that it is no primary.
//   - No goroutine is left a minute after a driver's end.
//   - In a cluster ([RunCluster]) requests follow their slot with MOVED and ASK
//     and are executed once, and keys of two slots are refused. After a failover,
//     there and elsewhere ([RunFailover]), scripts succeed and messages arrive
//     again.
//
// A driver that is a [driver.Sharer] must say how many listen to a channel, and a
// [driver.Subscriber] how many channels are not confirmed.
//
// For a driver that is a [driver.Batcher], all of this is tested again with
// batches. Results go to their requests, also beside other batches and runs. A
// request that fails affects only itself. Only scripts that are unknown to the
// server are sent again. When a connection is lost in the middle, requests without
// an answer are unknown and nothing is executed twice. Nothing that was handed in
// is used after the return. A batch in a cluster has the keys of one node, as the
// driver sees it, which may really be on several nodes.
//
// For a driver that is a [driver.Acker], it is tested again with scripts that wait
// for replicas. The driver must say how many replicas have acknowledged, also
// while some of [Server.Replicas] stand still, and it must say if a server cannot
// wait or does not tell of its replicas. The wait must end in time, must not delay
// anybody else, and must take a limited number of connections, which are used
// again. In a cluster each primary has replicas of its own, and slots that move
// are followed.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch, and
// has the same version numbers. Require the same version of both.
package drivertest
