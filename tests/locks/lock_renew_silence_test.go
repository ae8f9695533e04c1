package locks

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// The first answer after an outage, to whatever request, makes every hold ask: it
// does not wait for the end of its own pause.
func TestAnAnswerAfterASilenceMakesAllHoldsAsk(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		var renewals atomic.Int64
		d := &locktest.Tap{Redis: w.Driver(), Notes: true} // a note that is written ends the silence, too
		d.Hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: errors.New("silent")}
			}
			if s == "lock.renew" {
				renewals.Add(1)
			}
			return next()
		}
		c := w.ClientWith(d, redlatch.Config{})
		hold := w.Acquire(bg, c.Lock("held"))
		down.Store(true)
		for range 20 { // at whatever moment of a pause
			time.Sleep(14*time.Second + 137*time.Millisecond)
			synctest.Wait()
			down.Store(false)
			before := renewals.Load()
			w.Release(w.Acquire(bg, c.Lock("other")))
			synctest.Wait()
			if renewals.Load() == before {
				t.Error("the hold did not ask")
			}
			if err := hold.Err(); err != nil {
				t.Fatal(err)
			}
			down.Store(true)
		}
		down.Store(false)
		w.Release(hold)
	})
}
