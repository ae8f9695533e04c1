// Package leaktest finds the goroutines that tests leave behind.
package leaktest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/standstill"
)

// limit is how long a goroutine may take to end. Only a leak waits for it.
const limit = 20 * time.Second

// Main is the TestMain of a package whose tests leave no goroutine. It runs them
// and ends the process. A goroutine in whose stack one of the functions of other
// people stands, such as "example.com/pool.(*Pool).redial", is none of ours.
func Main(m *testing.M, functions ...string) {
	os.Exit(Run(m.Run, functions...))
}

const (
	// Measure is an environment variable: if it is set, Run says what the tests took.
	// tests/internal/gotest sets it.
	Measure = "REDLATCH_MEASURE"

	// Took is how the line begins that says it. A duration follows.
	Took = "leaktest: of the processor the tests took "
)

// Run is Main for a package that does something after its tests, too. It returns
// the code to end with. Meanwhile internal/standstill watches the process.
func Run(run func() int, functions ...string) (code int) {
	standstill.Watch()
	before := running()
	code = run()
	standstill.Watch()
	if os.Getenv(Measure) != "" {
		defer func() { fmt.Printf("%s%v\n", Took, processor()) }()
	}
	if code == 0 {
		if left := leftSince(before, limit, functions); left != "" {
			fmt.Fprint(os.Stderr, text(left))
			return 1
		}
	}
	return code
}

// Check fails a test that leaves a goroutine. What the test cleans up later, it
// may leave until then. No other test may run beside it.
func Check(tb testing.TB, functions ...string) {
	tb.Helper()
	before := running()
	tb.Cleanup(func() {
		if left := leftSince(before, limit, functions); left != "" && !tb.Failed() {
			tb.Error(text(left))
		}
	})
}

func text(left string) string {
	return fmt.Sprintf("leaktest: goroutines were left, %v after the tests:\n\n%s", limit, left)
}

// signals is the goroutine of package os/signal, which it keeps once somebody has
// asked for a signal: go test -fuzz does.
const signals = "os/signal.signal_recv"

// leftSince returns the stacks of the goroutines that were not there before and do
// not end within the limit.
func leftSince(before map[string]string, limit time.Duration, functions []string) string {
	functions = append(slices.Clip(functions), signals)
	end := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		var left []string
		for id, stack := range running() {
			ignored := slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stack, "\n"+f+"(") })
			if _, old := before[id]; !old && !ignored {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			slices.Sort(left)
			return strings.Join(left, "\n\n")
		}
		time.Sleep(pause)
	}
}

// running returns the stacks of all goroutines by their first words: "goroutine
// 7".
func running() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for stack := range bytes.SplitSeq(bytes.TrimSpace(buf), []byte("\n\n")) {
		id, _, _ := strings.Cut(string(stack), " [")
		all[id] = string(stack)
	}
	return all
}
