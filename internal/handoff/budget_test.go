package handoff

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/randtest"
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
		{"few hands for long", 0, QuantumMax - 1, false},
		{"few hands for too long", 0, QuantumMax, true},
	} {
		var u Budget
		u.Begin(start, true)
		u.Hands = c.hands
		if got := u.Over(start.Add(c.after)); got != c.over {
			t.Errorf("%s: over = %v, want %v", c.name, got, c.over)
		}
	}
}

func TestReignSpansQuanta(t *testing.T) {
	start := time.Now()
	var u Budget
	u.Begin(start, true)
	for at := time.Duration(0); at < HeldMax; at += QuantumMax {
		now := start.Add(at)
		u.Hands = quantumHands
		u.Begin(now, false) // it stayed here
		if u.Hands != 0 || u.Over(now) || u.Last(now) {
			t.Fatalf("after %v: %d hands, over %v, last %v; want a new quantum while the lock stays here", at, u.Hands, u.Over(now), u.Last(now))
		}
	}
	end := start.Add(HeldMax)
	if !u.Last(end) {
		t.Errorf("the lock stays here after %v", HeldMax)
	}
	u.Begin(end, true)
	if u.Last(end) {
		t.Error("the time is over as soon as it has begun anew")
	}
}

func TestTurnsAreOwedAndPaid(t *testing.T) {
	start := time.Now()
	now := start
	var u Budget
	owes := func(foreign int, want time.Duration) {
		t.Helper()
		if got := u.Owes(foreign, now); got != want {
			t.Errorf("with %d messages heard: owes %v, want %v", foreign, got, want)
		}
	}
	u.Begin(now, true)
	owes(7, 0) // nothing was yielded
	u.Yield(3, 7, now, now)
	owes(7, shortestPause)
	now = now.Add(2 * time.Millisecond)
	owes(7, shortestPause-2*time.Millisecond)
	owes(8, shortestPause) // a turn was taken: the next pause begins
	now = now.Add(time.Millisecond)
	owes(8, shortestPause-time.Millisecond) // a message pays once
	owes(100, 0)                            // and more than was owed pays no other debt
	owes(101, 0)
	u.Yield(1, 101, now, now)
	owes(101, shortestPause)
	owes(102, 0)
	u.Yield(2, 102, now, now)
	owes(5, shortestPause) // a new subscription has begun to count
	now = now.Add(shortestPause)
	owes(5, 0) // a pause ends
	owes(6, shortestPause)
}

// unused lets u make pauses that nobody uses, for as long as they become longer.
func unused(t *testing.T, u *Budget, now time.Time, want ...time.Duration) time.Time {
	t.Helper()
	for _, pause := range want {
		u.Begin(now, true)
		u.Yield(3, 0, now, now)
		if got := u.Owes(0, now); got != pause {
			t.Fatalf("a pause of %v, want %v", got, pause)
		}
		now = now.Add(pause)
		u.Settled(0, now)
		end := now.Add(quietPauses*pause - 1)
		u.Begin(end, true)
		u.Yield(3, 0, end, end)
		if got := u.Owes(0, end); got != 0 || !u.quiet(end) {
			t.Fatalf("owes %v so soon after a pause of %v", got, pause)
		}
		now = end.Add(1)
	}
	return now
}

func TestAPauseThatNobodyUsesIsRareAndThenLonger(t *testing.T) {
	const ms = time.Millisecond
	var u Budget
	now := unused(t, &u, time.Now(), 5*ms, 10*ms, 20*ms, 40*ms, 80*ms, 80*ms)
	// One that is used is not followed by a shorter one.
	u = Budget{}
	now = unused(t, &u, now, 5*ms, 10*ms)
	for foreign := range 4 {
		u.Begin(now, true)
		u.Yield(1, foreign, now, now)
		if got := u.Owes(foreign, now); got < 20*ms {
			t.Errorf("after %d pauses that were used one of %v, want 20ms or more", foreign, got)
		}
		now = now.Add(19 * ms)
		u.Settled(foreign+1, now)
	}
}

// Of three who listen one wants the lock: it is not to suffer from the others.
func TestWhoTakesATurnKeepsItBesideThoseWhoDoNot(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(3, 0, now, now)
	u.Owes(1, now)
	now = now.Add(shortestPause)
	u.Settled(1, now)
	u.Begin(now, true)
	u.Yield(3, 1, now, now)
	if got := u.Owes(1, now); got != 2*shortestPause || u.Owed != 1 || u.quiet(now) {
		t.Errorf("owes %d turns, a pause of %v", u.Owed, got)
	}
}

// Whoever has lost no time for long can leave the lock for long: two ninths of
// that.
func TestAPauseIsInProportionToWhatWasHad(t *testing.T) {
	now := time.Now()
	for had, want := range map[time.Duration]time.Duration{
		0: shortestPause, 18 * time.Millisecond: shortestPause, 90 * time.Millisecond: 20 * time.Millisecond,
		time.Second: LongestPause, time.Hour: LongestPause,
	} {
		var u Budget
		u.Begin(now.Add(-had), true)
		u.Yield(1, 0, now, now)
		if got := u.Owes(0, now); got != want {
			t.Errorf("after %v a pause of %v, want %v", had, got, want)
		}
	}
}

// To whoever cannot be seen the shortest pause is made, and nothing follows from
// it.
func TestAPauseForNobodyInSightTeachesNothing(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now.Add(-time.Hour), true)
	for range 3 {
		u.Yield(0, 0, now, now)
		if got := u.Owes(0, now); got != shortestPause {
			t.Errorf("a pause of %v, want %v", got, shortestPause)
		}
		u.Settled(0, now)
	}
	if u.longer != 0 || !u.QuietUntil.IsZero() {
		t.Errorf("then pauses of %v", u.longer)
	}
}

// Of several permits some may be left after one was taken: a message shows it.
func TestAMessageShowsThatAPauseWasUsed(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(1, 0, now, now)
	now = now.Add(shortestPause)
	u.Settled(0, now)
	u.Used(0)
	if !u.quiet(now) {
		t.Error("used without a message")
	}
	u.Used(1)
	u.Yield(1, 1, now, now)
	if got := u.Owes(1, now); got != shortestPause {
		t.Errorf("a pause of %v, want %v", got, shortestPause)
	}
}

// One who takes a permit and leaves others had ended the quiet for all who listen.
func TestAMessageDuringTheCalmIsWorthOneTurn(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(4, 0, now, now)
	now = now.Add(shortestPause)
	u.Settled(0, now)
	u.Used(1)
	u.Used(9)
	if u.Yield(4, 9, now, now); u.Owed != 1 {
		t.Errorf("owes %d turns, want 1", u.Owed)
	}
}

// What was learnt about those who listened says nothing about who listens later.
func TestWhatWasLearntIsForgottenWhenNobodyListens(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(3, 0, now, now)
	u.Free()
	if u.Owed != 0 {
		t.Error("owes turns to nobody")
	}
	now = unused(t, &u, now, 5*time.Millisecond, 10*time.Millisecond)
	u.Free()
	now = now.Add(time.Second)
	u.Begin(now, true)
	u.Yield(3, 0, now, now)
	if got := u.Owes(0, now); got != shortestPause || u.Owed != 3 || u.quiet(now) {
		t.Errorf("owes %d turns, a pause of %v; want 3, %v", u.Owed, got, shortestPause)
	}
	u.Settled(0, now)
	u.Free()
	if u.Begin(now, true); u.quiet(now) {
		t.Error("still quiet")
	}
}

// Whatever happens in whatever order, a process owes no more than the others that
// it yielded to, less with each message, and makes no pause beyond the longest.
// Pauses that nobody uses are a tenth of the time at most.
func TestTurnsNeverGrowByThemselves(t *testing.T) {
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		var u Budget
		start := time.Now()
		now := start
		foreign, yielded := 0, 0
		var lost time.Duration // in pauses that nobody used
		u.Begin(now, true)
		r.Steps(map[string]func(){
			"time passes": func() { now = now.Add(r.Duration(0, 2*time.Second)) },
			"yield": func() {
				yielded = r.Between(0, 1000)
				u.Yield(yielded, foreign, now, now)
				if u.Owed > max(1, yielded) {
					t.Fatalf("owes %d turns after yielding to %d", u.Owed, yielded)
				}
			},
			"message": func() { foreign++ },
			"owes": func() {
				before, news := u.Owed, foreign-u.heard
				got := u.Owes(foreign, now)
				if want := max(0, before-news); before > 0 && u.Owed != want || got > LongestPause || (u.Owed == 0 && got > 0) {
					t.Fatalf("owed %d, %d messages: owes %d, %v", before, news, u.Owed, got)
				}
			},
			"settled": func() {
				if d := u.Owes(foreign, now); u.Owed > 0 {
					now = now.Add(d)
					if !u.unseen && u.taken == 0 {
						lost += u.pause
					}
				}
				u.Settled(foreign, now)
				u.Begin(now, true)
			},
		}, func() {
			if u.Owed < 0 || u.Owed > max(1, yielded) || u.longer > LongestPause {
				t.Fatalf("owed %d, pauses of %v", u.Owed, u.longer)
			}
			if most := now.Sub(start)/10 + 4*LongestPause; lost > most {
				t.Fatalf("%v of %v lost in pauses", lost, now.Sub(start))
			}
		})
	})
}

// Of many permits some are released while a turn is owed already. That makes the
// pause no longer, and turns go on while it lasts; after it somebody has to ask
// first whether it was used.
func TestAnotherReleaseMakesAPauseNoLonger(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(1, 0, now, now)
	now = now.Add(shortestPause - time.Millisecond)
	if !u.Yields(now) {
		t.Error("no turns during a pause")
	}
	u.Yield(2, 0, now, now)
	if got := u.Owes(0, now); got != time.Millisecond || u.Owed != 2 {
		t.Errorf("owes %d turns, a pause of %v; want 2, 1ms", u.Owed, got)
	}
	u.Used(1) // it is being used: that is what owes counts
	if u.heard != 0 {
		t.Error("a message during the pause was not left to pay a turn")
	}
	now = now.Add(time.Millisecond)
	if u.Yields(now) {
		t.Error("another turn before it is known whether the pause was used")
	}
	u.Begin(now.Add(-QuantumMax), false)
	if u.Over(now) {
		t.Error("a quantum ends then")
	}
	u.Settled(2, now)
	if !u.Yields(now) {
		t.Error("no turns after a pause that was used")
	}
}

// Of many permits some are released all the time, so that a release is in flight
// whenever a pause ends. One pause followed the other, and a process of 64 permits
// lost a third to a listener that took nothing.
func TestAReleaseInFlightAtTheEndOfAPauseBeginsNoOther(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	u.Yield(1, 0, now, now)
	sent := now.Add(shortestPause - time.Millisecond)
	answered := now.Add(shortestPause + time.Millisecond)
	u.Yield(1, 0, sent, answered)
	if got := u.Owes(0, answered); got != 0 {
		t.Errorf("another pause of %v", got)
	}
	u.Settled(0, answered)
	if u.Yields(answered) {
		t.Error("no quiet after a pause that nobody used")
	}
}

func TestABriefDebtIsOneShortPause(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now.Add(-time.Hour), true)
	u.Yield(3, 0, now, now)
	u.ShortenPause(now)
	if got := u.Owes(0, now); got != shortestPause || u.Owed != 1 {
		t.Errorf("owes %d turns, a pause of %v; want 1, %v", u.Owed, got, shortestPause)
	}
	u.Owes(1, now)
	if u.ShortenPause(now); u.Owed != 0 {
		t.Error("owes what was paid")
	}
}

// Nobody may have taken anything: too little is left for the first in line, who
// wants more than was released. Turns go on as if it were gone, each with a pause
// of its own, until what is wanted is here. Then it is known that nobody used
// them.
func TestTooLittleForTheFirstCountsAsTakenUntilItIsHad(t *testing.T) {
	now := time.Now()
	var u Budget
	u.Begin(now, true)
	for turn := range 3 {
		u.Yield(1, 0, now, now)
		if got := u.Owes(0, now); got != shortestPause || u.Owed != 1 {
			t.Errorf("turn %d: owes %d turns, a pause of %v; want 1, %v", turn, u.Owed, got, shortestPause)
		}
		if now = now.Add(shortestPause); u.Yields(now) {
			t.Errorf("turn %d: another one, before it is known what is left", turn)
		}
		if u.Taken(); !u.Yields(now) || u.quiet(now) {
			t.Errorf("turn %d: no other one, though others may have what was left to them", turn)
		}
	}
	u.Settled(0, now)
	if u.Owed != 0 || u.Yields(now) || u.Yields(now.Add(quietPauses*shortestPause-1)) || !u.Yields(now.Add(quietPauses*shortestPause)) {
		t.Error("no quiet of nine pauses, though nobody has used a turn")
	}
	if u.longer != 2*shortestPause {
		t.Errorf("the next pause is one of %v, want %v", u.longer, 2*shortestPause)
	}
}
