package renew

import (
	"testing"
	"time"
	"unsafe"

	"github.com/redlatch/redlatch/internal/randtest"
)

// sleptAfter returns t as it looks when the machine has been suspended for d
// since: by the wall clock it is d longer ago, by the monotonic clock it is not.
// A time.Time keeps its monotonic reading in the second of its words.
func sleptAfter(t time.Time, d time.Duration) time.Time {
	t = t.Add(-d)
	*(*int64)(unsafe.Add(unsafe.Pointer(&t), 8)) += int64(d)
	return t
}

func TestSleptAfter(t *testing.T) {
	now := time.Now()
	past := sleptAfter(now.Add(-time.Second), time.Hour)
	if mono, wall := now.Sub(past), now.Round(0).Sub(past.Round(0)); mono != time.Second || wall != time.Hour+time.Second {
		t.Fatalf("1s ago, and an hour of sleep: %v by the monotonic clock, %v by the wall clock", mono, wall)
	}
}

func TestElapsedIsTheLarger(t *testing.T) {
	now := time.Now()
	ago := now.Add(-time.Second)
	for _, c := range []struct {
		name       string
		since, now time.Time
		want       time.Duration
	}{
		{"both agree", ago, now, time.Second},
		{"the wall clock is ahead", sleptAfter(ago, time.Minute), now, time.Second + time.Minute},
		{"the wall clock was set back", sleptAfter(ago, -time.Minute), now, time.Second},
		{"no monotonic reading then", ago.Round(0), now, time.Second},
		{"no monotonic reading now", ago, now.Round(0), time.Second},
		{"wall clocks only", sleptAfter(ago, time.Minute).Round(0), now.Round(0), time.Second + time.Minute},
		{"wall clocks only, set back", sleptAfter(ago, -time.Minute).Round(0), now.Round(0), time.Second - time.Minute},
		{"another zone", ago.In(time.FixedZone("", 3600)), now.UTC(), time.Second},
	} {
		if got := Elapsed(c.since, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := Elapsed(time.Time{}, now); got < 100*365*24*time.Hour {
		t.Errorf("since the zero time: %v, want longer than any lease", got)
	}
}

// Nothing overflows of the longest lease, which nobody sees the end of.
func TestTheLongestLeaseIsAsGoodAsForEver(t *testing.T) {
	var w Window
	now := time.Now()
	w.Confirm(now, MaxLease)
	const years = 365 * 24 * time.Hour
	if left := w.Left(now); left < 9*years || left > 20*years || w.End().Before(now.Add(9*years)) {
		t.Errorf("%v are left, until %v", left, w.End())
	}
}

func TestMargin(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		0:                      10 * time.Millisecond,
		100 * time.Millisecond: 12 * time.Millisecond,
		10 * time.Second:       210 * time.Millisecond,
		30 * time.Second:       610 * time.Millisecond,
	} {
		if got := Margin(lease); got != want {
			t.Errorf("Margin(%v) = %v, want %v", lease, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	var w Window
	now := time.Now()
	left := func(after, want time.Duration) {
		t.Helper()
		if got := w.Left(now.Add(after)); got != want {
			t.Errorf("after %v: %v left, want %v", after, got, want)
		}
	}
	if got := w.Left(now); got > 0 {
		t.Errorf("%v left before anything was confirmed", got)
	}
	w.Confirm(now, 30*time.Second)
	left(0, trusted)
	left(trusted, 0)
	left(time.Hour, trusted-time.Hour)

	w.Confirm(now.Add(10*time.Second), 30*time.Second)
	left(10*time.Second, trusted)

	// A shorter lease, or an older request, does not shorten it.
	w.Confirm(now.Add(11*time.Second), time.Second)
	w.Confirm(now.Add(5*time.Second), 30*time.Second)
	left(10*time.Second, trusted)
	if got, want := w.End(), now.Add(10*time.Second+trusted); !got.Equal(want) {
		t.Errorf("End = %v, want %v", got, want)
	}
	if got, want := w.Confirmed(), now.Add(11*time.Second); !got.Equal(want) {
		t.Errorf("Confirmed = %v, want the latest, %v", got, want)
	}

	w.Reset()
	if got := w.Left(now); got > 0 || !w.Confirmed().IsZero() {
		t.Errorf("%v left after Reset, confirmed %v", got, w.Confirmed())
	}
	w.Confirm(now, time.Second)
	left(0, 970*time.Millisecond)
}

func TestWindowEndsByTheWallClock(t *testing.T) {
	now := time.Now()
	var asleep, woken, setBack Window
	asleep.Confirm(sleptAfter(now, 29*time.Second), 30*time.Second)
	woken.Confirm(sleptAfter(now, time.Minute), 30*time.Second)
	setBack.Confirm(sleptAfter(now, -time.Minute), 30*time.Second)
	if got := asleep.Left(now); got != trusted-29*time.Second {
		t.Errorf("29s of sleep leave %v", got)
	}
	if got := woken.Left(now); got > 0 {
		t.Errorf("a minute of sleep leaves %v", got)
	}
	if got := setBack.Left(now); got != trusted {
		t.Errorf("a wall clock that was set back leaves %v, want %v", got, trusted)
	}
}

// A renewal after a suspend may be for less than what the window rests on, such as
// a long Lease nested in a hold of the watchdog's. It counts, though by the
// monotonic clock, which stood still, the old window would last longer.
func TestARenewalAfterASuspendCounts(t *testing.T) {
	now := time.Now()
	var w Window
	w.Confirm(sleptAfter(now.Add(-5*time.Second), 570*time.Second), 10*time.Minute)
	if left := w.Left(now); left <= 0 || left > 15*time.Second {
		t.Fatalf("%v left after the suspend", left)
	}
	w.Confirm(now, 30*time.Second)
	if left := w.Left(now); left != trusted {
		t.Errorf("%v left after the renewal, want %v", left, trusted)
	}
	w.Confirm(sleptAfter(now.Add(-time.Second), 20*time.Second), 30*time.Second) // sent before the next suspend, answered late
	if left := w.Left(now); left != trusted {
		t.Errorf("%v left after a late answer, want %v", left, trusted)
	}
}

// Whoever asks after a suspend until when a hold can be trusted is not told the
// time that the monotonic clock missed.
func TestTheEndOfAWindowKnowsOfASuspend(t *testing.T) {
	now := time.Now()
	var w Window
	w.Confirm(sleptAfter(now.Add(-5*time.Second), 20*time.Second), 30*time.Second)
	end := w.End()
	if mono, wall := end.Sub(now), end.Round(0).Sub(now.Round(0)); (mono-w.Left(now)).Abs() > time.Millisecond || (wall-w.Left(now)).Abs() > time.Millisecond {
		t.Errorf("the end is in %v by the monotonic clock and in %v by the wall clock, with %v left", mono, wall, w.Left(now))
	}
}

// Whatever is confirmed, in whatever order: trust only grows, and never beyond
// what one of the confirmations gives.
func TestWindowOnlyGrows(t *testing.T) {
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		var w Window
		var best, last time.Time
		start := time.Now()
		for range r.Between(1, 20) {
			sent := start.Add(r.Duration(0, time.Hour))
			lease := r.Duration(100*time.Millisecond, time.Hour)
			w.Confirm(sent, lease)
			if end := sent.Add(lease - Margin(lease)); end.After(best) {
				best = end
			}
			if sent.After(last) {
				last = sent
			}
			if !w.End().Equal(best) || !w.Confirmed().Equal(last) {
				t.Fatalf("End %v, Confirmed %v; want %v, %v", w.End(), w.Confirmed(), best, last)
			}
		}
	})
}
