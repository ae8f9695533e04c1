package renew

import (
	"testing"
	"time"
)

// gaps returns the pauses between the times that l was sent.
func (s *stage) gaps(l *Lease) []time.Duration {
	at, _ := s.sent(l)
	var gaps []time.Duration
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	return gaps
}

func TestFailedIsTriedAgainUntilTheWindowIsOver(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(Failed)
		l := s.addOne(lease, true)
		s.until(time.Hour)
		sent, _ := s.sent(l)
		if sent[0] != 10*time.Second || sent[len(sent)-1] >= trusted || trusted-sent[len(sent)-1] > time.Second {
			t.Errorf("sent from %v to %v, want from 10s to the last second before %v", sent[0], sent[len(sent)-1], trusted)
		}
		gaps := s.gaps(l)
		for i, gap := range gaps {
			if gap < 50*time.Millisecond || gap > time.Second {
				t.Errorf("pause %d is %v, want 50ms to 1s", i, gap)
			}
		}
		if gaps[0] > 100*time.Millisecond || gaps[len(gaps)-1] < 500*time.Millisecond {
			t.Errorf("pauses from %v to %v do not grow", gaps[0], gaps[len(gaps)-1])
		}
		s.wantTold(l, at(trusted), nil)
	})
}

func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	play(t, func(s *stage) {
		s.answer = func(_ *Lease, at time.Duration) Result {
			if at < 15*time.Second || (at > 24*time.Second && at < 27*time.Second) {
				return Failed
			}
			return Confirmed
		}
		l := s.addOne(lease, true)
		s.until(30 * time.Second)
		s.wantNotTold(l)
		for i, gap := range s.gaps(l) {
			if gap < 9*time.Second {
				continue
			}
			if next := s.gaps(l)[i+1]; gap != 10*time.Second || next > 100*time.Millisecond {
				t.Errorf("a pause of %v, then one of %v; want 10s, then at most 100ms", gap, next)
			}
			return
		}
		t.Error("not renewed a third after the success")
	})
}

func TestGoneIsToldOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(Gone)
		s.travel = 100 * time.Millisecond
		l := s.addOne(lease, true)
		s.until(10 * time.Second)
		s.clock.Check(l) // doubted while it is being asked about
		s.clock.Kick("a")
		s.until(time.Hour)
		s.wantSent(l, 10*time.Second)
		s.wantTold(l, nil, at(10*time.Second+200*time.Millisecond))
	})
}

// The answer comes when the window is over, or at that very moment.
func TestLateConfirmationDoesNotRevive(t *testing.T) {
	for name, late := range map[string]time.Duration{"late": time.Second, "at the moment": 0} {
		for result, r := range map[string]Result{"confirmed": Confirmed, "gone": Gone, "failed": Failed} {
			t.Run(name+"/"+result, func(t *testing.T) {
				play(t, func(s *stage) {
					s.answers(r)
					s.travel = (trusted - 10*time.Second + late) / 2
					l := s.addOne(lease, true)
					s.until(time.Hour)
					s.wantSent(l, 10*time.Second)
					if r == Gone && late == 0 {
						return // either word may come first; the hammer checks that it is one
					}
					s.wantTold(l, at(trusted), nil)
					if left := l.Left(time.Now()); left > 0 {
						t.Errorf("%v left", left)
					}
				})
			})
		}
	}
}

// Even if the clock has not looked yet: settle comes first here.
func TestLateConfirmationBeforeTheClockLooks(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, false)
		s.until(20 * time.Second)
		s.clock.mu.Lock()
		// As if the timers had stood still for ten seconds.
		l.Window.sent = l.Window.sent.Add(-10 * time.Second)
		sent := time.Now().Add(-time.Second)
		l.Ask, l.Result, l.due = lease, Confirmed, true
		s.clock.mu.Unlock()
		s.clock.settle("a", []*Lease{l}, sent)
		if left := l.Left(time.Now()); left > 0 {
			t.Errorf("a late reply revived the lease for %v", left)
		}
		s.until(time.Minute)
		s.wantTold(l, at(trusted), nil) // a machine that slept is seen to within a second
	})
}

func TestCheckOfALeaseThatIsRenewed(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, true)
		s.until(4 * time.Second)
		s.clock.Check(l)
		s.until(15 * time.Second)
		s.wantSent(l, 4*time.Second, 14*time.Second)
	})
}

func TestCheckOfAFixedLeaseOnlyAsks(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, false)
		s.until(4 * time.Second)
		s.clock.Check(l)
		s.until(time.Hour)
		s.wantSent(l, 4*time.Second)
		if _, asks := s.sent(l); asks[0] != 0 {
			t.Errorf("asked for %v, want 0: only whether it is ours", asks[0])
		}
		s.wantTold(l, at(trusted), nil) // not extended
	})
}

// To be asked about is not to be renewed: the renewal that begins then is due when
// it would have been.
func TestACheckDoesNotPutOffTheRenewal(t *testing.T) {
	play(t, func(s *stage) {
		l := s.addOne(lease, false)
		s.until(9 * time.Second)
		s.clock.Check(l)
		s.until(9500 * time.Millisecond)
		if at := l.Confirmed(); !at.Equal(s.start) {
			t.Errorf("confirmed at %v, want when it was taken", at.Sub(s.start))
		}
		s.clock.SetRenewing(l, true, lease)
		s.until(11 * time.Second)
		s.wantSent(l, 9*time.Second, 10*time.Second)
	})
}

func TestCheckOfAFixedLeaseFindsItGone(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(Gone)
		l := s.addOne(lease, false)
		s.until(4 * time.Second)
		s.clock.Check(l)
		s.until(time.Hour)
		s.wantTold(l, nil, at(4*time.Second))
	})
}

// Nobody knows yet: a doubt stays until there is an answer.
func TestFailedCheckIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.answer = func(_ *Lease, at time.Duration) Result {
			if at < 7*time.Second {
				return Failed
			}
			return Gone
		}
		l := s.addOne(lease, false)
		s.until(4 * time.Second)
		s.clock.Check(l)
		s.until(time.Hour)
		if h := l.Holder.(*holder); len(h.gone) != 1 || h.gone[0] > 8*time.Second {
			t.Errorf("told Gone at %v, want once within a second after 7s", h.gone)
		}
		for i, gap := range s.gaps(l) {
			if gap < 50*time.Millisecond || gap > time.Second {
				t.Errorf("pause %d is %v, want 50ms to 1s", i, gap)
			}
		}
	})
}

// The request that is in flight may have been answered before there was a
// doubt: it is no answer to it.
func TestDoubtWhileARenewalIsInFlight(t *testing.T) {
	doubts := map[string]func(*stage, *Lease){
		"Check": func(s *stage, l *Lease) { s.clock.Check(l) },
		"Kick":  func(s *stage, _ *Lease) { s.clock.Kick("a") },
	}
	for name, doubt := range doubts {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.travel = 100 * time.Millisecond
				s.answer = func(_ *Lease, at time.Duration) Result {
					if at == 10*time.Second {
						return Confirmed
					}
					return Gone
				}
				l := s.addOne(lease, true)
				s.until(10*time.Second + 150*time.Millisecond) // on its way back
				doubt(s, l)
				doubt(s, l)
				s.until(time.Hour)
				s.wantSent(l, 10*time.Second, 10*time.Second+200*time.Millisecond)
				s.wantTold(l, nil, at(10*time.Second+400*time.Millisecond))
			})
		})
	}
}

// One that only waits for its turn has not been sent yet: once is enough.
func TestDoubtWhileInTheQueue(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		ls := s.add(MaxSenders*MaxBatch+1, lease, true)
		s.until(11 * time.Second)
		for _, l := range ls {
			if at, _ := s.sent(l); len(at) == 0 {
				s.clock.Check(l)
				s.until(19 * time.Second)
				s.wantSent(l, 12*time.Second)
				return
			}
		}
		t.Error("no lease waits")
	})
}

func TestKickIsForOneNode(t *testing.T) {
	play(t, func(s *stage) {
		here, fixed, there := s.addOne(lease, true), s.addOne(lease, false), s.lease(lease)
		there.moveTo("b")
		s.clock.Add(there, true)
		s.until(3 * time.Second)
		s.clock.Kick("a")
		s.clock.Kick("nobody's")
		s.until(9 * time.Second)
		s.wantSent(here, 3*time.Second)
		s.wantSent(fixed, 3*time.Second)
		s.wantSent(there)
		if _, asks := s.sent(fixed); asks[0] != 0 {
			t.Errorf("the fixed lease was asked for %v", asks[0])
		}
		if _, asks := s.sent(here); asks[0] != lease {
			t.Errorf("the renewed lease was asked for %v", asks[0])
		}
	})
}

func TestKickOfAllNodes(t *testing.T) {
	play(t, func(s *stage) {
		here, there, own := s.addOne(lease, true), s.lease(lease), s.lease(lease)
		there.moveTo("b")
		s.clock.Add(there, true)
		own.Kind = nil // nobody can be asked
		s.clock.Add(own, false)
		s.until(3 * time.Second)
		s.clock.Kick("")
		s.until(9 * time.Second)
		s.wantSent(here, 3*time.Second)
		s.wantSent(there, 3*time.Second)
	})
}

// A lease that was asked about in vain is not asked about without a pause,
// however often its node breaks: each failure may be told as a break.
func TestKickDoesNotOverruleAPause(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(Failed)
		ls := make([]*Lease, 10)
		for i := range ls {
			ls[i] = s.lease(lease)
			ls[i].Group = i
			s.clock.Add(ls[i], true)
		}
		for s.until(10 * time.Second); s.now() < 20*time.Second; s.until(s.now() + time.Millisecond) {
			s.clock.Kick("a")
		}
		for _, l := range ls {
			for i, gap := range s.gaps(l) {
				if gap < 50*time.Millisecond {
					t.Fatalf("pause %d is %v, want 50ms to 1s", i, gap)
				}
			}
		}
	})
}
