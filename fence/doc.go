// Package fence is the resource's side of fencing tokens. A lock cannot stop a
// holder that was paused, lost the lock meanwhile, and writes when it wakes. The
// resource can. The holder shows its token, redlatch.Hold.Token, with each
// write. The resource refuses a token that is lower than the highest that it has
// been shown.
//
//	state, err := fence.NewKey(store, "orders:42:state")
//	hold, err := client.Lock("orders:42", redlatch.Fenced()).Acquire(ctx)
//	err = state.Set(ctx, hold.Token(), "shipped", 0) // refused if a later holder has been here
//
// There are guards for what is in this process ([Guard], [Register]), for a key
// of a Redis server ([Key]), and for the rows of an SQL table ([Table]).
//
// # What is not promised
//
//   - A guard protects only against writers that go through it. If one writer
//     does not, the resource is as unprotected as before. A holder without a
//     token cannot go through a guard: the guards refuse token 0 with
//     [ErrUnfenced].
//   - A guard refuses a stale holder after the next holder has shown its token,
//     not after the stale one has lost the lock. A holder that reads what it is
//     going to change must therefore show its token first, with Check or Get.
//     Otherwise a late write of the previous holder can come between its read
//     and its write.
//   - Two holders can have the same token if Redis forgets that it gave one. It
//     forgets by a failover to a replica that did not have the acquisition yet, a
//     restart from an older file, an eviction of the counter, or DEL. The guards
//     take the two holders for one. If Redis forgets more than one token, the
//     guards refuse new holders until the count has passed the highest token
//     shown. That is an outage, not a corruption. Each acquisition of the lock
//     counts on, so the outage ends.
//   - A [Key] on the server that also has the lock is forgotten together with the
//     lock.
//   - A guard orders holders. It does not order what one holder does at the same
//     time in several goroutines.
//   - Tokens of different locks cannot be compared. Guard one resource with one
//     lock.
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
