package standstill

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A process that stood still for five seconds says so, and one that is a little
// late does not.
func TestAStandstillIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		start := time.Now()
		w := &watch{last: start, tell: func(d time.Duration) { told = append(told, d) }}
		after := func(d time.Duration) time.Time {
			time.Sleep(d)
			w.look()
			return time.Now()
		}
		if after(beat); w.since(start) != 0 {
			t.Errorf("in time, and %v are noted", w.since(start))
		}
		if after(beat + small); w.since(start) != 0 {
			t.Errorf("little late, and %v are noted", w.since(start))
		}
		if after(beat + 300*time.Millisecond); w.since(start) != 300*time.Millisecond || told != nil {
			t.Errorf("%v are noted, %v told; want 300ms and nothing", w.since(start), told)
		}
		end := after(beat + 5*time.Second)
		if got := w.since(start); got != 5*time.Second || !slices.Equal(told, []time.Duration{5 * time.Second}) {
			t.Errorf("%v are noted, %v told; want 5s", got, told)
		}
		after(beat + 40*time.Millisecond)
		if got := w.since(end); got != 40*time.Millisecond {
			t.Errorf("%v are noted since the long one ended, want 40ms", got)
		}
	})
}

// A recorder is a test that may fail.
type recorder struct {
	testing.TB

	errors, logs int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }
func (r *recorder) Logf(string, ...any)   { r.logs++ }

// A test that is late fails, unless the process stood still for longer than it
// allows.
func TestOnlyAStandstillExcuses(t *testing.T) {
	r := &recorder{}
	start := time.Now()
	w := &watch{}
	if w.errorf(r, start, 0, "late"); r.errors != 1 || r.logs != 0 {
		t.Errorf("%d errors and %d logs without a standstill, want an error", r.errors, r.logs)
	}
	w.gaps = append(w.gaps, gap{start.Add(time.Second), 80 * time.Millisecond})
	if w.errorf(r, start, 80*time.Millisecond, "late"); r.errors != 2 || r.logs != 0 {
		t.Errorf("%d errors and %d logs at the limit, want two errors", r.errors, r.logs)
	}
	if w.errorf(r, start, 79*time.Millisecond, "late"); r.errors != 2 || r.logs != 1 {
		t.Errorf("%d errors and %d logs beyond the limit, want that nothing is proven", r.errors, r.logs)
	}
}

// Who asks in fake time, which begins long ago, makes nobody believe in a
// standstill of years.
func TestFakeTimeIsNoStandstill(t *testing.T) {
	w := &watch{last: time.Now(), tell: func(d time.Duration) { t.Errorf("%v are told", d) }}
	start := w.last
	synctest.Test(t, func(*testing.T) { w.look() })
	w.look()
	if got := w.since(start); got > 10*time.Minute {
		t.Errorf("%v are noted", got)
	}
}
