package renew

import "time"

// An alarm is a timer that can only be set to an earlier time until it has rung.
// Its owner's mutex guards it.
type alarm struct {
	*time.Timer

	at time.Time // what it is set to; zero: it rings, or there is nothing to wait for
}

func newAlarm(ring func()) alarm {
	timer := time.AfterFunc(time.Hour, ring)
	timer.Stop()
	return alarm{Timer: timer}
}

// set has the alarm ring after rest, if it would not ring before.
func (a *alarm) set(rest time.Duration, now time.Time) {
	if at := now.Add(rest); a.at.IsZero() || at.Before(a.at) {
		a.at = at
		a.Reset(rest)
	}
}
