package renew

import (
	"slices"
	"testing"
	"time"
)

// silentUntil makes the server answer nothing before then, and gone after.
func (s *stage) silentUntil(end time.Duration) {
	s.answer = func(_ *Lease, at time.Duration) Result {
		if at < end {
			return Failed
		}
		return Gone
	}
}

// Whoever's pause ends first after a silence asks for all.
func TestAnAnswerEndsThePausesOfItsLane(t *testing.T) {
	play(t, func(s *stage) {
		s.silentUntil(20 * time.Second)
		ls := s.add(50, lease, true)
		for i, l := range ls {
			l.Group = i // so that each has pauses of its own
		}
		there := s.lease(lease)
		there.moveTo("b")
		s.clock.Add(there, true)
		s.until(time.Minute)
		var told []time.Duration
		for _, l := range ls {
			told = append(told, l.Holder.(*holder).gone...)
		}
		if len(told) != len(ls) || slices.Max(told) > 20*time.Second+200*time.Millisecond {
			t.Errorf("%d of %d told, the last at %v; want all soon after 20s", len(told), len(ls), slices.Max(told))
		}
		if at := there.Holder.(*holder).gone; len(at) != 1 || slices.Contains(told, at[0]) {
			t.Errorf("another lane was told at %v, want at the end of its own pause", at)
		}
	})
}

// What was asked by somebody else was answered: renewals need not wait.
func TestAnsweredEndsPauses(t *testing.T) {
	play(t, func(s *stage) {
		s.silentUntil(20 * time.Second)
		l := s.addOne(lease, true)
		s.until(19*time.Second + 999*time.Millisecond)
		s.clock.Answered("b")
		sent, _ := s.sent(l)
		s.until(20 * time.Second)
		if again, _ := s.sent(l); len(again) > len(sent)+1 {
			t.Errorf("sent at %v after an answer from elsewhere", again[len(sent):])
		}
		s.clock.Answered("a")
		s.until(20 * time.Second)
		s.wantTold(l, nil, at(20*time.Second))
		s.clock.Answered("a")
	})
}

// One that alone is not answered is not asked about all the time.
func TestOneWithoutAnswerAmongMany(t *testing.T) {
	play(t, func(s *stage) {
		ls := s.add(100, lease, true)
		for i, l := range ls {
			l.Group = i
		}
		s.answer = func(l *Lease, _ time.Duration) Result {
			if l == ls[0] {
				return Failed
			}
			return Confirmed
		}
		s.until(10 * time.Second)
		for s.now() < 12*time.Second {
			s.until(s.now() + 10*time.Millisecond)
			s.clock.Answered("a")
		}
		for i, gap := range s.gaps(ls[0]) {
			if gap < shortPause {
				t.Errorf("pause %d is %v, want at least %v", i, gap, shortPause)
			}
		}
	})
}

// A lease that has moved to another node is asked about there, and not only when the
// pause is over that the old one was given.
func TestKickOfOneThatHasMoved(t *testing.T) {
	play(t, func(s *stage) {
		s.silentUntil(20 * time.Second)
		l, stays := s.addOne(lease, true), s.addOne(lease, true)
		s.until(20 * time.Second)
		before, _ := s.sent(stays)
		l.moveTo("b")
		s.clock.Kick("a")
		s.until(20 * time.Second)
		s.wantTold(l, nil, at(20*time.Second))
		if after, _ := s.sent(stays); len(after) > len(before) {
			t.Errorf("one that stays was sent at %v", after[len(before):])
		}
	})
}
