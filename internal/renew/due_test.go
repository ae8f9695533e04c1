package renew

import (
	"errors"
	"testing"
	"time"
)

func (s *stage) wantDue(n int, oldest time.Duration) {
	s.Helper()
	if gotN, got := s.clock.Due(); gotN != n || got != oldest {
		s.Errorf("at %v: %d are due, the oldest confirmed %v ago; want %d, %v", s.now(), gotN, got, n, oldest)
	}
}

// A lease is due from when its renewal is sent until that is confirmed, or nobody trusts it.
func TestDue(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.addOne(lease, true)
		s.until(11 * time.Second)
		s.wantDue(1, 11*time.Second)
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
		s.wantDue(2, 15*time.Second)
		s.until(trusted)
		s.wantDue(1, trusted-3*time.Second)
	})
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
