// Package semaphore lets a number of callers do something at a time, over all
// processes, as Redisson's semaphores do:
//
//	ports := semaphore.New(client, "ports", 8)
//	err := ports.Do(ctx, 2, func(ctx context.Context) error { ... })
//
// The permits of a [Semaphore] are only counted. What a process holds when it
// crashes is lost. Those of an [Expirable] have ids and leases. What is acquired
// is a redlatch.Hold, whose context ends when a permit is lost. A permit comes
// back by itself when its holder is gone.
//
// The client is one of package redlatch, which also has the errors that are
// returned here, and the options.
package semaphore
