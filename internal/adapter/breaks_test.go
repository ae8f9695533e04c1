package adapter

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
)

func TestIsBreak(t *testing.T) {
	for err, want := range map[*driver.RunError]bool{
		{Outcome: driver.Unknown}:                         true,
		{Outcome: driver.NotExecuted}:                     false, // there was no connection
		driver.ServerError("READONLY no", errors.New("")): true,
		driver.ServerError("MOVED 1 h:1", errors.New("")): true,
		driver.ServerError("MASTERDOWN", errors.New("")):  true,
		driver.ServerError("WRONGTYPE", errors.New("")):   false,
		driver.ServerError("LOADING", errors.New("")):     false,
	} {
		if got := IsBreak(err); got != want {
			t.Errorf("IsBreak(%+v) = %v", err, got)
		}
	}
}

func TestBreaksOfSingleServer(t *testing.T) {
	var b Breaks
	var told, other []string
	stop := b.Register(func(node string) { told = append(told, node) })
	stopOther := b.Register(func(node string) { other = append(other, node) })
	b.All()
	b.Node([]string{"foo"})
	stop()
	stop()
	b.Node(nil)
	stopOther()
	b.All()
	if len(told) != 2 || len(other) != 3 || slices.ContainsFunc(other, func(node string) bool { return node != "" }) {
		t.Errorf("told %q and %q, want \"\" twice and thrice", told, other)
	}
}

// A house is a program whose name for its server leads to a primary that becomes a
// replica, and then to another server.
type house struct {
	Breaks

	name     int       // which server the name leads to
	scripts  int       // where the connection for scripts leads to
	channels int       // where the one for subscriptions does
	follows  int       // how often that was made anew
	last     time.Time // when it last was
}

func newHouse(t *testing.T) *house {
	h := new(house)
	h.Leave = func() bool { h.scripts = h.name; return true }
	h.Follow = func() {
		if pause := time.Since(h.last); pause < time.Second {
			t.Errorf("subscriptions follow again after %v", pause)
		}
		h.channels, h.last = h.name, time.Now()
		h.follows++
	}
	return h
}

// write sends a script that server 0 refuses.
func (h *house) write() {
	if h.scripts == 0 {
		h.Failed(driver.ServerError("READONLY no", errors.New("")), nil)
		return
	}
	h.Answered()
}

// look sends one that every server answers.
func (h *house) look() { h.Answered() }

// Subscriptions stayed at a server that had become a replica: it had answered a
// script that only looks before the name moved, and refused none after that.
func TestAnAnswerOfAReplicaKeepsNoSubscriptionThere(t *testing.T) {
	for _, after := range []time.Duration{0, settling - time.Second/10, settling, settling + time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			h.write() // refused
			time.Sleep(after)
			h.look()
			if h.follows != 1 {
				t.Errorf("followed %d times after the first answer, which came after %v; want once", h.follows, after)
			}
			h.name, h.scripts = 1, 1 // the next connection that was dialled
			for range 100 {
				h.write()
				time.Sleep(settling / 50)
			}
			if h.channels != 1 || h.follows != 2 {
				t.Errorf("the first answer came after %v: followed %d times, and to server %d; want twice, to server 1", after, h.follows, h.channels)
			}
		})
	}
}

// A name that stays at a server which refuses some scripts for ever, as a node of
// a cluster does, has subscriptions follow no more often than once a second.
func TestSubscriptionsFollowAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		const seconds = 60
		for range seconds * 100 {
			h.write()
			h.look()
			time.Sleep(time.Second / 100)
		}
		if h.follows < seconds/2 {
			t.Errorf("followed %d times in %d s", h.follows, seconds)
		}
	})
}

// Of many that are answered at once one alone has subscriptions follow.
func TestSubscriptionsFollowOneOfManyAnswers(t *testing.T) {
	for range 1000 {
		synctest.Test(t, func(t *testing.T) {
			var b Breaks
			var follows atomic.Int64
			b.Leave, b.Follow = func() bool { return true }, func() { follows.Add(1) }
			b.Failed(driver.ServerError("READONLY no", errors.New("")), nil)
			for want := int64(1); want <= 2; want++ {
				for range 4 {
					go b.Answered()
				}
				synctest.Wait()
				if n := follows.Load(); n != want {
					t.Fatalf("followed %d times, want %d", n, want)
				}
				time.Sleep(settling)
			}
		})
	}
}
