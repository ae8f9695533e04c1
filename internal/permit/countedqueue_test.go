package permit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/worker"
)

// Between the answer that replicas do not know and the exchange that takes it back
// nobody gets the permits, whoever joins, leaves or releases others then, and
// however often that exchange has to be tried.
func TestPermitsInDoubtAreHandedToNobody(t *testing.T) {
	all := New(Options{Server: &request.Server{Options: request.Options{Outage: time.Minute}, Pool: worker.New(0), Done: make(chan struct{}), Over: make(chan struct{})}})
	s := all.Counted("name", 0)
	q := all.counted.get(&s)
	q.Start(all.Server, s.keys, func() {}) // the work is done by this test
	ended, end := context.WithCancel(t.Context())
	end()
	join := func() *countedWaiter {
		w := all.counted.waiter(countedWant{n: 1}, false)
		w.Ctx = t.Context()
		if err := q.join(w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	short := errors.New("too few replicas")
	first := join()
	x, _ := q.next()
	q.answered(x, 1, short)
	if err := q.Await(first, nil); !errors.Is(err, short) {
		t.Errorf("told %v", err)
	}
	others := []*countedWaiter{join(), join()}
	for give := 2; give < 5; give++ {
		q.give(1, false)
		leaver := join()
		leaver.Ctx = ended
		if err := q.Await(leaver, func(why error) error { return why }); !errors.Is(err, context.Canceled) {
			t.Errorf("told %v to somebody who has come last, and left", err)
		}
		q.settleLocked()
		x, _ = q.next()
		if x.hand.n != give || len(x.wants) != 2 {
			t.Errorf("gives %d and asks %v, want %d for 2", x.hand.n, x.wants, give)
		}
		q.lost(x, request.ErrUnavailable)
	}
	for _, w := range others {
		if w.Gone {
			t.Fatal("handed out")
		}
	}
	x, _ = q.next()
	q.answered(x, 2, nil)
	q.give(1, false)
	for _, w := range others {
		if err := q.Await(w, nil); err != nil {
			t.Error(err)
		}
	}
	if x, _ = q.next(); x.hand.n != 1 || len(x.wants) != 0 {
		t.Errorf("gives %d and asks %v in the end", x.hand.n, x.wants)
	}
}
