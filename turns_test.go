package redlatch

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantum(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		name  string
		hands int
		after time.Duration
		over  bool
	}{
		{"at once", 0, 0, false},
		{"many hands in no time", 1000, quantumMin - 1, false},
		{"enough hands, enough time", quantumHands, quantumMin, true},
		{"one hand too few", quantumHands - 1, quantumMin, false},
		{"few hands for long", 0, quantumMax - 1, false},
		{"few hands for too long", 0, quantumMax, true},
	} {
		var u turns
		u.begin(start, true)
		u.hands = c.hands
		if got := u.over(start.Add(c.after)); got != c.over {
			t.Errorf("%s: over = %v, want %v", c.name, got, c.over)
		}
	}
}

func TestReignSpansQuanta(t *testing.T) {
	start := time.Now()
	var u turns
	u.begin(start, true)
	for at := time.Duration(0); at < reignMax; at += quantumMax {
		now := start.Add(at)
		u.hands = quantumHands
		u.begin(now, false) // it stayed here
		if u.hands != 0 || u.over(now) || u.last(now) {
			t.Fatalf("after %v: %d hands, over %v, last %v; want a new quantum of the same reign", at, u.hands, u.over(now), u.last(now))
		}
	}
	end := start.Add(reignMax)
	if !u.last(end) {
		t.Errorf("the reign goes on after %v", reignMax)
	}
	u.begin(end, true)
	if u.last(end) {
		t.Error("a new reign is over at once")
	}
}

func TestTurnsAreOwedAndPaid(t *testing.T) {
	var u turns
	owes := func(foreign int, want time.Duration) {
		t.Helper()
		if got := u.owes(foreign); got != want {
			t.Errorf("with %d messages heard: owes %v, want %v", foreign, got, want)
		}
	}
	owes(7, 0) // nothing was yielded
	u.yield(3, 7)
	owes(7, 3*turnPause)
	owes(8, 2*turnPause)
	owes(8, 2*turnPause) // a message pays once
	owes(100, 0)         // and more than was owed pays no other debt
	owes(101, 0)
	u.yield(1, 101)
	owes(101, turnPause)
	owes(102, 0)
	u.yield(2, 102)
	owes(5, 2*turnPause) // a new subscription has begun to count
	owes(5, 2*turnPause) // the lock was busy after the pause: turns are being taken
	u.settled(5)
	owes(102, 0)
	u.yield(0, 102) // a yield that nobody could be seen to want
	owes(102, turnPause)
}

func TestDoubtHalvesWhatIsOwed(t *testing.T) {
	var u turns
	for doubt, want := range []int{64, 32, 16, 8, 4, 2, 1, 1, 1} {
		u.yield(64, 0)
		if got := u.owes(0); got != time.Duration(want)*turnPause {
			t.Errorf("after %d turns that nobody took: owes %v, want %v", doubt, got, time.Duration(want)*turnPause)
		}
		u.settled(0)
	}
	if u.doubt != maxDoubt {
		t.Errorf("doubt = %d, want %d at most", u.doubt, maxDoubt)
	}
	// Turns that were taken, to the last of them, take the doubt away again.
	for want := maxDoubt - 1; want >= -1; want-- {
		u.yield(64, 0)
		u.owes(64)
		if u.doubt != max(0, want) {
			t.Errorf("doubt = %d, want %d", u.doubt, max(0, want))
		}
	}
	u.yield(64, 0)
	u.settled(64) // the last message came just before the lock
	if u.doubt != 0 || u.owed != 0 {
		t.Errorf("doubt = %d, owed %d; want none", u.doubt, u.owed)
	}
	u.yield(64, 0)
	u.settled(0)
	u.yield(64, 0)
	u.owes(31) // one of 32 was not taken
	if u.doubt != 1 || u.owed != 1 {
		t.Errorf("doubt = %d, owed %d; want 1, 1", u.doubt, u.owed)
	}
}

// Whatever happens in whatever order, a process owes no more than the others
// that it yielded to, at least one, and less with each message.
func TestTurnsNeverGrowByThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u turns
		foreign, yielded := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"yield": func(t *rapid.T) {
				yielded = rapid.IntRange(0, 1000).Draw(t, "to")
				u.yield(yielded, foreign)
				if u.owed < 1 || u.owed > max(1, yielded) {
					t.Fatalf("owes %d turns after yielding to %d", u.owed, yielded)
				}
			},
			"message": func(*rapid.T) { foreign++ },
			"owes": func(t *rapid.T) {
				before, news := u.owed, foreign-u.heard
				got := u.owes(foreign)
				if want := max(0, before-news); before > 0 && (u.owed != want || got != time.Duration(want)*turnPause) {
					t.Fatalf("owed %d, %d messages: owes %v", before, news, got)
				}
			},
			"settled": func(*rapid.T) { u.settled(foreign) },
			"": func(t *rapid.T) {
				if u.owed < 0 || u.owed > max(1, yielded) || u.doubt < 0 || u.doubt > maxDoubt {
					t.Fatalf("owed %d, doubt %d", u.owed, u.doubt)
				}
			},
		})
	})
}
