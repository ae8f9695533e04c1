package adapter

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
)

func TestListener(t *testing.T) {
	var heard []string
	var l *Listener
	l = NewListener(func(n driver.Notice) {
		switch {
		case n.Subscribed:
			heard = append(heard, "confirmed")
		default:
			heard = append(heard, n.Payload)
		}
		if n.Payload == "last" {
			l.Stop()
		}
	})
	l.Message("before it was confirmed")
	l.Confirmed(false) // who joins late is told once, whoever comes first
	l.Message("a")
	l.Confirmed(true)
	l.Message("last")
	l.Message("late")
	l.Confirmed(true)
	want := []string{"confirmed", "before it was confirmed", "a", "confirmed", "last"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestListenerIsNotCalledConcurrently(t *testing.T) {
	heard := 0 // the race detector watches
	l := NewListener(func(driver.Notice) { heard++ })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l.Confirmed(true)
			l.Message(strconv.Itoa(i))
		})
	}
	wg.Wait()
	if heard != 16 {
		t.Errorf("heard %d notices, want 16", heard)
	}
}

func TestListenersAreReplaced(t *testing.T) {
	a, b, c, d := NewListener(nil), NewListener(nil), NewListener(nil), NewListener(nil)
	abc := Listeners{}.With(a).With(b).With(c)
	abcd := abc.With(d)
	abca, ac := abc.With(a), abc.Without(b)
	for _, x := range []struct{ got, want Listeners }{
		{abc, Listeners{a, b, c}},
		{abcd, Listeners{a, b, c, d}},
		{abca, Listeners{a, b, c, a}},
		{ac, Listeners{a, c}},
		{ac.Without(a).Without(c).Without(d), Listeners{}},
	} {
		if !slices.Equal(x.got, x.want) {
			t.Errorf("%v, want %v", x.got, x.want)
		}
	}
}

func TestPause(t *testing.T) {
	for failures, most := range map[int]time.Duration{0: 20 * time.Millisecond, 1: 40 * time.Millisecond, 5: 640 * time.Millisecond, 6: time.Second, 1000: time.Second} {
		for range 100 {
			if d := Pause(failures); d < most/2 || d > most {
				t.Fatalf("after %d failures the pause is %v, want up to %v", failures, d, most)
			}
		}
	}
}
