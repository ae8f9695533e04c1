package redlatch

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// While goroutines of one process want a lock, it passes between them without
// a round trip. So that other processes get it too, that goes on for a quantum
// only; then one script asks whether anybody else waits (lock.turn.lua) and, if
// so, releases the lock to them. Every release answers how many others listen, too.
//
// A process that has released the lock to n others owes n turns: for each it makes a
// pause, and takes part again when it owes none. A release that it hears from
// elsewhere has paid one, and ends the pause. If nobody used a pause, others listen
// who do not want the lock, or are farther away: the next one is twice as long, and
// until nine times the pause have gone by, only so many turns are owed as were taken
// before it.
const (
	quantumHands = 32                   // a quantum ends after this many hand-offs
	quantumMin   = time.Millisecond     // and this much time,
	quantumMax   = 5 * time.Millisecond // or after this much time alone
	reignMax     = time.Second          // yield then, even if nobody can be seen to wait

	shortestPause = 5 * time.Millisecond
	longestPause  = 80 * time.Millisecond
	calmPauses    = 9 // a pause that nobody used is paid by so much time without one

	// keepTurns is for how long they are remembered.
	keepTurns = calmPauses * longestPause
)

// turns is a process's conduct towards others that want the same lock. It is
// not locked: it belongs to whoever is inside the gate.
type turns struct {
	hands   int       // hand-offs in this quantum
	quantum time.Time // when this quantum began
	reign   time.Time // when this process got the lock from somewhere else

	owed   int           // turns that we owe
	taken  int           // turns that were taken since we yielded
	unseen bool          // nobody was seen to whom to yield
	heard  int           // foreign messages that have been counted
	pause  time.Duration // how long the lock is left to others, and again after each turn that is taken,
	rest   time.Time     // and until when that is

	unused time.Time     // when a pause ended that nobody used; or before there was any, when we got the lock
	longer time.Duration // what a pause was found to need since; 0: nothing
	calm   time.Time     // until then no more turns are owed
	takers int           // than were taken before
}

// begin starts a quantum; fresh says that the lock came from elsewhere.
func (u *turns) begin(now time.Time, fresh bool) {
	u.hands, u.quantum = 0, now
	if fresh {
		u.reign = now
	}
	if u.unused.IsZero() {
		u.unused = now
	}
}

// over says whether the quantum has ended.
func (u *turns) over(now time.Time) bool { return u.overAfter(quantumHands, now) }

// overAfter is over for quanta of another number of hand-offs.
func (u *turns) overAfter(hands int, now time.Time) bool {
	d := now.Sub(u.quantum)
	return (d >= quantumMax || (u.hands >= hands && d >= quantumMin)) && u.yields(now)
}

// yields says whether there is any use in a turn: not during the calm, nor after a
// pause before it is known whether that was used. (Of many permits others are still
// here, and another turn would begin another pause.)
func (u *turns) yields(now time.Time) bool {
	return !u.calmed(now) && (u.owed == 0 || now.Before(u.rest))
}

// calmed says that whoever listens was found not to want the lock.
func (u *turns) calmed(now time.Time) bool { return u.takers == 0 && now.Before(u.calm) }

// last says whether this process has had the lock for long enough, seen or
// unseen waiters.
func (u *turns) last(now time.Time) bool { return now.Sub(u.reign) >= reignMax }

// free notes that the lock was released and nobody else listens: what was learnt was
// about others.
func (u *turns) free() { u.owed, u.longer, u.unused, u.calm = 0, 0, time.Time{}, time.Time{} }

// yield notes that the lock was released to n others, foreign messages having
// been heard so far; or if n is 0, to whoever cannot be seen.
func (u *turns) yield(n, foreign int, now time.Time) {
	u.unseen = n == 0
	u.pause = shortestPause
	if !u.unseen {
		// Who has lost no time for long can lose more at once.
		u.pause = min(max(u.pause, u.longer, 2*now.Sub(u.unused)/calmPauses), longestPause)
	}
	n = max(1, n)
	if now.Before(u.calm) {
		n = min(n, u.takers)
	}
	rest := now.Add(u.pause)
	if u.owed > 0 && now.Before(u.rest) {
		rest = u.rest // of permits there are many to release: that makes a pause no longer
	}
	u.owed, u.taken, u.heard, u.rest = n, 0, foreign, rest
}

// briefly makes what is owed one turn and its pause the shortest, where writers are
// preferred: these need no pause to get in, and readers of many processes that leave
// one another long ones leave the lock idle, since reads overlap and nobody is told
// that one has had its turn.
func (u *turns) briefly(now time.Time) {
	u.owed, u.pause = min(u.owed, 1), shortestPause
	u.rest = now.Add(u.pause)
}

// owes returns how long to wait before trying again, unless a message comes.
func (u *turns) owes(foreign int, now time.Time) time.Duration {
	if u.owed == 0 {
		return 0
	}
	paid := min(u.owed, foreign-u.heard)
	u.heard = foreign
	if paid > 0 {
		u.owed -= paid
		u.taken += paid
		u.rest = now.Add(u.pause)
	}
	if u.owed == 0 {
		return 0
	}
	return max(0, u.rest.Sub(now))
}

// settled notes that this process has the lock again, after it has heard
// foreign messages. What it still owes was not taken, as the lock was free.
func (u *turns) settled(foreign int, now time.Time) {
	u.owes(foreign, now)
	if u.owed > 0 && !u.unseen {
		u.longer = min(2*u.pause, longestPause)
		u.unused, u.calm, u.takers = now, now.Add(calmPauses*u.pause), u.taken
	}
	u.owed = 0
}

// used notes that messages were heard after a pause that nobody seemed to have used:
// of several permits somebody has taken one, and left some. He is owed a turn, as long
// as the calm lasts; those who listen beside him are not.
func (u *turns) used(foreign int) {
	if u.owed == 0 && foreign > u.heard {
		u.heard, u.takers, u.longer = foreign, max(u.takers, 1), u.pause
	}
}

// In a cluster with classic Pub/Sub some may listen at another node, where no script
// sees them. There a process makes a pause once a second although it sees nobody.
// For that it remembers since when it has what it releases, of some at a time.
type blind struct {
	mu     sync.Mutex // guards what follows
	reigns [64]struct {
		channel      string
		since, until time.Time
	}
}

// yieldsBlindly says whether it is time for such a pause, now that something is
// released that this process got at begun.
func (c *Client) yieldsBlindly(channel string, begun, now time.Time) bool {
	if c.server.SeenByScripts() || channel == "" {
		return false
	}
	b := &c.blind
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.reigns[wire.Slot(channel)%len(b.reigns)]
	if r.channel != channel || begun.Sub(r.until) >= longestPause { // others could have had it
		r.channel, r.since = channel, begun
	}
	r.until = now
	if now.Sub(r.since) < reignMax {
		return false
	}
	r.since = now
	return true
}

// A stay keeps something for a while after its last user has left, however often
// that is asked for. It has one timer at a time.
type stay struct {
	mu    sync.Mutex // guards what follows
	on    bool
	until time.Time
}

// prolong makes it last for d from now. end is called when it is over.
func (s *stay) prolong(d time.Duration, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(d)
	if !s.on {
		s.on = true
		s.alarm(d, end)
	}
}

func (s *stay) alarm(d time.Duration, end func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		left := time.Until(s.until)
		s.on = left > 0
		if s.on {
			s.alarm(left, end)
		}
		s.mu.Unlock()
		if left <= 0 {
			end()
		}
	})
}

func (s *stay) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}
