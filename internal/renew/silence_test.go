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

// addApart adds leases of which each goes by itself.
func (s *stage) addApart(n int) []*Lease {
	ls := make([]*Lease, n)
	for i := range ls {
		ls[i] = s.lease(lease)
		ls[i].Group = i
		s.clock.Add(ls[i], true)
	}
	return ls
}

// Whoever's pause ends first after a silence asks for all.
func TestAnAnswerEndsThePausesOfItsNode(t *testing.T) {
	play(t, func(s *stage) {
		s.silentUntil(20 * time.Second)
		ls := s.addApart(50)
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
			t.Errorf("another node was told at %v, want at the end of its own pause", at)
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

// As long as no node is silent, an answer from elsewhere costs next to nothing.
func TestSilencesAreCounted(t *testing.T) {
	play(t, func(s *stage) {
		s.answer = func(l *Lease, at time.Duration) Result {
			if at < 20*time.Second || l.Group == 0 {
				return Failed
			}
			return Confirmed
		}
		ls := s.addApart(2)
		s.clock.Remove(ls[0])
		for when, want := range map[time.Duration]int32{9 * time.Second: 0, 15 * time.Second: 1, 25 * time.Second: 0} {
			time.AfterFunc(when-s.now(), func() {
				if got := s.clock.silent.Load(); got != want {
					t.Errorf("at %v: %d nodes are silent, want %d", when, got, want)
				}
			})
		}
		s.until(26 * time.Second)
	})
}

// Whose renewal was not answered after it was removed has made no node silent:
// nobody waits for it.
func TestNobodyWaitsForOneThatWasRemoved(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.answers(Failed)
		l := s.addOne(lease, true)
		s.addOne(time.Hour, true)
		s.until(11 * time.Second)
		s.clock.Remove(l)
		s.until(13 * time.Second)
		if got := s.clock.silent.Load(); got != 0 {
			t.Errorf("%d nodes are silent", got)
		}
	})
}

// One that alone is not answered is not asked about all the time.
func TestOneWithoutAnswerAmongMany(t *testing.T) {
	play(t, func(s *stage) {
		s.answer = func(l *Lease, _ time.Duration) Result {
			if l.Group == 0 {
				return Failed
			}
			return Confirmed
		}
		ls := s.addApart(100)
		s.until(10 * time.Second)
		for s.now() < 20*time.Second {
			s.until(s.now() + 10*time.Millisecond)
			s.clock.Answered("a")
		}
		gaps := s.gaps(ls[0])
		for i, gap := range gaps {
			if gap < 50*time.Millisecond {
				t.Errorf("pause %d is %v, want at least 50ms", i, gap)
			}
		}
		if last := gaps[len(gaps)-1]; last < 400*time.Millisecond {
			t.Errorf("pauses of %v do not grow", gaps)
		}
	})
}

// A lease that has moved to another node is asked about there, and not only when
// the pause is over that the old one was given.
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

// What was in flight when the silence ended, in vain, is asked again soon.
func TestAFailureOlderThanTheAnswer(t *testing.T) {
	play(t, func(s *stage) {
		s.silentUntil(28 * time.Second)
		s.travel = 500 * time.Millisecond
		l := s.addOne(lease, true)
		s.until(22 * time.Second)
		for { // until it was sent again in vain
			before, _ := s.sent(l)
			s.until(s.now() + time.Millisecond)
			if after, _ := s.sent(l); len(after) > len(before) {
				break
			}
		}
		sent, _ := s.sent(l)
		s.clock.Answered("a")
		s.until(time.Minute)
		all, _ := s.sent(l)
		if next := all[len(sent)]; next > sent[len(sent)-1]+1100*time.Millisecond {
			t.Errorf("sent at %v, and then at %v", sent[len(sent)-1], next)
		}
	})
}

// Each failure of an outage may be told as a break: the leases are not looked
// through for each.
func TestKicksAreCollected(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, true)
		s.until(3 * time.Second)
		for range 100 {
			s.clock.Kick("a")
			s.until(s.now() + time.Millisecond)
		}
		s.until(9 * time.Second)
		if at, _ := s.sent(l); len(at) < 2 || len(at) > 4 {
			t.Errorf("sent at %v for 100 kicks in 100ms, want one each 50ms", at)
		}
		s.clock.Kick("a")
		s.until(9 * time.Second)
		if at, _ := s.sent(l); at[len(at)-1] != 9*time.Second {
			t.Errorf("last sent at %v, want at the kick", at[len(at)-1])
		}
	})
}

// A break while another is yet to be followed up is followed up with it, for
// whoever has come since.
func TestAKickThatJoinsAnotherIsForAll(t *testing.T) {
	play(t, func(s *stage) {
		s.addOne(lease, true)
		s.until(3 * time.Second)
		s.clock.Kick("a")
		s.until(3*time.Second + 10*time.Millisecond)
		s.clock.Kick("a")
		l := s.lease(lease)
		l.Group = 1
		s.clock.Add(l, true)
		s.clock.Kick("a")
		s.until(4 * time.Second)
		s.wantSent(l, 3*time.Second+pause)
	})
}

// A client may have a million leases that rest. To look at each of them at every
// end of a silence would take longer than a renewal, and renewals would wait for
// it.
func TestTheEndOfASilenceIsOnlyForThoseThatFailed(t *testing.T) {
	play(t, func(s *stage) {
		fails := s.lease(lease)
		s.answer = func(l *Lease, at time.Duration) Result {
			if l == fails && 12*time.Second <= at && at < 13*time.Second {
				return Failed
			}
			return Confirmed
		}
		s.clock.Add(fails, true)
		rests := s.addOne(lease, true)
		s.until(12 * time.Second)
		s.clock.Check(fails)
		s.until(15 * time.Second)
		s.clock.mu.Lock()
		defer s.clock.mu.Unlock()
		if n := len(s.calls); fails.retry != 0 || n < 4 {
			t.Errorf("%d calls, and the next pause is %v: there was no silence", n, fails.retry)
		}
		if got := rests.bunch.looked.Sub(s.start); got != 10*time.Second {
			t.Errorf("those that rest were looked through at %v, want 10s", got)
		}
	})
}
