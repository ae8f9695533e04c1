package wait

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/lock/term"
)

// A place in the line is handed on with its alarm. Who gets it may have come
// before that rang, and must not take it for one that is still to ring.
func TestAnAlarmThatHasRungIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk := &ticket{Ticket: gate.NewTicket[*term.Term]()}
		start := time.Now()
		woken := func(at time.Duration) {
			t.Helper()
			select {
			case <-tk.Woken():
				if now := time.Since(start); now != at {
					t.Errorf("woken after %v, want %v", now, at)
				}
			case <-time.After(time.Minute):
				t.Fatal("not woken")
			}
		}
		tk.wakeAt(start.Add(time.Millisecond), start)
		woken(time.Millisecond)
		tk.wakeAt(start.Add(time.Hour), start) // no later than longestAlarm
		tk.wakeAt(start.Add(time.Second), start)
		tk.wakeAt(start.Add(time.Minute), start) // the earlier one is enough
		woken(time.Millisecond + time.Second)
	})
}
