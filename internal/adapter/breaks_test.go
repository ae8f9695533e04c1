package adapter

import (
	"errors"
	"slices"
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

	name     int // which server the name leads to
	scripts  int // where the connection for scripts leads to
	channels int // where the one for subscriptions does
	follows  int
}

func newHouse() *house {
	h := new(house)
	h.Leave = func() bool { h.scripts = h.name; return true }
	h.Follow = func() { h.channels = h.name; h.follows++ }
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
	synctest.Test(t, func(t *testing.T) {
		h := newHouse()
		h.write() // refused
		h.look()
		if h.follows != 1 {
			t.Errorf("followed %d times after the first answer, want once", h.follows)
		}
		h.name, h.scripts = 1, 1 // the next connection that was dialled
		h.write()
		for range 100 {
			h.write()
			time.Sleep(settling / 50)
		}
		if h.channels != 1 {
			t.Error("subscriptions are at a server that the name has left")
		}
		if h.follows != 2 {
			t.Errorf("followed %d times, want twice", h.follows)
		}
	})
}

// A name that stays at a server which refuses some scripts for ever, as a node of
// a cluster does, has subscriptions follow no more often than once a second.
func TestSubscriptionsFollowAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse()
		const seconds = 60
		for range seconds * 100 {
			h.write()
			h.look()
			time.Sleep(time.Second / 100)
		}
		if h.follows > seconds || h.follows < seconds/2 {
			t.Errorf("followed %d times in %d s", h.follows, seconds)
		}
	})
}
