// Package campaign plays what package sim plays with real processes, on real
// servers, in real time. The same checker judges it.
//
// Each type that is held is played in three topologies: on a single server, on a
// primary with two replicas and three sentinels, and on a cluster of three
// primaries with a replica each. Chance deals out the servers: Redis and Valkey,
// each version that tests have. Three processes of three workers each want two
// objects. Each process has ways of its own to all servers, through
// internal/faultnet, and an adapter of its own. They write when they trusted what
// they had, by the monotonic clock of the machine. In some plays a process of
// Redisson wants the same objects.
//
// # What goes wrong
//
// One thing at a time goes wrong with a process, and one with the servers:
//
//   - A process is killed, or stands still past its lease. Its ways are cut, in
//     one direction or both, all of them or the one to one server; or requests and
//     replies are late or lost; or its connections break.
//   - The process of Redisson is killed, or stands still.
//   - A server stands still, for less than others wait for it. A single server is
//     killed and comes back with its data. A sentinel is killed and comes back. So
//     is a replica, which misses something, and may come back while its primary
//     stands still. A slot moves to another primary, key by key.
//   - A primary is killed and comes back without any data. Another server takes
//     the place of a primary that was killed after its replicas had missed
//     something, of one that stood still and then goes on, or of one that answers
//     all the while.
//
// What the last of these may take away excuses its holder: from before the fault
// until all servers agree again, and then for as long as its lease. Nothing else
// excuses anything: not the move of a slot, nor a restart with data.
//
// A claim counts from when its worker first found it to be its own until it last
// did. What a process does before it looks again is not protected, and does not
// count. Redisson does not tell a thread that it has lost a lock. So its worker
// asks the server: what its thread had when that was answered, it had when it was
// asked.
//
// A campaign fails, too, if one of the adapters or Redisson never acquires
// anything: in all plays of a topology, or in all of a type.
//
// # What cannot be shown here
//
//   - Clocks that differ. All processes are on one machine and share its monotonic
//     clock. Its wall clock stays as it is, for the servers too.
//   - What nobody holds: semaphore (which only counts), latch, barrier and
//     limiter. Their checks need package sim.
//   - Servers that do not reach each other. All faults of the network are between
//     a process and a server. A primary that is none any more is reached by those
//     who do not know yet, which is the same for them.
//   - Losses of one shard only: a loss in a cluster excuses holders of both
//     objects.
//   - Redisson's readers in a cluster: its scripts use keys that they do not
//     declare, which a slot that moves may leave behind. And what goes wrong
//     between Redisson and a server.
//   - Acks, MultiLocks of several clients, MaxHold, detached holds, and an
//     administrator who forces a lock. Keys that are left behind. They are for
//     packages sim and topologies.
//   - The same play again. A seed repeats what goes wrong, and not when a process
//     does what.
package campaign
