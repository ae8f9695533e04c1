// Package fence is the resource's side of fencing tokens. A lock cannot stop a
// holder that was paused, lost the lock meanwhile, and writes when it wakes. The
// resource can: the holder shows its token, [redlatch.Hold.Token], with each
// write, and the resource refuses a token that is lower than the highest it has
// been shown.
//
// There are guards for what is in this process ([Guard], [Register]), for a key
// of a Redis server ([Key]), and for the rows of an SQL table ([Table]).
//
// # What is not promised
//
//   - A guard guards only against those who go through it. One writer that does
//     not, and the resource is as unprotected as before. The same is true of a
//     holder without a token: the guards refuse token 0 with [ErrUnfenced].
//   - A stale holder is refused from the moment on at which its successor has
//     shown its token, not from the moment at which it lost the lock. A holder
//     that reads what it is going to change must therefore show its token first
//     (Check, or Get): else a late write of its predecessor can come between.
//   - Two holders can have the same token if Redis forgets that it gave one: by a
//     failover to a replica that did not have the acquisition yet, a restart from
//     an older file, an eviction of the counter, or DEL. The guards take them for
//     one holder. If Redis forgets more than one, new holders are refused until
//     the count has passed the highest token shown. That is an outage, not a
//     corruption, and acquiring the lock again and again ends it.
//   - A [Key] on the server that also has the lock forgets together with it.
//   - A guard orders holders. What one holder does at the same time in several
//     goroutines is that holder's business.
//   - Tokens of different locks have nothing to do with one another. One resource
//     is guarded by one lock.
//
// # The rule
//
// Let highest be the highest token that the resource has been shown; 0 at first.
//
//   - A token of at most 0 is refused with [ErrUnfenced].
//   - A token below highest is refused with a [*StaleError], which is [ErrStale].
//   - A token equal to highest is accepted: a holder writes as often as it likes.
//   - A token above highest is accepted and becomes highest.
//
// Comparing, remembering and writing are one atomic step. So the sequence of
// accepted tokens never falls.
package fence
