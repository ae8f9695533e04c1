package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("AS_GOTEST") != "" {
		main()
		return
	}
	leaktest.Main(m)
}

// The tests of a module of this name: each file is a package, and what it does in its first run and in those after it.
var world = map[string]string{
	"passed":     `func TestIt(t *testing.T) { t.Log("not to be seen"); fmt.Println("CHOSEN: by chance") }`,
	"failed":     `func TestIt(t *testing.T) { t.Error("wrong") }`,
	"unbuilt":    `func TestIt(t *testing.T) { undefined() }`,
	"unproven":   `func TestIt(t *testing.T) { t.Log("NOT PROVEN: the machine was busy") }`,
	"panicked":   `func TestIt(t *testing.T) { stood("5s"); panic("oh") }`,
	"sixtimes":   `func TestIt(t *testing.T) { for range 6 { t.Log("NOT PROVEN: again") } }`,
	"detector":   `func TestIt(t *testing.T) { if first(t) { detector() } }`,
	"twice":      `func TestIt(t *testing.T) { detector() }`,
	"thenfailed": `func TestIt(t *testing.T) { if first(t) { detector() }; t.Error("wrong") }`,
	"raced":      `func TestIt(t *testing.T) { fmt.Println("WARNING: DATA RACE"); detector() }`,
	"silent":     `func TestIt(t *testing.T) { os.Exit(3) }`,
	"anddetector": `func TestIt(t *testing.T) { t.Error("wrong") }
		func TestThat(t *testing.T) { detector() }`,
	"stood": `func TestIt(t *testing.T) { t.Run("part", func(t *testing.T) { if first(t) { stood("5.001s"); t.Error("late") } }) }
		func TestThat(t *testing.T) { if !first(t) { t.Error("was run twice") } }`,
	"stoodtwice":   `func TestIt(t *testing.T) { stood("5s"); t.Error("late") }`,
	"stoodalittle": `func TestIt(t *testing.T) { if first(t) { stood("999ms"); t.Error("late") } }`,
	"stoodbefore": `func TestThat(t *testing.T) { stood("2s"); time.Sleep(10*time.Millisecond) }
		func TestIt(t *testing.T) { time.Sleep(2*time.Second); if first(t) { t.Error("wrong") } }`,
	"stoodandfailed": `func TestIt(t *testing.T) { if first(t) { stood("5s"); t.Error("late") } }
		func TestThat(t *testing.T) { time.Sleep(7*time.Second); if first(t) { t.Error("wrong") } }`,
}

const helpers = `
import ("fmt"; "os"; "strings"; "testing"; "time")

var _ = time.Now

func first(t *testing.T) bool {
	file := strings.ReplaceAll(t.Name(), "/", ".")
	_, err := os.Stat(file)
	_ = os.WriteFile(file, nil, 0o600)
	return err != nil
}
func detector()          { fmt.Println("ThreadSanitizer: CHECK failed: tsan_rtl.cpp:282"); os.Exit(66) }
func stood(long string) { fmt.Println("\nstandstill: this process stood still for " + long) }
`

// What a run makes of what fails in it.
func TestOnlyWhatProvesNothingIsRunAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs, for make check")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]struct {
		packages string
		green    bool
		says     []string // in this order
		not      string
	}{
		"all passed":          {"passed", true, []string{"CHOSEN: by chance", "ok  \tgithub.com/x/passed\t", "1 package in ", "processor", " github.com/x/passed\n", "the tests took "}, "seen|FAILED|PROVEN"},
		"a test failed":       {"failed passed", false, []string{"wrong", "--- FAIL: TestIt", "FAIL\tgithub.com/x/failed", "FAILED: label"}, "once more|to be seen"},
		"one does not build":  {"passed unbuilt detector", false, []string{"undefined: undefined", "FAILED: label"}, "once more"},
		"nothing is proven":   {"unproven passed", true, []string{"NOT PROVEN: 1 (more than 5 fail)\n  unproven: TestIt: the machine was busy"}, "FAILED"},
		"too little is":       {"sixtimes", false, []string{"NOT PROVEN: 6 ", "FAILED: label"}, "once more"},
		"the detector failed": {"passed detector", true, []string{"the race detector failed, not a test: once more", "ok  \tgithub.com/x/detector"}, "FAILED|PROVEN"},
		"the detector failed in two packages, in one twice": {"detector twice", false, []string{"once more", "FAILED: label"}, "PROVEN"},
		"a test failed after the detector":                  {"thenfailed", false, []string{"once more", "wrong", "FAILED: label"}, "PROVEN"},
		"a test failed beside the detector":                 {"failed detector", false, []string{"FAILED: label"}, "once more"},
		"a test of the same package failed":                 {"anddetector", false, []string{"FAILED: label"}, "once more"},
		"the detector found a race before":                  {"raced", false, []string{"DATA RACE", "FAILED: label"}, "once more"},
		"another package ended without a word":              {"detector silent", false, []string{"FAILED: label"}, "once more"},
		"a process stood still": {
			"passed stood", true,
			[]string{"a process stood still while its tests failed: once more", "NOT PROVEN: 1 ", "stood: TestIt: the process stood still for 5.001s when it failed; it passes"},
			"FAILED|twice",
		},
		"it stood still twice":             {"stoodtwice", false, []string{"once more", "late", "FAILED: label"}, ""},
		"it stood still for a moment":      {"stoodalittle", false, []string{"late", "FAILED: label"}, "once more"},
		"it stood still before":            {"stoodbefore", false, []string{"wrong", "FAILED: label"}, "once more"},
		"it stood still for one of two":    {"stoodandfailed", false, []string{"wrong", "FAILED: label"}, "once more"},
		"it panicked after it stood still": {"panicked", false, []string{"panic: oh", "FAILED: label"}, "once more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module github.com/x\n\ngo 1.25\n")
			args := []string{"-C", dir, "-label", "label", "-vet=off", "-count=1"}
			for pkg := range strings.FieldsSeq(run.packages) {
				write(t, filepath.Join(dir, pkg, "it_test.go"), "package it\n"+helpers+world[pkg])
				args = append(args, "./"+pkg)
			}
			cmd := exec.Command(self, append(args[:4:4], append([]string{"--"}, args[4:]...)...)...)
			cmd.Env = append(os.Environ(), "AS_GOTEST=yes", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
			text, err := cmd.CombinedOutput()
			rest := string(text)
			for _, want := range run.says {
				_, after, ok := strings.Cut(rest, want)
				if rest = after; !ok {
					t.Errorf("it does not say %q where it is wanted:\n%s", want, text)
				}
			}
			if run.not != "" && regexp.MustCompile(run.not).Match(text) {
				t.Errorf("it says %q:\n%s", run.not, text)
			}
			if (err == nil) != run.green {
				t.Errorf("err = %v, printed:\n%s", err, text)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A run that takes far more than the figure may have met a busy machine; the second in a row has not.
func TestTheSecondRunAboveTheFigureFails(t *testing.T) {
	over := filepath.Join(t.TempDir(), "over")
	keeps := func(processor time.Duration, want bool) {
		t.Helper()
		r := &run{packages: map[string]*pkg{"a": {took: processor / 2}, "b": {took: processor / 2, cached: true}}}
		if got, err := (budget{time.Minute, over}).keeps(r); got != want || err != nil {
			t.Errorf("%v: %v, %v; want %v", processor, got, err, want)
		}
	}
	keeps(90*time.Second, true)
	keeps(91*time.Second, true)
	keeps(91*time.Second, false)
	keeps(91*time.Second, false)
	keeps(89*time.Second, true)
	keeps(91*time.Second, true)
}
