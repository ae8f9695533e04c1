package request

import (
	"errors"
	"testing"
	"time"
)

// What counts is when the caller came, and since when an answer is owed: whichever
// was later.
func TestACallersTimeBeginsWhenItComesOrWhenTheServerFallsSilent(t *testing.T) {
	s := &Server{Options: Options{Outage: 10 * time.Second, Length: 30 * time.Second}}
	silent, why := time.Now(), errors.New("no memory")
	for came, want := range map[time.Duration]time.Duration{-time.Hour: 10 * time.Second, 0: 10 * time.Second, 7 * time.Second: 17 * time.Second} {
		var refusals Refusals
		since := silent.Add(came)
		if again, err := s.Look("", &refusals, since, silent); err != nil || again != silent.Add(s.Outage) {
			t.Errorf("nothing has failed: look again at %v, %v", again, err)
		}
		for tries := range 20 { // it does not begin anew with each of them
			refusals.Note(why, silent.Add(time.Duration(tries)*time.Second/2))
		}
		end := silent.Add(want)
		if again, err := s.Look("", &refusals, since, end.Add(-time.Millisecond)); err != nil || again != end {
			t.Errorf("one that came %v after the server had fallen silent looks again at %v, %v; want %v", came, again, err, end)
		}
		if _, err := s.Look("", &refusals, since, end); !errors.Is(err, ErrUnavailable) || !errors.Is(err, why) {
			t.Errorf("one that came %v after the server had fallen silent: %v", came, err)
		}
		refusals.Over()
		if _, err := s.Look("", &refusals, since, end); err != nil {
			t.Errorf("the server has answered: %v", err)
		}
	}
}

// A caller that waits at one of the locks that another one wants together learns
// what becomes of that request.
func TestARequestForSeveralIsNotedForEach(t *testing.T) {
	why := errors.New("no memory")
	var a, b Refusals
	now := time.Now()
	b.Note(why, now.Add(-time.Minute))
	both := AllRefusals([]*Refusals{&a, &b})
	both.Note(why, now)
	if since, _ := both.failing(); !since.Equal(now.Add(-time.Minute)) {
		t.Errorf("what one of them has noted before counts for the request: %v, want a minute before %v", since, now)
	}
	for i, refusals := range []*Refusals{both, &a, &b} {
		if !errors.Is(refusals.Why(), why) {
			t.Errorf("%d: %v", i, refusals.Why())
		}
	}
	both.Over()
	for i, refusals := range []*Refusals{both, &a, &b} {
		if refusals.Why() != nil {
			t.Errorf("%d, after the answer: %v", i, refusals.Why())
		}
	}
}
