// Package sim plays clients, servers and the network between them in fake time,
// breaks all of it by chance, and checks what the workers of the clients believed
// meanwhile. What chance decides follows from a seed.
//
// A world has three processes of three workers each. They want two objects of one
// type: lock, nonreentrant, fenced, fair, readwrite, multi, striped, spin, permits
// (of semaphore.Expirable), election, group, red, acked, cluster or endpoint. They
// wait, try, acquire again within what they hold, extend, give up and release.
// Some give up at the very moment at which another worker of their process
// releases, and so perhaps lets them in. Some detach what they hold, and another
// process releases it by its id. Writers read within what they hold, and may go on
// reading when they have released. Candidates stand by, or resign. Some clients
// have a MaxHold, and some give up sooner than others. Or they use what nobody
// holds: semaphore (which only counts, and to which permits are added), latch,
// barrier (which somebody resets) or limiter. For a minute two faults act at a
// time. Then it is calm, and all that is left has to come right. Each process in
// turn then passes an object on within itself, while the others wait for it. It
// passes on a lock, or single permits that the others keep when they get them, or
// it reads all the time while they want to write. And somebody takes from each
// process what it has.
//
// With two of any three seeds that follow on each other, a process of Redisson
// takes part: at lock, nonreentrant, fenced, readwrite, multi, spin, permits and
// election. Its threads try for some time and wait for messages. They hold with
// the watchdog or for a lease, and unlock. They send the scripts of package
// redissonlua. Faults hit that process, too. The checker takes it for one more
// process. A thread believes that it has something until its lease may be over, or
// until a renewal says that it is gone.
//
// The server is the embedded one, with the real scripts. It is called without
// sockets, so that nothing but fake time passes. Four types need more than one
// server:
//
//   - red: a RedLock on three or five independent ones. Each has links, faults, a
//     clock and losses of its own.
//   - acked: a fenced lock, on a server with a replica that lags. Config.Acks is
//     AckRequired, for one replica. WAIT asks only for what the script has
//     written, as that of Redis 8 and of Valkey. Redis 6 and 7 wait for all that
//     was executed before.
//   - cluster: a lock, fenced or not, and two as a MultiLock, on two or three
//     nodes.
//   - endpoint: the same behind one endpoint, which clients take for one server.
//     It finds the node, and refuses keys of several slots.
//
// # What goes wrong
//
//   - All the time, on the links that chance chooses: requests and replies are
//     lost, requests are executed up to 20 seconds late, replies come when nobody
//     waits for them any more, and messages are lost, late or come twice. The
//     server's clock is up to 2 % fast or slow. Requests are executed twice: the
//     second time at once, or up to 20 seconds later if the sender has heard
//     nothing of the first. The second answer is lost. A request that was answered
//     is not executed once more later: no driver may send it again.
//   - To a process: its link is cut, one way or both; it stands still, as far as
//     others see, for longer than a lease; its connections break; it is killed, or
//     shuts down in order, and another one begins.
//   - To the server, which keeps its data: a restart, CLIENT PAUSE, a clock that
//     is set back, OOM, MISCONF, LOADING, BUSY, READONLY, NOSCRIPT.
//   - To the data: a restart without any, or with older data; a failover to a
//     replica that lags; one in which the old primary still answers some
//     processes; eviction; a clock that is set ahead; a lock that somebody forces.
//     Only even seeds have these: with an odd one nothing excuses anything.
//   - acked, about every other time: the replica stands still, or takes over. The
//     old primary then ends before, or still answers some processes. None of this
//     excuses anything.
//   - cluster and endpoint, about every other time: a slot moves key by key, or
//     the cluster is down. A node executes, or answers MOVED, ASK or TRYAGAIN, by
//     which of the keys it has. No data is lost there.
//   - What nobody holds has no fault of the last kind, as no lease says how long a
//     loss excuses what. Nor do processes end that use the semaphore: they would
//     take its permits with them.
//
// What cannot be shown here: a process of which the code stands still, too. No
// client's clock is stepped, because a bubble of fake time has one. Nothing is
// decided by the wall clock, but that a hold may end early: package archtest keeps
// it so. What an adapter makes of a redirection is its own: here a driver follows
// MOVED and ASK once, and package drivertest proves what adapters do on a real
// cluster. Not played yet: sharded Pub/Sub, a failover in a cluster, replicas of
// which only some acknowledge, and detached permits. When its clock is set back,
// the embedded server keeps what is left of a TTL, where Redis makes it longer.
//
// What is Redisson's own, and is not played or not held against anybody: what it
// takes with a request whose reply is lost, stays taken for its lease. So each of
// its acquisitions has a thread of its own, because an unlock that comes late
// would free the next hold of the same thread. It acquires nothing within itself.
// It takes no permit without a lease, because nobody would give a lost one back.
// Its clock is the server's. Its watchdog renews for longer than any lease of
// ours. It has no fair lock, where a thread that dies in the queue delays all
// behind it for minutes. It has no group, where an unlock that comes late frees a
// value whoever has it. And it has no semaphore, latch or limiter, which a lost
// reply leaves wrong for ever.
//
// # What is checked
//
//   - No two trust that they have what one may have, or more permits than there
//     are. A loss of data opens a window for the holds that it may have taken
//     away, which their leases bound. A lock that somebody forces does so for
//     those who had just that, and until a late request may have come, if nobody
//     was told that it was forced. Everything else counts.
//   - Of a RedLock each vote is checked so, at its server. Who trusts that it has
//     the whole lock trusts a majority of the votes at each moment, whatever was
//     lost. Two who do need a vote in common that a loss may have taken from one
//     of them.
//   - All keys of a script are of one slot. An endpoint refuses keys of several
//     slots. After the first refusal a client sends them apart.
//   - In the calm a hold outlasts its lease.
//   - A hold that ends by its window ends while the server still has it.
//   - A lock is forced only from the owners that whoever forces it has found. A
//     process that is asked to let go, and has found the word that says so, has
//     told the holder before it answers. In the calm a holder is told before its
//     lock is taken from it, and within a second.
//   - A process that has shut down has had a release of each of its ids executed.
//     It has released those once more at its end that its late requests have
//     taken.
//   - In the calm a process has its turn within the bound of docs/guarantees.md,
//     however much another one has to do: at a lock, to write beside readers, and
//     for permits of both semaphores.
//   - A hold is told that it is gone only after a loss of data, and so is a
//     release, Redisson's too; that it was taken from it, only if somebody did.
//   - What the context of a hold says of its end, what Err says, and the event of
//     a loss are one thing. Only Shutdown ends the context of a hold that is live
//     still. Its worker may have it until Err says that it is over, and all of
//     that counts.
//   - No hold of the watchdog's lasts for longer than MaxHold.
//   - A call whose wait, or whose context, has ended goes on for as long as a
//     driver waits for an answer. One of several servers may take twice that long.
//     Any other call does not fail as ErrUnavailable before OutageTimeout is over.
//     On one server it does not go on for more than 5.8 s longer than that if no
//     answer comes.
//   - When Shutdown says that all went well, no hold was cut off by it, and the
//     server has none of those that were released. A server that goes on with what
//     it had before a release may have it, until its lease is over. So may one to
//     which a take comes after the release, that had been sent before: the client
//     has sent that take again meanwhile, and cannot know where the first one is.
//   - Who has resigned from an election does not lead when Resign says so. Who is
//     told that it has resigned was asked to.
//   - All that was told of one lock, semaphore, latch, barrier or limiter can
//     have happened in one order, each call at a moment between its beginning
//     and its end. Porcupine searches that order, with the models of package
//     linear. No more permits are taken than there are, and a semaphore finds
//     no more free, nor fewer than there must be. A latch is passed, and says
//     what is missing, as its count-downs allow. Those who meet at a barrier
//     came in the order that they were told, and as many of them as are needed;
//     or all of them are told that it broke. It breaks only if somebody is
//     there who is told nothing, or if the server does not hear of one of their
//     processes for too long. If they are told that it was reset, somebody may
//     have done that while they were there. A call that was told nothing may
//     have been executed, or not.
//   - In the calm, each process finds, takes and drains just the permits that
//     there are, unless somebody who added one was told nothing. Before that a
//     request without an answer may have some on their way. A release that
//     somebody in its process waits for may be on its way, too. So too few free
//     ones are noticed only until the first of these, and in the calm.
//   - A permit that was added and taken away again may still be had: goroutines of
//     one process pass on what they have. So the model allows it as long as a
//     release may be on its way.
//   - A server tells of a latch when all count-downs have been executed, each
//     counted once.
//   - In half of the seeds nobody gives up early at a barrier, so that few are
//     told nothing.
//   - In no interval does a limiter give more than its rate. Nor does it find more
//     free than what it gave leaves.
//   - Tokens and terms rise, unless their number was lost between: with all data,
//     or by a server that goes on with what it had before. An eviction, a clock
//     that is set ahead and a forced release leave it. A term that begins anew is
//     lower only by as much as the server's clock was set back.
//   - Whoever waits gets it, once nothing goes wrong any more: all workers end,
//     and then each process can have all of each object.
//   - At the end nothing is left: no key but those that have to stay, no
//     subscription, no goroutine. Close succeeds.
//
// Package replay plays it in a machine in which all follows from the seed, the
// order of goroutines too. A test here has the faults of a seed, but other
// goroutines may be first. So make sim finds what it can replay. Package real
// compares what the embedded server has answered here with what real ones answer.
// Package campaign plays with real processes and servers.
package sim
