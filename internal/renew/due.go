package renew

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Due returns how many leases are due for a renewal, or are tried again, and for how long the one
// of them that has waited longest has gone without a confirmed request.
func (c *Clock) Due() (n int, oldest time.Duration) {
	return c.count((*Lease).unconfirmed)
}

// Late returns an error if leases should have been renewed long ago: half of their length has passed since the last
// confirmed request, and a renewal is sent after a third.
func (c *Clock) Late() error {
	n, oldest := c.count(func(l *Lease, now time.Time) bool {
		return l.unconfirmed(now) && Elapsed(l.Confirmed(), now) > l.Length/2
	})
	if n == 0 {
		return nil
	}
	return fmt.Errorf("redlatch: renewals are late: of %d holds and permits, one was confirmed %v ago", n, oldest.Round(time.Millisecond))
}

// count goes through all leases, and keeps nobody waiting for longer than a few take.
func (c *Clock) count(counts func(l *Lease, now time.Time) bool) (n int, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, looked := time.Now(), 0
	for _, b := range slices.Collect(maps.Values(c.bunches)) {
		for l := range b.leases {
			if counts(l, now) {
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
