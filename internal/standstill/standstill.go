// Package standstill notices when the process of a test stood still, because its
// machine was busy: a goroutine notes how late its own ticks come. A test that
// judges by time asks it before it blames the library.
package standstill

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/randtest"
)

const (
	beat = 10 * time.Millisecond

	// small is how late a tick may come without being noted.
	small = 20 * time.Millisecond

	// Notable is how long a standstill is that is worth a line of output. A test that
	// fails during one has proven nothing: tests/internal/gotest, which reads these
	// lines, runs it once more.
	Notable = time.Second
)

// Line is how a line of output begins that tells of a notable standstill. The
// duration follows.
const Line = "standstill: this process stood still for "

// A watch is a goroutine that notes its own delays.
type watch struct {
	tell func(time.Duration) // of a notable standstill

	mu   sync.Mutex
	last time.Time // the last tick
	gaps []gap     // in the order of their ends
}

type gap struct {
	end  time.Time
	long time.Duration
}

// tick notes the time since the last tick, and returns the standstill that ended
// now, or 0. Who asks in fake time is not heard.
func (w *watch) tick() (long time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.last) {
		return 0
	}
	if late := now.Sub(w.last) - beat; late > small {
		w.gaps = append(w.gaps, gap{now, late})
		long = late
	}
	w.last = now
	return long
}

// look ticks, and tells of what is notable.
func (w *watch) look() {
	if long := w.tick(); long >= Notable {
		w.tell(long)
	}
}

// since returns the longest standstill that ended after start, or 0.
func (w *watch) since(start time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.gaps) - 1; i >= 0 && w.gaps[i].end.After(start); i-- {
		longest = max(longest, w.gaps[i].long)
	}
	return longest
}

// process is the watch of this process.
var process = sync.OnceValue(func() *watch {
	out := os.Stdout // an Example has another one
	w := &watch{last: time.Now(), tell: func(long time.Duration) {
		fmt.Fprintf(out, "\n%s%v\n", Line, long.Round(time.Millisecond)) // a line of its own, whatever stood before it
	}}
	go func() {
		for {
			time.Sleep(beat)
			w.look()
		}
	}()
	return w
})

// Watch begins to watch this process, if nobody has, and notes a standstill that
// ends now. internal/leaktest calls it before and after the tests of a package.
func Watch() { process().look() }

// Since returns the longest standstill of this process that ended after start, the
// present one included. It is 0 if no tick was more than 20 ms late.
func Since(start time.Time) time.Duration {
	Watch()
	return process().since(start)
}

// Errorf fails a test because something took too long since start, unless this
// process itself stood still for longer than limit. Then the test has proven
// nothing, and says so.
func Errorf(tb testing.TB, start time.Time, limit time.Duration, format string, args ...any) {
	tb.Helper()
	Watch()
	process().errorf(tb, start, limit, format, args...)
}

func (w *watch) errorf(tb testing.TB, start time.Time, limit time.Duration, format string, args ...any) {
	tb.Helper()
	if still := w.since(start); still > limit {
		NotProven(tb, fmt.Sprintf("this process stood still for %v: ", still.Round(time.Millisecond))+format, args...)
		return
	}
	tb.Errorf(format, args...)
}

// NotProven says why a test that passes has proven nothing. tests/internal/gotest
// counts these, and go test does not believe such a result for another run of it,
// which has another seed.
func NotProven(tb testing.TB, format string, args ...any) {
	tb.Helper()
	_ = os.Getenv(randtest.SeedEnv)
	tb.Logf("NOT PROVEN: "+format, args...)
}
