package renew

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdleLeasesCostNoGoroutine(t *testing.T) {
	const n = 10_000
	play(t, func(s *stage) {
		ls := s.add(n, lease, true)
		alarm := s.alarm()
		timer := alarm.Timer
		for _, when := range []time.Duration{0, 5 * time.Second, 15 * time.Second, 25 * time.Second} {
			s.until(when)
			if got := goroutinesOfClocks(); got != 0 {
				t.Errorf("at %v: %d goroutines", when, got)
			}
			if s.alarm().Timer != timer {
				t.Errorf("at %v: another timer", when)
			}
		}
		if len(s.calls) != 2*n/MaxBatch {
			t.Errorf("%d batches, want %d", len(s.calls), 2*n/MaxBatch)
		}
		for _, l := range ls {
			s.wantSent(l, 10*time.Second, 20*time.Second)
			s.clock.Remove(l)
		}
		// With the last lease the timer goes: the clock is as new.
		if s.until(time.Minute); len(s.clock.bunches) != 0 || !alarm.at.IsZero() || !s.clock.ends.alarm.at.IsZero() {
			t.Error("a timer runs without a lease")
		}
		l := s.addOne(lease, true)
		s.until(75 * time.Second)
		s.wantSent(l, 70*time.Second)
	})
}

// goroutinesOfClocks returns how many goroutines clocks have, senders included.
func goroutinesOfClocks() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("internal/renew.(*Clock)")) {
			n++
		}
	}
	return n
}

func TestGoroutinesOfClocks(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.addOne(lease, true)
		s.until(11 * time.Second)
		if got := goroutinesOfClocks(); got != 1 {
			t.Errorf("%d goroutines while a lease is renewed, want 1", got)
		}
	})
}

// The clock looks once a second as long as there is a lease, and not more often
// than something happens.
func TestIdleClockSleeps(t *testing.T) {
	play(t, func(s *stage) {
		s.add(100, time.Hour, true)
		looks, last := 0, time.Time{}
		for s.now() < 10*time.Second {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			s.clock.ends.mu.Lock()
			if s.clock.ends.seen != last {
				looks, last = looks+1, s.clock.ends.seen
			}
			s.clock.ends.mu.Unlock()
		}
		if looks < 9 || looks > 12 {
			t.Errorf("looked %d times in ten seconds, want about 10", looks)
		}
	})
}

func TestLeasesEndInOrder(t *testing.T) {
	play(t, func(s *stage) {
		var ls []*Lease
		for i := range 1000 {
			l := s.lease(time.Duration(1+(i*389)%1000) * time.Second)
			s.clock.Add(l, false)
			ls = append(ls, l)
		}
		s.until(time.Hour)
		for _, l := range ls {
			s.wantTold(l, at(l.Length-Margin(l.Length)), nil)
		}
	})
}

// Everything at once: whatever becomes of a lease, its holder is told once at
// most, and it is told if nobody has removed it.
func TestHammer(t *testing.T) {
	const goroutines, rounds = 16, 60
	play(t, func(s *stage) {
		s.answer = func(*Lease, time.Duration) Result { return Result(rand.N(4)) }
		s.travel = 3 * time.Millisecond
		kinds := []*Kind{s.kind, s.newKind()}
		var mu sync.Mutex
		removed := map[*Lease]bool{}
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					l := s.lease(time.Duration(rand.N(1000)) * time.Millisecond)
					l.Kind, l.Group = kinds[rand.N(2)], rand.N(2)
					l.moveTo(string(rune('a' + rand.N(3))))
					s.clock.Add(l, rand.N(3) > 0)
					for range rand.N(5) {
						s.disturb(l)
						time.Sleep(time.Duration(rand.N(100)) * time.Millisecond)
					}
					remove := rand.N(2) == 0
					mu.Lock()
					removed[l] = remove
					mu.Unlock()
					if remove {
						s.clock.Remove(l)
					}
				}
			})
		}
		wg.Wait()
		// Nothing is confirmed any more: what is still there ends.
		s.mu.Lock()
		s.answers(Failed)
		s.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		told := 0
		for l, gone := range removed {
			h := l.Holder.(*holder)
			n := len(h.expired) + len(h.gone)
			told += n
			if n > 1 || (n == 0 && !gone) {
				t.Errorf("told %d times (removed: %v)", n, gone)
			}
		}
		if len(removed) != goroutines*rounds || told == 0 {
			t.Errorf("%d leases, %d told", len(removed), told)
		}
		s.wantNodes(0)
		if len(s.clock.bunches) != 0 || !s.clock.ends.alarm.at.IsZero() {
			t.Errorf("%d bunches are left, and the alarm is set to %v", len(s.clock.bunches), s.clock.ends.alarm.at)
		}
	})
}

func (s *stage) disturb(l *Lease) {
	switch rand.N(5) {
	case 0:
		s.clock.Check(l)
	case 1:
		s.clock.Kick("a")
	case 2:
		s.clock.SetRenewing(l, rand.N(2) == 0, time.Duration(rand.N(1000))*time.Millisecond)
	case 3:
		if l.Left(time.Now()) > 0 {
			l.Confirm(time.Now(), l.Length)
		}
	}
}

// alarm returns that of the only bunch.
func (s *stage) alarm() *alarm {
	s.Helper()
	if len(s.clock.bunches) != 1 {
		s.Fatalf("%d bunches", len(s.clock.bunches))
	}
	for _, b := range s.clock.bunches {
		return &b.alarm
	}
	return nil
}

// There is nothing to renew of leases that end one after the other: their ends do
// not have all that they share a bunch with looked through each time.
func TestEndsHaveNobodyLookedThrough(t *testing.T) {
	play(t, func(s *stage) {
		for i := range 200 {
			s.clock.Add(s.lease(time.Hour+time.Duration(i)*100*time.Millisecond), false)
		}
		s.until(time.Hour - Margin(time.Hour))
		looks, last := 0, time.Time{}
		for range 2000 {
			s.until(s.now() + 10*time.Millisecond)
			s.clock.mu.Lock()
			for _, b := range s.clock.bunches {
				if b.looked != last {
					looks, last = looks+1, b.looked
				}
			}
			s.clock.mu.Unlock()
		}
		if looks > 5 {
			t.Errorf("looked through %d times in 20s, want next to never", looks)
		}
		s.until(2 * time.Hour)
		if len(s.clock.bunches) != 0 {
			t.Error("leases that are over stay for ever")
		}
	})
}

// Leases that are to be asked about after a pause, because they are short yet or
// were not answered, do not have those looked through that rest.
func TestPausesHaveNobodyLookedThroughWhoRests(t *testing.T) {
	play(t, func(s *stage) {
		rests := s.addOne(time.Hour, true)
		s.answer = func(l *Lease, _ time.Duration) Result {
			if l.Length == lease {
				return Failed
			}
			return Confirmed
		}
		s.add(5, lease, true)
		looks, last := 0, time.Time{}
		for s.now() < 30*time.Second {
			if s.now()%(100*time.Millisecond) == 0 {
				brief := s.lease(time.Hour)
				brief.Reset()
				brief.Confirm(time.Now(), 6*time.Second)
				s.clock.Add(brief, true)
				time.AfterFunc(90*time.Millisecond, func() { s.clock.Remove(brief) })
			}
			s.until(s.now() + 10*time.Millisecond)
			s.clock.mu.Lock()
			if looked := rests.bunch.looked; looked != last {
				looks, last = looks+1, looked
			}
			s.clock.mu.Unlock()
		}
		if looks > 5 {
			t.Errorf("looked through %d times in 30s, want once for those of 30s", looks)
		}
	})
}
