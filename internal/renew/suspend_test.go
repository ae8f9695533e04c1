package renew

import (
	"slices"
	"testing"
	"time"
)

// A bubble's clock has no monotonic reading, so these tests take place in real
// time. They do not wait: they let the clock look.

// A sleeper is a clock whose machine can be suspended, and that only looks when
// it is told to.
type sleeper struct {
	*testing.T
	clock   *Clock
	leases  []*Lease
	senders []func() // yet to be run
}

func newSleeper(t *testing.T) *sleeper {
	s := &sleeper{T: t}
	s.clock = NewClock(func(f func()) { s.senders = append(s.senders, f) }, nil)
	t.Cleanup(func() { s.clock.Close() })
	return s
}

// A toldHolder was told that its lease has expired, or was not.
type toldHolder struct{ expired, gone int }

func (h *toldHolder) Node() string { return "" }
func (h *toldHolder) Expired()     { h.expired++ }
func (h *toldHolder) Gone()        { h.gone++ }

func (s *sleeper) add(length time.Duration, renewing bool) *Lease {
	s.Helper()
	l := &Lease{Kind: &Kind{}, Holder: &toldHolder{}, Length: length}
	l.Kind.Renew = func([]*Lease) {}
	l.Confirm(time.Now(), length)
	if !s.clock.Add(l, renewing) {
		s.Fatal("the clock is closed")
	}
	s.stop()
	s.leases = append(s.leases, l)
	return l
}

// suspend makes it look as if the machine had been suspended for d: the wall
// clock has gone on, and no timer has.
func (s *sleeper) suspend(d time.Duration) {
	ends := &s.clock.ends
	ends.mu.Lock()
	defer ends.mu.Unlock()
	ends.seen = sleptAfter(ends.seen, d)
	for _, l := range s.leases {
		l.mu.Lock()
		l.sent, l.last = sleptAfter(l.sent, d), sleptAfter(l.last, d)
		l.mu.Unlock()
	}
}

// look lets the clock look, as it does every second, and returns the leases
// that have become due.
func (s *sleeper) look() (due []*Lease) {
	s.clock.ends.tick()
	for _, b := range s.clock.bunches {
		s.clock.look(b)
	}
	s.stop()
	for _, ln := range s.clock.nodes {
		for _, b := range ln.queue {
			due = append(due, b.due...)
		}
	}
	for len(s.senders) > 0 {
		send := s.senders[0]
		s.senders = s.senders[1:]
		send()
	}
	s.stop()
	return due
}

// stop keeps the clock from looking by itself.
func (s *sleeper) stop() {
	deaf := func(a *alarm) {
		a.Stop()
		*a = newAlarm(func() {})
	}
	for _, b := range s.clock.bunches {
		deaf(&b.alarm)
	}
	deaf(&s.clock.ends.alarm)
}

func (s *sleeper) wantExpired(l *Lease, want int) {
	s.Helper()
	if h := l.Holder.(*toldHolder); h.expired != want || h.gone != 0 {
		s.Errorf("a lease of %v: told Expired %d times and Gone %d times, want %d and 0", l.Length, h.expired, h.gone, want)
	}
}

// The next look after a suspend sees what is over and what is to be renewed,
// though no timer was due, and even if it is the first.
func TestSuspend(t *testing.T) {
	for _, looks := range []int{0, 1, 3} {
		s := newSleeper(t)
		lost, fixed := s.add(30*time.Second, true), s.add(30*time.Second, false)
		doubted, kept := s.add(100*time.Second, true), s.add(10*time.Minute, true)
		for range looks {
			if due := s.look(); len(due) != 0 {
				t.Fatalf("%d leases were due before the suspend", len(due))
			}
		}
		s.suspend(40 * time.Second)
		if due := s.look(); !slices.Equal(due, []*Lease{doubted}) {
			t.Errorf("after %d looks: %d leases due, want the one a third of which is over", looks, len(due))
		}
		s.wantExpired(lost, 1)
		s.wantExpired(fixed, 1)
		s.wantExpired(doubted, 0)
		s.wantExpired(kept, 0)
		s.look()
		s.wantExpired(lost, 1)
	}
}

// Nor does a lease that is taken before the next look hide it.
func TestALeaseThatIsTakenAfterASuspendDoesNotHideIt(t *testing.T) {
	s := newSleeper(t)
	lost := s.add(30*time.Second, true)
	s.suspend(40 * time.Second)
	kept := s.add(30*time.Second, true)
	s.look()
	s.wantExpired(lost, 1)
	s.wantExpired(kept, 0)
}

// A wall clock that is set back, or slewed a little, ends and renews nothing, and
// has nobody looked at.
func TestWallClockThatIsOnlySlewed(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, 2 * time.Millisecond} {
		s := newSleeper(t)
		s.clock.ends.woke = func() { t.Errorf("a step of %v was taken for sleep", step) }
		l := s.add(30*time.Second, true)
		for range 10 {
			s.suspend(step)
			if due := s.look(); len(due) != 0 {
				t.Fatalf("a step of %v made a lease due", step)
			}
		}
		s.wantExpired(l, 0)
	}
}
