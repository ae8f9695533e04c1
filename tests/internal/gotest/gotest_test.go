package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv("AS_GOTEST") != "" {
		main()
		return
	}
	leaktest.Main(m)
}

// The tests of a module of this name: each file is a package, and what it does in
// its first run and in those after it.
var world = map[string]string{
	"passed": `func TestIt(t *testing.T) {
		if !first(t) || flag.Lookup("test.parallel").Value.String() != "3" { t.Error("was run twice, or without its flags") }
		t.Log("not to be seen")
		fmt.Println("CHOSEN: by chance")
	}`,
	"failed":   `func TestIt(t *testing.T) { t.Error("wrong") }`,
	"unbuilt":  `func TestIt(t *testing.T) { undefined() }`,
	"unproven": `func TestIt(t *testing.T) { for range 6 { t.Run("part", func(t *testing.T) { t.Log("NOT PROVEN: the machine was busy") }) } }`,
	"quoting":  `func TestIt(t *testing.T) { t.Log("it says:\n    it_test.go:1: NOT PROVEN: the machine was busy") }`,
	"toomany": `func six(t *testing.T) { t.Log("NOT PROVEN: again") }
		func TestA(t *testing.T) { six(t) }; func TestB(t *testing.T) { six(t) }; func TestC(t *testing.T) { six(t) }
		func TestD(t *testing.T) { six(t) }; func TestE(t *testing.T) { six(t) }; func TestF(t *testing.T) { six(t) }`,
	"panicked": `func TestIt(t *testing.T) { stood("5s"); fmt.Print("so "); panic("oh") }`,
	"ended": `func TestIt(t *testing.T) { stood("5s"); t.Error("late") }
		func TestThat(t *testing.T) { os.Exit(1) }`,
	"detector":   `func TestIt(t *testing.T) { if first(t) { detector() }; if flag.Lookup("test.parallel").Value.String() != "3" { t.Error("flags") } }`,
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
	"stoodbefore": `func TestThat(t *testing.T) { stood("2s") }
		func TestIt(t *testing.T) { if first(t) { t.Error("wrong") } }`,
	"stoodpaused": `func TestIt(t *testing.T) { t.Parallel(); if first(t) { t.Error("wrong") } }
		func TestThat(t *testing.T) { stood("2s") }`,
	"stoodafter": `func TestIt(t *testing.T) { if first(t) { t.Error("wrong") } }
		func TestThat(t *testing.T) { time.Sleep(1100*time.Millisecond); stood("1s") }`,
	"stoodandfailed": `func TestIt(t *testing.T) { if first(t) { stood("5s"); t.Error("late") } }
		func TestThat(t *testing.T) { if first(t) { t.Error("wrong") } }`,
	"stoodquoting": `func TestIt(t *testing.T) { if first(t) { t.Error("it says:\nstandstill: this process stood still for 5s") } }`,
	"seeded": `func TestIt(t *testing.T) {
		file, seed := "seed", os.Getenv("REDLATCH_RANDOM_SEED")
		was, err := os.ReadFile(file)
		if err != nil {
			_ = os.WriteFile(file, []byte(seed), 0o600)
			stood("5s")
		}
		if err != nil || string(was) != seed || seed == "" { t.Errorf("with %q, after %q", seed, was) }
	}`,
	"costly": `func TestMain(m *testing.M) { m.Run(); fmt.Println("leaktest: of the processor the tests took 2s") }
		func TestIt(t *testing.T) {}`,
}

const helpers = `
import ("flag"; "fmt"; "os"; "strings"; "testing"; "time")

var _, _ = time.Now, flag.Lookup

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
	for name, run := range map[string]struct {
		packages string
		green    bool
		says     []string // in this order
		not      string
	}{
		"all passed":          {"passed", true, []string{"CHOSEN: by chance", "ok  \tgithub.com/x/passed\t", "1 package in ", "processor", " github.com/x/passed\n", "the tests took "}, "seen|FAILED|PROVEN"},
		"a test failed":       {"failed passed", false, []string{"wrong", "--- FAIL: TestIt", "FAIL\tgithub.com/x/failed", "FAILED: label"}, "once more|to be seen"},
		"one does not build":  {"passed unbuilt detector", false, []string{"undefined: undefined", "FAILED: label"}, "once more"},
		"nothing is proven":   {"unproven passed", true, []string{"NOT PROVEN: 1 (more than 5 fail)\n  github.com/x/unproven: TestIt/part: the machine was busy"}, "FAILED"},
		"somebody else said":  {"quoting", true, []string{"1 package"}, "PROVEN"},
		"too little is":       {"toomany", false, []string{"NOT PROVEN: 6 ", "FAILED: label"}, "once more"},
		"the detector failed": {"passed detector", true, []string{"the race detector failed, not a test: once more", "ok  \tgithub.com/x/detector"}, "FAILED|PROVEN"},
		"the detector failed in two packages, in one twice": {"detector twice", false, []string{"once more", "FAILED: label"}, "PROVEN"},
		"a test failed after the detector":                  {"thenfailed", false, []string{"once more", "wrong", "FAILED: label"}, "PROVEN"},
		"a test failed beside the detector":                 {"failed detector", false, []string{"FAILED: label"}, "once more"},
		"a test of the same package failed":                 {"anddetector", false, []string{"FAILED: label"}, "once more"},
		"the detector found a race before":                  {"raced", false, []string{"DATA RACE", "FAILED: label"}, "once more"},
		"another package ended without a word":              {"detector silent", false, []string{"FAILED: label"}, "once more"},
		"a process stood still": {
			"passed stood", true,
			[]string{"a process stood still while its tests failed: once more", "NOT PROVEN: 1 ", "github.com/x/stood: TestIt: the process stood still for 5.001s when it failed; it passes"},
			"FAILED|twice",
		},
		"it stood still twice":              {"stoodtwice", false, []string{"once more", "late", "FAILED: label"}, ""},
		"it stood still for a moment":       {"stoodalittle", false, []string{"late", "FAILED: label"}, "once more"},
		"it stood still before":             {"stoodbefore", false, []string{"wrong", "FAILED: label"}, "once more"},
		"it stood still before its turn":    {"stoodpaused", false, []string{"wrong", "FAILED: label"}, "once more"},
		"it stood still after it":           {"stoodafter", false, []string{"wrong", "FAILED: label"}, "once more"},
		"its test said that it stood still": {"stoodquoting", false, []string{"FAILED: label"}, "once more"},
		"it ended after it stood still":     {"ended", false, []string{"late", "FAILED: label"}, "once more"},
		"it is repeated by the same chance": {"seeded", true, []string{"once more", "NOT PROVEN: 1 "}, "FAILED"},
		"it stood still for one of two":     {"stoodandfailed", false, []string{"wrong", "FAILED: label"}, "once more"},
		"it panicked after it stood still":  {"panicked", false, []string{"panic: oh", "FAILED: label"}, "once more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, green := play(t, t.TempDir(), run.packages)
			rest := text
			for _, want := range run.says {
				_, after, ok := strings.Cut(rest, want)
				if rest = after; !ok {
					t.Errorf("it does not say %q where it is wanted:\n%s", want, text)
				}
			}
			if run.not != "" && regexp.MustCompile(run.not).MatchString(text) {
				t.Errorf("it says %q:\n%s", run.not, text)
			}
			if green != run.green {
				t.Errorf("green: %v, printed:\n%s", green, text)
			}
		})
	}
}

// play runs gotest with these packages of the world in dir, and returns what it
// prints and whether it is green.
func play(t *testing.T, dir, packages string, flags ...string) (text string, green bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), "module github.com/x\n\ngo 1.25\n")
	args := append([]string{"-C", dir, "-label", "label"}, flags...)
	args = append(args, "--", "-vet=off", "-count=1", "-parallel=3")
	for pkg := range strings.FieldsSeq(packages) {
		write(t, filepath.Join(dir, pkg, "it_test.go"), "package it\n"+helpers+world[pkg])
		args = append(args, "./"+pkg)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "AS_GOTEST=yes", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", unprovenFile+"="+filepath.Join(dir, "unproven.txt"))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// What is too much for one run is too much for several.
func TestTheUnprovenOfSeveralRunsCountTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs, for make check")
	}
	dir := t.TempDir()
	for n := range 6 {
		if text, green := play(t, dir, "unproven"); green != (n < 5) {
			t.Errorf("run %d: green: %v, printed:\n%s", n, green, text)
		}
	}
}

// The packages say what their tests take of the processor, and a run believes
// them. It does not fail for that: the machine may be slow.
func TestASlowMachineFailsNoRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs, for make check")
	}
	dir := t.TempDir()
	for _, test := range []struct {
		figure string
		says   bool
	}{{"1s", true}, {"1400ms", false}, {"0", false}} {
		text, green := play(t, dir, "costly", "-figure="+test.figure)
		if says := strings.Contains(text, "more than 1.5 times the figure"); !green || says != test.says || !strings.Contains(text, "took 2.0 s of processor time") {
			t.Errorf("%s: green: %v, printed:\n%s", test.figure, green, text)
		}
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
