package redlatch

import (
	"errors"
	"testing"

	"github.com/redlatch/redlatch/internal/request"
)

// Between the answer that replicas do not know and the exchange that takes it back
// nobody gets the permits, whoever joins, leaves or releases others then, and
// however often that exchange has to be tried.
func TestPermitsInDoubtAreHandedToNobody(t *testing.T) {
	c := &Client{server: &request.Server{Done: make(chan struct{}), Over: make(chan struct{})}}
	ln := c.permitLines.get(&Semaphore{c: c, name: "name"})
	ln.working = true // by this test
	join := func() *permitWaiter {
		w := c.permitLines.waiter(1, false)
		if err := ln.join(w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	short := &AckError{}
	first := join()
	x, _ := ln.next()
	ln.answered(x, 1, short)
	if err := <-first.told; !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("told %v", err)
	}
	others := []*permitWaiter{join(), join()}
	for give := 2; give < 5; give++ {
		ln.give(1)
		if leaver := join(); !ln.leave(leaver) {
			t.Error("told somebody who has come last")
		}
		x, _ = ln.next()
		if x.give != give || len(x.wants) != 2 {
			t.Errorf("gives %d and asks %v, want %d for 2", x.give, x.wants, give)
		}
		ln.lost(x, ErrUnavailable)
	}
	for _, w := range others {
		if len(w.told) > 0 {
			t.Fatal("handed out")
		}
	}
	x, _ = ln.next()
	ln.answered(x, 2, nil)
	ln.give(1)
	for _, w := range others {
		if err := <-w.told; err != nil {
			t.Error(err)
		}
	}
	if x, _ = ln.next(); x.give != 1 || len(x.wants) != 0 {
		t.Errorf("gives %d and asks %v in the end", x.give, x.wants)
	}
}
