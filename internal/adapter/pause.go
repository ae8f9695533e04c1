package adapter

import (
	"math/rand/v2"
	"time"
)

const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// Pause returns how long to wait before trying to subscribe again, after so many
// failures before the last one.
func Pause(failures int) time.Duration {
	d := min(minPause<<min(failures, 10), maxPause)
	return d/2 + rand.N(d/2) //nolint:gosec // jitter
}
