package renew

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A stage is a clock in fake time, with the server that it renews at. All
// times that a test sees are counted from the start of the bubble.
type stage struct {
	*testing.T
	clock *Clock
	start time.Time
	kind  *Kind

	mu      sync.Mutex // guards what follows
	answer  func(l *Lease, at time.Duration) Result
	travel  time.Duration // how long a request takes there, and back again
	calls   []call
	asked   map[*Lease][]ask // the same, by lease
	senders int
}

// A call is one batch that the server was sent.
type call struct {
	at     time.Duration
	kind   *Kind
	leases []*Lease
}

// An ask is one lease's part of a call.
type ask struct{ at, length time.Duration }

// play runs f in a bubble of its own; what the clock has started must have
// ended when the bubble does.
func play(t *testing.T, f func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, start: time.Now(), asked: map[*Lease][]ask{}}
		s.clock = NewClock(func(f func()) {
			s.mu.Lock()
			s.senders++
			s.mu.Unlock()
			go f()
		}, nil)
		s.clock.Apart()
		s.kind = s.newKind()
		defer func() {
			s.clock.Close()
			time.Sleep(time.Hour) // what is in flight ends, and nothing else begins
		}()
		f(s)
	})
}

func (s *stage) newKind() *Kind {
	k := &Kind{}
	k.Renew = func(batch []*Lease) {
		c := call{at: s.now(), kind: k, leases: slices.Clone(batch)}
		s.mu.Lock()
		s.calls = append(s.calls, c)
		for _, l := range batch {
			s.asked[l] = append(s.asked[l], ask{c.at, l.Ask})
		}
		answer, travel := s.answer, s.travel
		s.mu.Unlock()
		time.Sleep(travel)
		for _, l := range batch {
			l.Result = Confirmed
			if answer != nil {
				l.Result = answer(l, c.at)
			}
		}
		time.Sleep(travel)
	}
	return k
}

// answers makes the server answer every lease with r.
func (s *stage) answers(r Result) { s.answer = func(*Lease, time.Duration) Result { return r } }

func (s *stage) now() time.Duration { return time.Since(s.start) }

// until sleeps until d after the start and lets everything settle.
func (s *stage) until(d time.Duration) {
	time.Sleep(d - s.now())
	synctest.Wait()
}

// holder is what is told about a lease, and when.
type holder struct {
	s    *stage
	name string
	node string

	mu            sync.Mutex // guards what follows
	expired, gone []time.Duration
}

func (h *holder) Node() string { return h.node }

func (h *holder) Expired() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expired = append(h.expired, h.s.now())
}

func (h *holder) Gone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = append(h.gone, h.s.now())
}

// lease makes a lease that was confirmed now, and is not in the clock yet.
func (s *stage) lease(length time.Duration) *Lease {
	l := &Lease{Kind: s.kind, Holder: &holder{s: s, node: "a"}, Length: length}
	l.Confirm(time.Now(), length)
	return l
}

// moveTo moves what is leased to another node.
func (l *Lease) moveTo(node string) { l.Holder.(*holder).node = node }

// add makes n leases and puts them into the clock.
func (s *stage) add(n int, length time.Duration, renewing bool) []*Lease {
	ls := make([]*Lease, n)
	for i := range ls {
		ls[i] = s.lease(length)
		ls[i].Holder.(*holder).name = strconv.Itoa(i)
		s.clock.Add(ls[i], renewing)
	}
	return ls
}

// occupy keeps n senders waiting for a server that is silent until free is called.
func (s *stage) occupy(n int) (free func()) {
	silent := make(chan struct{})
	stuck := &Kind{Renew: func([]*Lease) { <-silent }}
	for i := range n {
		l := s.lease(lease / 2)
		l.Kind, l.Group = stuck, i
		s.clock.Add(l, true)
	}
	return func() { close(silent) }
}

// addOne is add of one lease.
func (s *stage) addOne(length time.Duration, renewing bool) *Lease {
	return s.add(1, length, renewing)[0]
}

// sent returns when a lease was sent, and how long it was asked to be extended.
func (s *stage) sent(l *Lease) (at, asks []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked[l] {
		at, asks = append(at, a.at), append(asks, a.length)
	}
	return at, asks
}

func (s *stage) wantSent(l *Lease, want ...time.Duration) {
	s.Helper()
	if at, _ := s.sent(l); !slices.Equal(at, want) {
		s.Errorf("at %v: sent at %v, want %v", s.now(), at, want)
	}
}

// wantTold checks what the holder of l was told, ever.
func (s *stage) wantTold(l *Lease, expired, gone []time.Duration) {
	s.Helper()
	h := l.Holder.(*holder)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.expired, expired) || !slices.Equal(h.gone, gone) {
		s.Errorf("at %v: told Expired at %v and Gone at %v, want %v and %v", s.now(), h.expired, h.gone, expired, gone)
	}
}

func (s *stage) wantNotTold(l *Lease) {
	s.Helper()
	s.wantTold(l, nil, nil)
}

// at is a list of times.
func at(times ...time.Duration) []time.Duration { return times }

// trusted is for how long a confirmation of a lease of 30 s is trusted.
const trusted = 30*time.Second - 610*time.Millisecond
