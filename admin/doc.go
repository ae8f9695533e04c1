// Package admin is for whoever runs a Redis with locks: it says who holds a lock
// and who waits for it, lists what is locked, asks all clients what they do, and
// releases a lock for its holder.
//
//	a := admin.New(client)
//	info, err := a.Info(ctx, "orders:42")
//	for info, err := range a.Locks(ctx, "orders:*") { ... }
//	for change, err := range a.Watch(ctx, "orders:42") { ... }
//
// Looking changes nothing. What the server has of a lock is true when it answers,
// and may not be any more when the caller reads it: no program should decide by it
// whether it may go on. Only holding the lock says that.
package admin
