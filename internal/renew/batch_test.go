package renew

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestBatchesOfAHundred(t *testing.T) {
	play(t, func(s *stage) {
		ls := s.add(250, lease, true)
		s.until(19 * time.Second)
		var sizes []int
		for _, c := range s.calls {
			sizes = append(sizes, len(c.leases))
		}
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{50, 100, 100}) {
			t.Errorf("batches of %v, want 50, 100, 100", sizes)
		}
		for _, l := range ls {
			s.wantSent(l, 10*time.Second)
		}
	})
}

func TestOneKindGroupAndNodeInABatch(t *testing.T) {
	play(t, func(s *stage) {
		kinds := []*Kind{s.kind, s.newKind()}
		var ls []*Lease
		for i := range 600 {
			l := s.lease(lease)
			l.Kind, l.Group = kinds[i%2], i/2%3
			l.moveTo(fmt.Sprint(i / 6 % 2))
			s.clock.Add(l, true)
			ls = append(ls, l)
		}
		s.until(19 * time.Second)
		if len(s.calls) != 12 {
			t.Errorf("%d batches, want one for each of 12 kinds, groups and nodes", len(s.calls))
		}
		for _, c := range s.calls {
			first := c.leases[0]
			for _, l := range c.leases {
				if l.Kind != c.kind || l.Group != first.Group || l.bunch.node != first.bunch.node {
					t.Fatalf("a batch of group %d in node %s has a lease of group %d in node %s, or of another kind", first.Group, first.bunch.node.name, l.Group, l.bunch.node.name)
				}
			}
		}
		for _, l := range ls {
			s.wantSent(l, 10*time.Second)
		}
	})
}

// A server that refuses to be asked about several groups at once costs no lease,
// and is asked so no more, also about what has been waiting.
func TestLeasesGoApartAtOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.clock = NewClock(func(f func()) { go f() }, nil)
		var mixed atomic.Int64
		kind := &Kind{Renew: func(batch []*Lease) {
			fits := !slices.ContainsFunc(batch, func(l *Lease) bool { return l.Group != batch[0].Group })
			for _, l := range batch {
				if l.Result = Failed; fits {
					l.Result = Confirmed
				}
			}
			time.Sleep(time.Second)
			if !fits {
				mixed.Add(1)
				s.clock.Apart()
			}
		}}
		var ls []*Lease
		const n = 100 * MaxBatch // more than there are senders
		for i := range n {
			l := s.lease(lease)
			l.Kind, l.Group = kind, i%50
			s.clock.Add(l, true)
			ls = append(ls, l)
		}
		s.until(16 * time.Second)
		if got := mixed.Load(); got != MaxSenders {
			t.Errorf("%d batches of several groups, want the %d that went out before one was answered", got, MaxSenders)
		}
		for _, l := range ls {
			if at := l.Confirmed().Sub(s.start); at < 10*time.Second {
				t.Fatalf("a lease was last renewed at %v", at)
			}
		}
	})
}

func TestEachLeaseHasItsOwnResult(t *testing.T) {
	play(t, func(s *stage) {
		s.answer = func(l *Lease, at time.Duration) Result {
			switch n := l.Holder.(*holder).name; {
			case n == "1" && at < 20*time.Second:
				return Gone
			case (n == "2" || n == "3") && at < 13*time.Second:
				return Failed
			default:
				return Confirmed
			}
		}
		ls := s.add(5, lease, true)
		s.until(24 * time.Second)
		if len(s.calls[0].leases) != 5 {
			t.Fatalf("a batch of %d, want 5", len(s.calls[0].leases))
		}
		for _, i := range []int{0, 4} {
			s.wantSent(ls[i], 10*time.Second, 20*time.Second)
		}
		s.wantSent(ls[1], 10*time.Second)
		s.wantTold(ls[1], nil, at(10*time.Second))
		for _, i := range []int{2, 3} {
			if sent, _ := s.sent(ls[i]); len(sent) < 3 || sent[len(sent)-1] < 13*time.Second {
				t.Errorf("lease %d was sent at %v only", i, sent)
			}
			s.wantNotTold(ls[i])
		}
	})
}

// A Kind that sets no result, because its driver broke, has failed.
func TestNoResultIsAFailure(t *testing.T) {
	play(t, func(s *stage) {
		l := s.lease(lease)
		l.Result = Confirmed // of before
		n := 0
		l.Kind = &Kind{Renew: func([]*Lease) { n++ }}
		s.clock.Add(l, true)
		s.until(time.Minute)
		s.wantTold(l, at(trusted), nil)
		if n < 20 {
			t.Errorf("asked %d times, want until the end", n)
		}
	})
}

// A server that does not answer delays neither the renewals of another nor
// anybody's end.
func TestABlockedNode(t *testing.T) {
	play(t, func(s *stage) {
		silent := make(chan struct{})
		stuck := &Kind{Renew: func([]*Lease) { <-silent }}
		var lost, kept []*Lease
		for i := range 300 {
			l := s.lease(lease)
			if i%2 == 0 {
				l.Kind = stuck
				l.moveTo("silent")
				lost = append(lost, l)
			} else {
				l.moveTo("good")
				kept = append(kept, l)
			}
			s.clock.Add(l, true)
		}
		s.until(45 * time.Second)
		for _, l := range kept {
			s.wantSent(l, 10*time.Second, 20*time.Second, 30*time.Second, 40*time.Second)
			s.wantNotTold(l)
		}
		for _, l := range lost {
			s.wantTold(l, at(trusted), nil)
		}
		close(silent)
		s.until(time.Minute)
		for _, l := range lost {
			s.wantTold(l, at(trusted), nil)
		}
	})
}

// A node has as many senders as it has batches to send, up to a bound, and they
// end when there is nothing to send.
func TestSendersOfANode(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		ls := s.add(250, lease, true)
		s.until(11 * time.Second)
		s.wantSenders(3)
		s.until(18 * time.Second)
		s.clock.Check(ls[0])
		s.until(19 * time.Second)
		s.wantSenders(4)
		s.wantNodes(1)
		for _, l := range ls {
			s.clock.Remove(l)
		}
		s.until(time.Minute)
		s.wantNodes(0)
	})
}

// The groups of a node wait for no answer to each other, even one that never
// comes, and no more than MaxSenders are asked about at a time.
func TestGroupsArePipelined(t *testing.T) {
	const groups = 3 * MaxSenders / 2
	play(t, func(s *stage) {
		s.travel = time.Second
		defer s.occupy(1)()
		var ls []*Lease
		for i := range groups {
			l := s.lease(lease)
			l.Group = i
			s.clock.Add(l, true)
			ls = append(ls, l)
		}
		s.until(19 * time.Second)
		when := map[time.Duration]int{}
		s.mu.Lock()
		for _, c := range s.calls {
			when[c.at]++
		}
		s.mu.Unlock()
		if when[10*time.Second] != MaxSenders-1 || when[12*time.Second] != groups-(MaxSenders-1) {
			t.Errorf("asked at %v; want %d at once, and the rest a round trip later", when, MaxSenders-1)
		}
		s.until(time.Hour)
		for _, l := range ls {
			s.wantNotTold(l)
		}
	})
}

// Leases of one sort that were taken one after the other are soon renewed
// together, a batch at a time, each no later than a third after the last time.
func TestRenewalsMeet(t *testing.T) {
	play(t, func(s *stage) {
		const n = MaxBatch + 20
		var ls []*Lease
		for i := range n {
			s.until(time.Duration(i) * 80 * time.Millisecond)
			ls = append(ls, s.addOne(lease, true))
		}
		other := s.lease(lease)
		other.Group = 1
		s.clock.Add(other, true)
		s.until(60 * time.Second)
		calls := s.batches()
		s.until(90 * time.Second)
		for _, l := range append(ls, other) {
			for _, gap := range s.gaps(l) {
				if gap > 10*time.Second || gap < 5*time.Second {
					t.Fatalf("asked again after %v, want 5 to 10s", gap)
				}
			}
			s.wantNotTold(l)
		}
		if calls = s.batches() - calls; calls > 3*3 {
			t.Errorf("%d batches in three thirds of a lease, want at most nine", calls)
		}
		for _, l := range ls[:n/2] {
			s.clock.Remove(l)
		}
		s.until(120 * time.Second)
		for _, l := range ls[n/2:] {
			s.clock.Remove(l)
		}
		s.clock.Remove(other)
		if s.until(3 * time.Minute); len(s.clock.bunches) != 0 {
			t.Errorf("%d bunches are left of leases that are gone", len(s.clock.bunches))
		}
	})
}

// A lease that has not rested half of its time does not go along with one that is
// due, and in a large sort nor does one that has only just rested half.
func TestWhoHasRestedLittleIsNotTakenAlong(t *testing.T) {
	small, large := [2][]time.Duration{at(10 * time.Second), nil}, [2][]time.Duration{at(15 * time.Second), at(15 * time.Second)}
	for n, want := range map[int][2][]time.Duration{10: small, MaxBatch: small, MaxBatch + 1: large} {
		play(t, func(s *stage) {
			first := s.add(n-3, lease, true)[0]
			s.until(5*time.Second - pause)
			more := s.addOne(lease, true)
			s.until(5 * time.Second)
			half := s.addOne(lease, true)
			s.until(5*time.Second + time.Millisecond)
			less := s.addOne(lease, true)
			s.until(15 * time.Second)
			s.wantSent(first, 10*time.Second)
			s.wantSent(more, 10*time.Second)
			s.wantSent(half, want[0]...)
			s.wantSent(less, want[1]...)
		})
	}
}

// When the lease is gone for which the clock wanted to look, it looks again for
// the first of the others, and not before.
func TestTheNextOfABunchIsLookedFor(t *testing.T) {
	play(t, func(s *stage) {
		gone := s.addOne(lease, true)
		var ls []*Lease
		for i := range 20 {
			s.until(2*time.Second + time.Duration(i)*100*time.Millisecond)
			ls = append(ls, s.addOne(lease, true))
		}
		s.until(9 * time.Second)
		s.clock.Remove(gone)
		looks, last := 0, ls[0].bunch.looked
		for s.now() < 12*time.Second {
			s.until(s.now() + 10*time.Millisecond)
			s.clock.mu.Lock()
			if looked := ls[0].bunch.looked; looked != last {
				looks, last = looks+1, looked
			}
			s.clock.mu.Unlock()
		}
		for _, l := range ls {
			s.wantSent(l, 12*time.Second)
		}
		if looks > 3 {
			t.Errorf("looked through %d times in 3s, want for the one that is gone, and for the next", looks)
		}
	})
}

// Those of a large sort that come and go all the time do not have the others
// renewed with each half of them.
func TestLatecomersDoNotHurryTheRest(t *testing.T) {
	play(t, func(s *stage) {
		ls := s.add(2*MaxBatch, lease, true)
		for s.now() < 2*time.Minute {
			l := s.addOne(lease, true)
			time.AfterFunc(12*time.Second, func() { s.clock.Remove(l) })
			s.until(s.now() + 100*time.Millisecond)
		}
		if at, _ := s.sent(ls[0]); len(at) > 13 {
			t.Errorf("renewed %d times in two minutes, at %v", len(at), at)
		}
	})
}

// What is due is asked about in turn: many of one sort do not keep others waiting.
func TestSortsTakeTurns(t *testing.T) {
	play(t, func(s *stage) {
		s.travel = time.Second
		s.add(4*MaxSenders*MaxBatch, lease, true)
		other := s.lease(lease)
		other.Kind = s.newKind()
		s.clock.Add(other, true)
		s.until(19 * time.Second)
		if at, _ := s.sent(other); len(at) != 1 || at[0] > 12*time.Second {
			t.Errorf("the other one was sent at %v", at)
		}
	})
}

// batches returns how many there were, ever.
func (s *stage) batches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// wantSenders checks how many senders there were, ever.
func (s *stage) wantSenders(want int) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.senders != want {
		s.Errorf("at %v: %d senders so far, want %d", s.now(), s.senders, want)
	}
}

// wantNodes checks how many nodes are busy.
func (s *stage) wantNodes(want int) {
	s.Helper()
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	busy := 0
	for _, ln := range s.clock.nodes {
		if ln.senders > 0 || len(ln.queue) > 0 {
			busy++
		}
	}
	if busy != want {
		s.Errorf("at %v: %d nodes are busy, want %d", s.now(), busy, want)
	}
}
