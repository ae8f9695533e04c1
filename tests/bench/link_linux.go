package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimers makes waits of this thread as long as they are said to be, and
// not up to 50 µs longer.
func preciseTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// pollUntil waits until a descriptor is ready, or until then; a zero time is no
// limit.
func pollUntil(waits []unix.PollFd, then time.Time) (int, error) {
	if then.IsZero() {
		return unix.Ppoll(waits, nil, nil)
	}
	pause := unix.NsecToTimespec(max(0, time.Until(then)).Nanoseconds())
	return unix.Ppoll(waits, &pause, nil)
}
