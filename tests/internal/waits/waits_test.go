package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What is listed is what a test can be kept waiting by, and the test that is kept.
func TestWhatIsDoneInRealTimeIsListed(t *testing.T) {
	const example = "./testdata/example"
	tests, err := list([]string{example})
	if err != nil {
		t.Fatal(err)
	}
	const no = 0
	for i, want := range []struct {
		name, on string
		longest  time.Duration
		what     string
	}{
		{"TestInAHelper", inRealTime, time.Minute, "eventually(t, func() bool { return true }): within(time.Minute, ok) (example_test.go:25)"},
		{"TestAContext", inRealTime, 3 * time.Second, "wait(ctx) (example_test.go:42)"},
		{"TestByItself", inRealTime, 2 * time.Second, "within(2*time.Second, func() bool { return true }) (example_test.go:38)"},
		{"TestAProgram", withServers, no, "events, without a limit of its own"},
		{"TestAProgramInATable", withServers, no, "events, without a limit of its own"},
		{"TestAnyLength", inRealTime, unknown, "time.Sleep(time.Duration(len(t.Name()))) (example_test.go:64)"},
	} {
		if i >= len(tests) {
			t.Errorf("%s is missing", want.name)
			continue
		}
		got := tests[i]
		if !strings.HasSuffix(got.pkg, example[1:]) || got.name != want.name || got.on != want.on || got.longest.d != want.longest || got.longest.String() != want.what {
			t.Errorf("got %s %s (%s) %v %s,\nwant %s (%s) %v %s", got.pkg, got.name, got.on, got.longest.d, got.longest, want.name, want.on, want.longest, want.what)
		}
	}
	for _, got := range tests[min(len(tests), 6):] {
		t.Errorf("%s is listed: %s", got.name, got.longest)
	}
}

func TestWhatDoesNotBuildIsAnError(t *testing.T) {
	if _, err := list([]string{"./nowhere"}); err == nil || !strings.Contains(err.Error(), "do not build") {
		t.Errorf("got %v", err)
	}
}
