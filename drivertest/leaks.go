package drivertest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// leaks finds the goroutines that the tests of one Run leave, while others run
// beside them: whatever a test starts carries its label, and what that starts,
// too.
type leaks struct{ run string }

var runs atomic.Int64

// watchLeaks checks, when t and its subtests are over, that nothing is left of
// those that were marked. What ends by itself within patience is no leak.
func watchLeaks(t *testing.T) *leaks {
	t.Helper()
	l := &leaks{fmt.Sprint(t.Name(), " ", runs.Add(1))}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		left := l.left()
		for end := time.Now().Add(patience); left != "" && time.Now().Before(end); left = l.left() {
			time.Sleep(20 * time.Millisecond)
		}
		if left != "" {
			t.Errorf("goroutines were left, %v after the tests:\n\n%s", patience, left)
		}
	})
	return l
}

const label = "drivertest"

// mark labels the goroutine of a subtest, which ends with it.
func (l *leaks) mark(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, l.run, "test", t.Name())))
}

// left returns the stacks of all goroutines of the run.
func (l *leaks) left() string {
	var all, left strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q:%q", label, l.run)) {
			fmt.Fprintln(&left, stack)
		}
	}
	return left.String()
}
