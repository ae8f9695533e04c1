package lastuser

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type door struct {
	closed int
	takes  time.Duration
	err    error
}

func (d *door) Close() error {
	time.Sleep(d.takes)
	d.closed++
	return d.err
}

// What somebody still uses stays open, and what nobody uses is closed once.
func TestOnlyTheLastUserCloses(t *testing.T) {
	jammed := errors.New("jammed")
	d := &door{err: jammed}
	first, second := Begin(d), Begin(d)
	other := Begin(&door{})
	if err := first(time.Minute); err != nil || d.closed != 0 {
		t.Errorf("while somebody uses it: %v, closed %d times", err, d.closed)
	}
	if err := second(time.Minute); !errors.Is(err, jammed) || d.closed != 1 {
		t.Errorf("by the last: %v, closed %d times", err, d.closed)
	}
	if err := other(time.Minute); err != nil {
		t.Error(err)
	}
	if err := Begin(d)(time.Minute); !errors.Is(err, jammed) || d.closed != 2 {
		t.Errorf("by a later one: %v, closed %d times", err, d.closed)
	}
	if len(users.of) != 0 {
		t.Errorf("%d are remembered", len(users.of))
	}
}

// Two of a kind that Go cannot compare are not taken for the same, and crash
// nobody.
func TestWhatCannotBeComparedIsClosed(t *testing.T) {
	closed := 0
	hall := struct{ io.Closer }{room{func() { closed++ }}} // of a type that can be compared, with a value that cannot
	if err := Begin(hall)(time.Minute); err != nil || closed != 1 {
		t.Errorf("%v, closed %d times", err, closed)
	}
	closed = 0
	a, b := Begin(room{func() { closed++ }}), Begin(room{func() { closed++ }})
	if err := errors.Join(a(time.Minute), b(time.Minute)); err != nil || closed != 2 {
		t.Errorf("%v, closed %d times", err, closed)
	}
}

type room struct{ f func() }

func (r room) Close() error { r.f(); return nil }

func TestNobodyWaitsForLongerThanHeWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{takes: time.Hour}
		start := time.Now()
		if err := Begin(d)(time.Second); !errors.Is(err, ErrClosing) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); d.closed != 1 {
			t.Errorf("closed %d times", d.closed)
		}
	})
}
