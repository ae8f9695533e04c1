package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/internal/standstill"
)

// A run is what became of one `go test`.
type run struct {
	ok       bool
	packages map[string]*pkg // by import path
	broken   bool            // something failed that is no package, such as a build
	unproven []unproven
	all      time.Duration // of the processor: the tests that ran, and building them
}

// A pkg is a package whose tests have begun.
type pkg struct {
	path     string
	wall     time.Duration
	took     time.Duration // of the processor; go test repeats what an earlier run said, when it believes its result
	cached   bool
	failed   bool
	output   []string         // that of no test
	tests    map[string]*test // those that have not passed
	order    []*test
	stood    []stand
	detector bool // the race detector itself ended the program
	raced    bool // it found a data race
	ended    bool // all tests have had their turn
}

// A test is one that runs or has failed, a subtest or a whole one.
type test struct {
	name   string
	begin  time.Time // of what it does, after it has waited for its turn
	end    time.Time
	failed bool
	output []string
}

// An unproven test has passed without having proven anything.
type unproven struct{ pkg, test, why string }

func (u unproven) String() string { return u.pkg + ": " + u.test + ": " + u.why }

// A stand is a standstill of the process of a package.
type stand struct{ begin, end time.Time }

// An event is a line of `go test -json`.
type event struct {
	Time          time.Time
	Action        string
	Package, Test string
	Output        string
	Elapsed       float64 // seconds
	FailedBuild   string  // what did not build
}

// execute runs `go test ARG...` and prints what it says as it says it. What is
// left to chance begins with the seed.
func execute(dir, label, seed string, args []string) (*run, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...) //nolint:gosec // the arguments of make
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), leaktest.Measure+"=yes", randtest.SeedEnv+"="+seed)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := follow(out, os.Stdout, label)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	r.ok = err == nil
	r.all = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// silence is how long there may be nothing to print.
const silence = 20 * time.Second

// follow reads the events of `go test -json`, and prints what matters of them.
func follow(in io.Reader, out io.Writer, label string) *run {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for s := bufio.NewReader(in); ; {
			line, err := s.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	r := &run{packages: map[string]*pkg{}}
	begin := time.Now()
	quiet := time.NewTicker(silence)
	defer quiet.Stop()
	for {
		select {
		case <-quiet.C:
			fmt.Fprintf(out, "... %s: still at it after %.0f s\n", label, time.Since(begin).Seconds())
		case line, ok := <-lines:
			if !ok {
				return r
			}
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "build-output", Output: string(line)}
			}
			if text := r.note(e); text != "" {
				fmt.Fprint(out, text)
				quiet.Reset(silence)
			}
		}
	}
}

// note takes an event into account, and returns what is to be printed now.
func (r *run) note(e event) string {
	switch {
	case e.Action == "build-output":
		return e.Output
	case e.Action == "build-fail":
		r.broken = true
		return ""
	case e.Package == "":
		return ""
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{path: e.Package, tests: map[string]*test{}}
		r.packages[e.Package] = p
	}
	if e.FailedBuild != "" {
		r.broken = true
	}
	if e.Action == "output" {
		return r.output(p, e)
	}
	if e.Test != "" {
		p.step(e)
		return ""
	}
	p.wall += time.Duration(e.Elapsed * float64(time.Second))
	switch e.Action {
	case "fail":
		p.failed = true
		return p.report()
	case "skip": // it has no tests
		delete(r.packages, e.Package)
	}
	return ""
}

// name is the package in this repository.
func (p *pkg) name() string { return strings.TrimPrefix(p.path, "github.com/redlatch/redlatch/") }

// step is the begin or the end of a test.
func (p *pkg) step(e event) {
	switch t := p.test(e); e.Action {
	case "run", "cont":
		t.begin = e.Time
	case "pass", "skip":
		delete(p.tests, e.Test)
		p.order = slices.DeleteFunc(p.order, func(o *test) bool { return o == t })
	case "fail":
		t.failed = true
	}
}

func (p *pkg) test(e event) *test {
	t := p.tests[e.Test]
	if t == nil {
		t = &test{name: e.Test, begin: e.Time}
		p.tests[e.Test] = t
		p.order = append(p.order, t)
	}
	return t
}

// notProven is how a test says so: with Logf, see internal/standstill.
var notProven = regexp.MustCompile(`^ {4}[^ ]+\.go:\d+: NOT PROVEN: (.*)\n$`)

// whole is the test that a subtest is part of.
func whole(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

// output keeps a line of a package or of one of its tests, and returns it if it is
// to be printed now.
func (r *run) output(p *pkg, e event) string {
	if long, ok := strings.CutPrefix(e.Output, standstill.Line); ok {
		if d, err := time.ParseDuration(strings.TrimSpace(long)); err == nil {
			p.stood = append(p.stood, stand{e.Time.Add(-d), e.Time})
		}
	}
	p.detector = p.detector || strings.HasPrefix(e.Output, "ThreadSanitizer: CHECK failed")
	p.raced = p.raced || strings.HasPrefix(e.Output, "WARNING: DATA RACE")
	if said := notProven.FindStringSubmatch(e.Output); said != nil {
		r.unproven = append(r.unproven, unproven{p.name(), e.Test, said[1]})
	}
	if strings.HasPrefix(e.Output, "CHOSEN: ") {
		return e.Output // what to repeat this run with
	}
	if e.Test != "" {
		t := p.test(e)
		t.output = append(t.output, e.Output)
		if strings.HasPrefix(strings.TrimLeft(e.Output, " "), "--- FAIL: ") {
			t.end = e.Time // go test holds back the event
		}
		return ""
	}
	took, isTook := strings.CutPrefix(e.Output, leaktest.Took)
	switch {
	case isTook:
		if d, err := time.ParseDuration(strings.TrimSpace(took)); err == nil {
			p.took += d
		}
		return ""
	case e.Output == "FAIL\n":
		p.ended = true
	case e.Output == "PASS\n", strings.HasPrefix(e.Output, "coverage: "):
		return ""
	case strings.HasPrefix(e.Output, "ok  \t"):
		p.cached = strings.Contains(e.Output, "(cached)")
		if strings.Contains(e.Output, "[no tests to run]") {
			return ""
		}
		return e.Output
	}
	p.output = append(p.output, e.Output)
	return ""
}

// report is all that a failed package said, but for the tests that passed.
func (p *pkg) report() string {
	var all strings.Builder
	for _, t := range p.order {
		for _, line := range t.output {
			if !strings.HasPrefix(line, "=== ") {
				all.WriteString(line)
			}
		}
	}
	for _, line := range p.output {
		all.WriteString(line)
	}
	return all.String()
}

// tests is what the tests took of the processor, and building what the rest took.
// What go test believed took nothing now.
func (r *run) tests() (sum, now time.Duration) {
	for _, p := range r.packages {
		sum += p.took
		if !p.cached {
			now += p.took
		}
	}
	return sum, now
}

// table is the packages that took the longest.
func (r *run) table() string {
	all := slices.SortedFunc(maps.Values(r.packages), func(a, b *pkg) int { return cmp.Compare(b.wall, a.wall) })
	var text strings.Builder
	text.WriteString("the slowest packages:\n      wall  processor\n")
	for _, p := range all[:min(slowest, len(all))] {
		fmt.Fprintf(&text, "%8.1f s %8.1f s  %s\n", p.wall.Seconds(), p.took.Seconds(), p.path)
	}
	return text.String()
}
