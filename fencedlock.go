package redlatch

// FencedLock returns the lock with this name of which every acquisition gets a
// fencing token, Redisson's getFencedLock: the same lock in Redis as Lock's, and
// a counter beside it, redisson_lock_token:{name}, which outlives the lock (for
// how long, Config.TokenTTL says). Hold.Token has the token.
//
// A lock passes between goroutines of one process with a round trip each time,
// for a token of its own. Re-entering does not count: Redisson does count that,
// which makes its outer hold look like one that was lost.
func (c *Client) FencedLock(name string) *Lock {
	return c.lock(KindFenced, c.locks.Fenced(c.server.Key(name)))
}
