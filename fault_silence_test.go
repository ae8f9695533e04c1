package redlatch_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// The first answer after an outage, to whatever request, makes every hold ask: it
// does not wait for the end of its own pause.
func TestAnAnswerAfterASilenceMakesAllHoldsAsk(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var down atomic.Bool
		var renewals atomic.Int64
		d := &tap{Redis: w.driver()}
		d.hook = func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if down.Load() {
				return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: errors.New("silent")}
			}
			if s == "lock.renew" {
				renewals.Add(1)
			}
			return next()
		}
		c := w.clientWith(d, redlatch.Config{})
		hold := w.acquire(c.Lock("held"), bg)
		down.Store(true)
		for range 20 { // at whatever moment of a pause
			time.Sleep(14*time.Second + 137*time.Millisecond)
			synctest.Wait()
			down.Store(false)
			before := renewals.Load()
			w.release(w.acquire(c.Lock("other"), bg))
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
		w.release(hold)
	})
}
