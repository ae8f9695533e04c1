//go:build !linux

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

func preciseTimers() {}

// pollUntil is coarse here: it waits for whole milliseconds, or not at all.
func pollUntil(waits []unix.PollFd, then time.Time) (int, error) {
	if then.IsZero() {
		return unix.Poll(waits, -1)
	}
	return unix.Poll(waits, int(max(0, time.Until(then)).Milliseconds()))
}
