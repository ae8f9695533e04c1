package renew

import (
	"errors"
	"math"
	"testing"
	"time"
)

func (s *stage) wantDue(n int, lag float64) {
	s.Helper()
	if gotN, got := s.clock.Due(); gotN != n || math.Abs(got-lag) > 1e-9 {
		s.Errorf("at %v: %d are due, with a lag of %v; want %d, %v", s.now(), gotN, got, n, lag)
	}
}

// A lease is due from when its renewal is sent until that is confirmed, or nobody
// trusts it.
func TestDue(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.addOne(lease, true)
		s.until(11 * time.Second)
		s.wantDue(1, ratio(11*time.Second, trusted))
		s.until(13 * time.Second)
		s.wantDue(0, 0)
	})
	play(t, func(s *stage) {
		s.answers(Failed)
		s.addOne(lease, true)
		s.clock.Check(s.addOne(lease, false)) // is asked about again and again, but not to be renewed
		s.until(3 * time.Second)
		s.addOne(lease, true)
		s.wantDue(0, 0)
		s.until(15 * time.Second)
		s.wantDue(2, ratio(15*time.Second, trusted))
		s.until(trusted)
		s.wantDue(1, ratio(trusted-3*time.Second, trusted))
	})
}

func ratio(passed, of time.Duration) float64 { return float64(passed) / float64(of) }

// Each lease is measured by itself: a lease of ten minutes that was confirmed 200
// s ago is well, and one of ten seconds that was confirmed 9 s ago is nearly lost.
func TestLagIsMeasuredByEachLeasesOwnTime(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(Failed)
		const long = 10 * time.Minute
		s.addOne(long, true)
		s.until(201 * time.Second)
		s.wantDue(1, ratio(201*time.Second, long-Margin(long)))
		const short = 10 * time.Second
		s.addOne(short, true)
		s.until(210 * time.Second)
		s.wantDue(2, ratio(9*time.Second, short-Margin(short)))
		if err := s.clock.Late(); err == nil {
			t.Error("nothing is late, 9 s after the last confirmation of a lease of 10 s")
		}
		s.until(220 * time.Second)
		s.wantDue(1, ratio(220*time.Second, long-Margin(long)))
		if err := s.clock.Late(); err != nil {
			t.Error(err)
		}
	})
}

// A request that was confirmed for more or less than the next renewal asks for
// decides when the lease is lost.
func TestLagIsMeasuredByWhatWasConfirmed(t *testing.T) {
	for _, x := range []struct{ confirmed, next, wait time.Duration }{
		{lease, time.Hour, 25 * time.Second},
		{time.Hour, lease, 25 * time.Second},
	} {
		play(t, func(s *stage) {
			s.answers(Failed)
			l := s.addOne(x.confirmed, true)
			s.clock.SetRenewing(l, true, x.next)
			s.until(x.wait)
			s.wantDue(1, ratio(x.wait, x.confirmed-Margin(x.confirmed)))
		})
	}
}

func TestFailureIsForgottenWithTheNextConfirmation(t *testing.T) {
	play(t, func(s *stage) {
		l := s.lease(lease)
		want := func(want *Failure) {
			t.Helper()
			if got := l.Failure(); got != want {
				t.Errorf("at %v: %v, want %v", s.now(), got, want)
			}
		}
		want(nil)
		s.until(time.Second)
		f := &Failure{Err: errors.New("no"), At: time.Now()}
		l.Fail(f)
		if want(f); l.Result != Failed {
			t.Errorf("the result is %v", l.Result)
		}
		l.Confirm(time.Now().Add(time.Second), lease)
		want(nil)
	})
}
