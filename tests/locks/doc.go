// Package locks tests the locks of every kind. The first word of a file's name is
// its subject:
//
//   - lock: waiting, holding, re-entering, renewing, losing and releasing, mostly
//     of the plain lock;
//   - spinlock, fencedlock, stripedlock: what is different about these;
//   - fairlock: its queue: who stands in it, leaves it, and is swept out of it;
//   - readwrite: both sides, nests of them, readers that share a hold, and
//     Redisson beside them;
//   - grouplock: locks that share a name in groups;
//   - multilock: several locks that are taken as one, red locks too;
//   - acks: holds and permits whose replicas are asked to acknowledge them, as
//     Config.Acks demands.
package locks
