package redlatch

// FairLock returns the reentrant lock with this name that callers get in the order
// in which they asked for it, in all processes and languages: Redisson's
// getFairLock, and with NonReentrant its getNonReentrantFairLock. The queue stands
// in Redis. Each caller of this process has a place of its own in it, so the lock
// does not pass between goroutines without a round trip, as Lock's does, and each
// of them has a subscription while it waits.
//
// TryAcquire with a wait of 0 gets the lock only if nobody waits for it, and never
// lines up. A caller that gives up leaves the queue at once. One whose process has
// died is passed over as soon as the server knows, six seconds after it was heard
// at the latest; one that was only thought dead lines up again, at the end
// (observe.Hooks.Requeued). The order between Go and Java is as good as Redisson's
// own care for its queue: docs/protocol.md says more.
//
// As far as waiting goes it is another lock than Lock's: do not mix the two under
// one name. "x" and "{x}" share their queue, as in Redisson, so a client that has
// used one of these names is refused the other.
func (c *Client) FairLock(name string, opts ...LockOption) *Lock {
	return newLock(c, KindFair, c.engines.Locks.Fair(c.engines.Server.Key(name)), opts)
}
