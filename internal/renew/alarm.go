package renew

import "time"

// An alarm is the timer of a schedule. Whoever has it guards it.
type alarm struct {
	ring   func()      // what it calls; while that runs wakeAt is zero
	timer  *time.Timer // nil while there is nothing to look at
	wakeAt time.Time   // what timer is set to
}

// set has the alarm ring then, if it would not ring before.
func (a *alarm) set(at, now time.Time) {
	rest := max(0, at.Sub(now))
	switch {
	case a.timer == nil:
		a.wakeAt, a.timer = at, time.AfterFunc(rest, a.ring)
	case a.wakeAt.IsZero() || at.Before(a.wakeAt):
		a.wakeAt = at
		a.timer.Reset(rest)
	}
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
