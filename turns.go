package redlatch

import "time"

// While goroutines of one process want a lock, it passes between them without
// a round trip. So that other processes get it too, that goes on for a quantum
// only; then one script asks whether anybody else waits (lock.turn.lua) and, if
// so, releases the lock to them. A process that has yielded to n others owes n
// turns: each release that it hears from elsewhere pays one, and so does a
// pause of turnPause. It takes part again when it owes none.
const (
	quantumHands = 32                   // a quantum ends after this many hand-offs
	quantumMin   = time.Millisecond     // and this much time,
	quantumMax   = 5 * time.Millisecond // or after this much time alone
	turnPause    = 5 * time.Millisecond
	reignMax     = time.Second // yield then, even if nobody can be seen to wait
	maxDoubt     = 6
)

// turns is a process's conduct towards others that want the same lock. It is
// not locked: it belongs to whoever is inside the gate.
type turns struct {
	hands   int       // hand-offs in this quantum
	quantum time.Time // when this quantum began
	reign   time.Time // when this process got the lock from somewhere else

	owed  int // turns that we owe
	heard int // foreign messages that have been counted
	// doubt halves what we admit to owe: a turn that nobody took was granted
	// to a subscriber that does not want the lock.
	doubt int
}

// begin starts a quantum; fresh says that the lock came from elsewhere.
func (u *turns) begin(now time.Time, fresh bool) {
	u.hands, u.quantum = 0, now
	if fresh {
		u.reign = now
	}
}

// over says whether the quantum has ended.
func (u *turns) over(now time.Time) bool { return u.overAfter(quantumHands, now) }

// overAfter is over for quanta of another number of hand-offs.
func (u *turns) overAfter(hands int, now time.Time) bool {
	d := now.Sub(u.quantum)
	return d >= quantumMax || (u.hands >= hands && d >= quantumMin)
}

// last says whether this process has had the lock for long enough, seen or
// unseen waiters.
func (u *turns) last(now time.Time) bool { return now.Sub(u.reign) >= reignMax }

// yield notes that the lock was released to n others, foreign messages having
// been heard so far.
func (u *turns) yield(n, foreign int) {
	u.owed, u.heard = max(1, n>>u.doubt), foreign
}

// owes returns how long to wait before trying again, unless a message comes.
func (u *turns) owes(foreign int) time.Duration {
	paid := min(u.owed, foreign-u.heard)
	u.heard = foreign
	if paid > 0 {
		u.owed -= paid
		if u.owed == 0 {
			u.doubt = max(0, u.doubt-1)
		}
	}
	return time.Duration(u.owed) * turnPause
}

// settled notes that this process has the lock again, after it has heard
// foreign messages. What it still owes was not taken: the lock was free, and so
// it was granted to subscribers that do not want it. (While turns are being
// taken the lock is busy, and the debt stays.)
func (u *turns) settled(foreign int) {
	if u.owes(foreign) > 0 {
		u.doubt = min(u.doubt+1, maxDoubt)
	}
	u.owed = 0
}
