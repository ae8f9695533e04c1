// Package real asks real servers what package sim has asked the embedded one, and
// compares what they answer.
//
// A play of package sim notes each script that its servers executed, each command
// in it with its answer, and what was stored before and after. A real server gets
// the same scripts in the same order. Compared are, for each script: the commands
// that it gives, with their arguments; what each is answered; what the script
// returns; and all that is stored then, the fields of a hash as a set.
//
// What a play's own time decides comes from the record. ask.lua stands before each
// script. It answers TIME, PTTL, PUBSUB and PUBLISH from it, and gives the fields
// of a hash in its order. It has each TTL end so late that no key ends by itself.
// A key that the embedded server has let go of before a script is deleted in the
// real server, too, and what a fault has put in the place of the data is put
// there. A command that an ailment refuses is not given.
//
// A table of single commands compares just these: what a command leaves of a TTL,
// when a key ends, how many listen, and which commands are refused for want of
// memory or of a disk, or by a replica.
//
// # What is not compared
//
//   - The text of an error, but for its code.
//   - The order in which a hash has its fields: scripts get that of the embedded
//     server. And the order of pairs, which Lua leaves open: it is that of the
//     keys.
//   - How numbers with a fraction, or above 1e17, are written, where a script
//     gives them to a command as numbers: the value is.
//   - How many milliseconds of a TTL are left while a script runs, and when within
//     a millisecond a key ends.
//   - Sharded Pub/Sub, clusters and replication, which the embedded server does
//     not have.
//   - A server that refuses each script: LOADING, BUSY, and a replica, which
//     really refuses only what writes.
//   - Scripts that no type of package sim uses. The test says with -v which it has
//     seen.
package real
