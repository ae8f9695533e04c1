package renew

import (
	"maps"
	"slices"
	"time"
)

// Due returns how many leases are due for a renewal, or are tried again, and for how long the one
// of them that has waited longest has gone without a confirmed request. It goes through all
// leases, and keeps nobody waiting for longer than a few take.
func (c *Clock) Due() (n int, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, looked := time.Now(), 0
	for _, b := range slices.Collect(maps.Values(c.bunches)) {
		for l := range b.leases {
			if l.unconfirmed(now) {
				n++
				oldest = max(oldest, Elapsed(l.Confirmed(), now))
			}
			if looked++; looked%someAtOnce == 0 {
				c.breatheLocked()
			}
		}
	}
	return n, oldest
}

// unconfirmed says whether a renewal of the lease is in flight or has failed, and it is trusted all the same.
func (l *Lease) unconfirmed(now time.Time) bool {
	return l.renewing && (l.due || l.retry > 0) && !l.over(now)
}
