package renew

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const lease = 30 * time.Second

func TestRenewsAThirdAfterConfirmation(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = 100 * time.Millisecond
		l := s.addOne(lease, true)
		s.until(65 * time.Second)
		// A third after each was sent, however long the answer took.
		s.wantSent(l, 10*time.Second, 20*time.Second, 30*time.Second, 40*time.Second, 50*time.Second, 60*time.Second)
		if _, asks := s.sent(l); slices.ContainsFunc(asks, func(d time.Duration) bool { return d != lease }) {
			t.Errorf("asked for %v, want %v each time", asks, lease)
		}
		if got, want := l.End().Sub(s.start), 60*time.Second+trusted; got != want {
			t.Errorf("trusted until %v, want %v", got, want)
		}
		s.wantNotTold(l)
	})
}

func TestRenewsForADay(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, true)
		s.until(24*time.Hour + time.Second)
		if at, _ := s.sent(l); len(at) != 24*360 {
			t.Errorf("sent %d times, want %d", len(at), 24*360)
		}
		s.wantNotTold(l)
	})
}

func TestFixedLeaseEnds(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, false)
		s.until(trusted - 1)
		s.wantNotTold(l)
		s.until(time.Minute)
		s.wantTold(l, at(trusted), nil)
		s.wantSent(l)
	})
}

func TestSetRenewing(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, false)
		s.until(15 * time.Second)
		s.clock.SetRenewing(l, true, lease) // a third has passed already
		s.until(15 * time.Second)
		s.wantSent(l, 15*time.Second)
		s.until(26 * time.Second)
		s.wantSent(l, 15*time.Second, 25*time.Second)
		s.clock.SetRenewing(l, false, lease)
		s.until(2 * time.Minute)
		s.wantSent(l, 15*time.Second, 25*time.Second)
		s.wantTold(l, at(25*time.Second+trusted), nil)
		s.clock.SetRenewing(l, true, lease) // nothing is left to renew
		s.until(3 * time.Minute)
		s.wantSent(l, 15*time.Second, 25*time.Second)
	})
}

// A fixed lease that is to be renewed from now on gets the length of that.
func TestSetRenewingForALength(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(12*time.Second, false)
		s.until(5 * time.Second)
		s.clock.SetRenewing(l, true, lease)
		s.until(25 * time.Second)
		s.wantSent(l, 5*time.Second, 15*time.Second, 25*time.Second) // a third of the 12 s was over
		s.clock.SetRenewing(l, true, 2*lease)                        // longer from the next time on
		s.until(36 * time.Second)
		s.clock.SetRenewing(l, false, time.Second)
		s.until(time.Hour)
		if _, asks := s.sent(l); !slices.Equal(asks, []time.Duration{lease, lease, lease, 2 * lease}) {
			t.Errorf("asked for %v, want %v three times, and then twice as much", asks, lease)
		}
		if l.Length != 2*lease {
			t.Errorf("the length is %v, want %v", l.Length, 2*lease)
		}
	})
}

// Its owner has confirmed a lease by itself: what is to come moves.
func TestConfirmedByItsOwner(t *testing.T) {
	play(t, func(s *stage) {
		kept, fixed := s.addOne(lease, true), s.addOne(lease, false)
		s.until(5 * time.Second)
		for _, l := range []*Lease{kept, fixed} {
			l.Confirm(time.Now(), lease)
		}
		s.until(20 * time.Second)
		s.wantSent(kept, 15*time.Second)
		s.until(time.Minute)
		s.wantTold(fixed, at(5*time.Second+trusted), nil)
	})
}

// What others took for the holder is shorter than what the holder wants.
func TestAShortLeaseIsSoonRenewed(t *testing.T) {
	play(t, func(s *stage) {
		l := s.lease(lease)
		l.Reset()
		l.Confirm(time.Now(), 6*time.Second)
		s.until(2 * time.Second)
		s.clock.Add(l, true)
		brief := s.lease(lease)
		brief.Reset()
		brief.Confirm(time.Now(), 6*time.Second)
		s.clock.Add(brief, true)
		s.until(2090 * time.Millisecond)
		s.clock.Remove(brief)
		s.until(25 * time.Second)
		s.wantSent(brief)
		s.wantSent(l, 2100*time.Millisecond, 12100*time.Millisecond, 22100*time.Millisecond)
		s.wantNotTold(l)
	})
}

// Somebody has asked for less meanwhile, again and again.
func TestAShorterConfirmationDoesNotPutOffTheRenewal(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, true)
		for range 20 {
			s.until(s.now() + 2*time.Second)
			l.Confirm(time.Now(), time.Second)
		}
		s.wantSent(l, 10*time.Second, 20*time.Second, 30*time.Second, 40*time.Second)
		s.wantNotTold(l)
	})
}

// A renewal that adds nothing to a longer lease counts nevertheless.
func TestALongerConfirmationDoesNotHurryTheRenewal(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, true)
		l.Confirm(time.Now(), time.Hour)
		s.until(35 * time.Second)
		s.wantSent(l, 10*time.Second, 20*time.Second, 30*time.Second)
	})
}

func TestUntilBoundsTrust(t *testing.T) {
	play(t, func(s *stage) {
		early, late, free := s.lease(lease), s.lease(lease), s.addOne(lease, true)
		early.Until, late.Until = s.start.Add(12*time.Second), s.start.Add(45*time.Second)
		s.clock.Add(early, true)
		s.clock.Add(late, true)
		s.until(10 * time.Minute)
		s.wantTold(early, at(12*time.Second), nil)
		s.wantSent(early, 10*time.Second)
		s.wantTold(late, at(45*time.Second), nil)
		s.wantNotTold(free)
	})
}

func TestUntilInThePast(t *testing.T) {
	play(t, func(s *stage) {
		s.until(3 * time.Second)
		l := s.lease(lease)
		l.Until = s.start
		s.clock.Add(l, true)
		s.until(3 * time.Second)
		s.wantTold(l, at(3*time.Second), nil)
	})
}

// What Until ends, though the window is not over, a late answer does not bring
// back.
func TestUntilWhileARenewalIsInFlight(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = 4 * time.Second
		l := s.lease(lease)
		l.Until = s.start.Add(12 * time.Second)
		s.clock.Add(l, true)
		s.until(time.Hour)
		s.wantSent(l, 10*time.Second)
		s.wantTold(l, at(12*time.Second), nil)
	})
}

// A holder that has been given more time takes up its lease again, wherever
// that was when its time ended.
func TestAddAgainWhenUntilHasPassed(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = 4 * time.Second
		defer s.occupy(MaxSenders - 1)()
		again := func(group int) (*Lease, *takesUp) {
			l := s.lease(lease)
			h := &takesUp{holder: holder{s: s, node: "a"}, l: l}
			l.Group, l.Holder, l.Until = group, h, s.start.Add(12*time.Second)
			s.clock.Add(l, true)
			return l, h
		}
		asked, first := again(0)   // sent at 10s, answered at 18s
		queued, second := again(1) // sent then
		s.until(25 * time.Second)
		if sentFirst, _ := s.sent(asked); sentFirst[0] != 10*time.Second {
			asked, queued = queued, asked
		}
		s.wantSent(asked, 10*time.Second)
		s.wantSent(queued, 18*time.Second)
		s.until(29 * time.Second)
		s.wantSent(asked, 10*time.Second, 26*time.Second)
		s.wantSent(queued, 18*time.Second)
		for _, h := range []*takesUp{first, second} {
			if !slices.Equal(h.expired, at(12*time.Second)) || h.gone != nil {
				t.Errorf("told Expired at %v and Gone at %v, want once at 12s", h.expired, h.gone)
			}
		}
	})
}

// takesUp is a holder that has more time by then.
type takesUp struct {
	holder
	l *Lease
}

func (h *takesUp) Expired() {
	h.holder.Expired()
	h.s.clock.Remove(h.l)
	h.l.Until = time.Time{}
	h.s.clock.Add(h.l, true)
}

func TestRemove(t *testing.T) {
	play(t, func(s *stage) {
		ls := s.add(3, lease, true)
		s.clock.Remove(ls[1])
		s.clock.Remove(ls[1]) // once more changes nothing
		s.until(time.Hour)
		s.wantSent(ls[1])
		s.wantNotTold(ls[1])
		s.clock.Check(ls[1])
		s.clock.SetRenewing(ls[1], false, lease)
		s.until(2 * time.Hour)
		s.wantSent(ls[1])
		s.wantNotTold(ls[1])
		if at, _ := s.sent(ls[0]); len(at) != 720 {
			t.Errorf("the neighbour was sent %d times, want 720", len(at))
		}
	})
}

func TestRemoveWhileARenewalIsInFlight(t *testing.T) {
	for name, r := range map[string]Result{"confirmed": Confirmed, "gone": Gone, "failed": Failed} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.travel = time.Second
				s.answers(r)
				l := s.addOne(lease, true)
				s.until(11 * time.Second)
				s.clock.Remove(l)
				s.until(time.Hour)
				s.wantSent(l, 10*time.Second)
				s.wantNotTold(l)
			})
		})
	}
}

func TestRemoveFromALane(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second // two seconds for each batch
		ls := s.add(MaxSenders*MaxBatch+2, lease, true)
		s.until(11 * time.Second)
		var waiting []*Lease
		for _, l := range ls {
			if at, _ := s.sent(l); len(at) == 0 {
				waiting = append(waiting, l)
			}
		}
		if len(waiting) != 2 {
			t.Fatalf("%d leases wait, want 2", len(waiting))
		}
		s.clock.Remove(waiting[0])
		s.until(13 * time.Second)
		s.wantSent(waiting[0])
		s.wantSent(waiting[1], 12*time.Second)
	})
}

func TestCloseReturnsEveryHolderOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.answers(Gone)
		ls := s.add(3, lease, true)
		removed := s.addOne(lease, true)
		s.clock.Remove(removed)
		fixed := s.addOne(10*time.Second, false)
		s.until(11 * time.Second) // fixed has ended, and renewals of the others are in flight
		holders := s.clock.Close()
		if len(holders) != 3 {
			t.Errorf("Close returned %d holders, want 3", len(holders))
		}
		for _, l := range ls {
			if !slices.Contains(holders, l.Holder) {
				t.Error("a holder is missing")
			}
		}
		if again := s.clock.Close(); len(again) != 0 {
			t.Errorf("the second Close returned %d holders", len(again))
		}
		s.clock.Kick("a")
		for _, l := range ls {
			s.clock.Check(l)
			s.clock.SetRenewing(l, false, lease)
			s.clock.Remove(l)
		}
		s.until(time.Hour)
		for _, l := range ls {
			s.wantSent(l, 10*time.Second)
			s.wantNotTold(l)
		}
		s.wantTold(fixed, at(10*time.Second-Margin(10*time.Second)), nil)
	})
}

// A clock that is closed watches nothing any more, and says so: who adds a
// lease then has to end it.
func TestAddAfterClose(t *testing.T) {
	play(t, func(s *stage) {
		l := s.lease(lease)
		if !s.clock.Add(l, true) {
			t.Error("an open clock did not take a lease")
		}
		s.clock.Close()
		l = s.lease(lease)
		if s.clock.Add(l, true) {
			t.Error("a closed clock took a lease")
		}
		s.until(time.Hour)
		s.wantSent(l)
		s.wantNotTold(l)
	})
}

func TestTheClockGlancesAtLeastOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var glances atomic.Int64
		c := NewClock(func(f func()) { go f() }, func() { glances.Add(1) })
		defer c.Close()
		l := &Lease{Length: time.Hour, Holder: nobody{}}
		l.Confirm(time.Now(), time.Hour)
		c.Add(l, false)
		time.Sleep(10*time.Second + time.Millisecond)
		if n := glances.Load(); n < 10 {
			t.Errorf("%d glances in ten seconds", n)
		}
	})
}

type nobody struct{}

func (nobody) Node() string { return "" }
func (nobody) Expired()     {}
func (nobody) Gone()        {}
