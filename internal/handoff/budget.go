package handoff

import (
	"time"

	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/request"
)

// While goroutines of one process want a lock, it passes between them without a
// round trip. So that other processes get it too, that goes on for a quantum only;
// then one script asks whether anybody else waits (lock.yield.lua) and, if so,
// releases the lock to them. Every release answers how many others listen, too.
//
// A process that has released the lock to n others owes n turns: for each it makes
// a pause, and takes part again when it owes none. A release that it hears from
// elsewhere has paid one, and ends the pause. If nobody used a pause, others
// listen who do not want the lock, or are farther away: the next one is twice as
// long, and until nine times the pause have gone by, only so many turns are owed
// as were taken before it.
const (
	quantumHands = 32                   // a quantum ends after this many hand-offs
	quantumMin   = time.Millisecond     // and this much time,
	QuantumMax   = 5 * time.Millisecond // or after this much time alone
	HeldMax      = time.Second          // yield then, even if nobody can be seen to wait

	shortestPause = 5 * time.Millisecond
	LongestPause  = 80 * time.Millisecond
	quietPauses   = 9 // a pause that nobody used is paid by so much time without one

	// Keep is for how long they are remembered.
	Keep = quietPauses * LongestPause
)

// A Budget is a process's conduct towards others that want the same lock. It is
// not locked: it belongs to whoever is inside the gate.
type Budget struct {
	Hands     int       // hand-offs in this quantum
	quantum   time.Time // when this quantum began
	HeldSince time.Time // when this process got the lock from somewhere else

	Owed   int           // turns that we owe
	taken  int           // turns that were taken since we yielded
	gone   bool          // nothing is left of what we released
	unseen bool          // nobody was seen to whom to yield
	heard  int           // foreign messages that have been counted
	pause  time.Duration // how long the lock is left to others, and again after each turn that is taken,
	Rest   time.Time     // and until when that is

	Unused     time.Time     // when a pause ended that nobody used; or before there was any, when we got the lock
	longer     time.Duration // what a pause was found to need since; 0: nothing
	QuietUntil time.Time     // until then no more turns are owed
	takers     int           // than were taken before
}

// Begin starts a quantum; fresh says that the lock came from elsewhere.
func (u *Budget) Begin(now time.Time, fresh bool) {
	u.Hands, u.quantum = 0, now
	if fresh {
		u.HeldSince = now
	}
	if u.Unused.IsZero() {
		u.Unused = now
	}
}

// Over says whether the quantum has ended.
func (u *Budget) Over(now time.Time) bool { return u.OverAfter(quantumHands, now) }

// OverAfter is over for quanta of another number of hand-offs.
func (u *Budget) OverAfter(hands int, now time.Time) bool {
	d := now.Sub(u.quantum)
	return (d >= QuantumMax || (u.Hands >= hands && d >= quantumMin)) && u.Yields(now)
}

// Yields says whether there is any use in a turn: not during the quiet, nor after
// a pause before it is known whether that was used. (Of many permits others are
// still here, and another turn would begin another pause.) The release was sent at
// sent: one that was in flight when a pause ended begins no other, before it is
// known whether that one was used.
func (u *Budget) Yields(now time.Time) bool {
	return !u.quiet(now) && (u.Owed == 0 || u.gone || now.Before(u.Rest))
}

// quiet says that whoever listens was found not to want the lock.
func (u *Budget) quiet(now time.Time) bool { return u.takers == 0 && now.Before(u.QuietUntil) }

// Last says whether this process has had the lock for long enough, seen or
// unseen waiters.
func (u *Budget) Last(now time.Time) bool { return now.Sub(u.HeldSince) >= HeldMax }

// Free notes that the lock was released and nobody else listens: what was learnt
// was about others.
func (u *Budget) Free() { u.Owed, u.longer, u.Unused, u.QuietUntil = 0, 0, time.Time{}, time.Time{} }

// Yield notes that the lock was released to n others, foreign messages having been
// heard so far; or if n is 0, to whoever cannot be seen. A release that was in
// flight when a pause ended begins no other one, before it is known whether that
// pause was used: sent is when the release was sent.
func (u *Budget) Yield(n, foreign int, sent, now time.Time) {
	u.unseen = n == 0
	u.pause = shortestPause
	if !u.unseen {
		// A process that has lost no time for long can lose more at once.
		u.pause = min(max(u.pause, u.longer, 2*now.Sub(u.Unused)/quietPauses), LongestPause)
	}
	n = max(1, n)
	if now.Before(u.QuietUntil) {
		n = min(n, u.takers)
	}
	rest := now.Add(u.pause)
	if u.Owed > 0 && sent.Before(u.Rest) {
		rest = u.Rest // of permits there are many to release: that makes a pause no longer
	}
	u.Owed, u.taken, u.gone, u.heard, u.Rest = n, 0, false, foreign, rest
}

// ShortenPause makes what is owed one turn and its pause the shortest, where
// writers are preferred: these need no pause to get in, and readers of many
// processes that leave one another long ones leave the lock idle, since reads
// overlap and nobody is told that one has had its turn.
func (u *Budget) ShortenPause(now time.Time) {
	u.Owed, u.pause = min(u.Owed, 1), shortestPause
	u.Rest = now.Add(u.pause)
}

// Owes returns how long to wait before trying again, unless a message comes.
func (u *Budget) Owes(foreign int, now time.Time) time.Duration {
	if u.Owed == 0 {
		return 0
	}
	paid := min(u.Owed, foreign-u.heard)
	u.heard = foreign
	if paid > 0 {
		u.Owed -= paid
		u.taken += paid
		u.Rest = now.Add(u.pause)
	}
	if u.Owed == 0 {
		return 0
	}
	return max(0, u.Rest.Sub(now))
}

// Settled notes that this process has the lock again, after it has heard
// foreign messages. What it still owes was not taken, as the lock was free.
func (u *Budget) Settled(foreign int, now time.Time) {
	u.Owes(foreign, now)
	if u.Owed > 0 && !u.unseen {
		u.longer = min(2*u.pause, LongestPause)
		u.Unused, u.QuietUntil, u.takers = now, now.Add(quietPauses*u.pause), u.taken
	}
	u.Owed = 0
}

// Taken notes that what was released to others is gone, or too little to have
// again. Whoever took it may keep it for long, and pays this turn only when he
// releases it. So the next quantum ends with another turn, although this one is
// unpaid: others may still wait for what else this process has.
func (u *Budget) Taken() { u.gone = true }

// Used notes that messages were heard after a pause that nobody seemed to have
// used: of several permits somebody has taken one, and left some. He is owed a
// turn, as long as the quiet lasts; those who listen beside him are not.
func (u *Budget) Used(foreign int) {
	if u.Owed == 0 && foreign > u.heard {
		u.heard, u.takers, u.longer = foreign, max(u.takers, 1), u.pause
	}
}

// An OwedError is request.ErrWaitOver for one who only tries, while this process
// owes so many turns to others.
type OwedError int

// Error implements error.
func (e OwedError) Error() string { return "turns owed" }

// Is says that it is the end of a wait.
func (e OwedError) Is(target error) bool { return target == request.ErrWaitOver }

// GaveUp turns the end of a caller's waiting into the error that says what was
// busy, how many turns were owed then, and how the caller's context ended. Other
// errors stay what they are.
func GaveUp(err error, busy fact.Busy) error {
	ended, cause := request.GaveUp(err)
	if !ended {
		return err
	}
	owed, _ := err.(OwedError) //nolint:errorlint // nobody wraps it
	busy.Owed, busy.Cause = int(owed), cause
	return busy
}
