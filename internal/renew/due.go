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

// unconfirmed says whether a renewal of the lease is due, and has not been confirmed yet.
func (l *Lease) unconfirmed(now time.Time) bool {
	if !l.renewing || l.over(now) {
		return false
	}
	left, _ := l.rest(now)
	return l.due || l.retry > 0 || left <= 0
}
