// Command gotest runs `go test` for make: gotest [FLAG...] ARG... runs `go test
// ARG...`.
//
// It prints a line for each package that has tests, and all that a failed test
// says. At the end it prints the packages that took the longest and what they took
// of the processor.
//
// All that is left to chance (see internal/randtest) begins with one seed, which
// is another one in each run.
//
// A failure says nothing about the library if the race detector itself ended the
// program, or if the process of the test stood still meanwhile (see
// internal/standstill). If nothing failed in another way, what failed so runs once
// more, with the same seed. A test that failed for a standstill and passes then
// counts as NOT PROVEN, as do the tests that say so themselves. They are listed at
// the end, each once, and more than a few fail the run. If the environment
// variable REDLATCH_UNPROVEN names a file, the tests that it lists count, too, and
// the run adds its own.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/randtest"
)

const (
	// mostUnproven is how many tests of a run may have proven nothing.
	mostUnproven = 5

	// slowest is how many packages are listed at the end.
	slowest = 10
)

func main() {
	dir := flag.String("C", ".", "the `directory` to run in")
	label := flag.String("label", "go test", "what the run is called")
	most := flag.Duration("figure", 0, "the `processor` time that the tests are to take; 0: any")
	flag.Parse()
	ok, err := gotest(*dir, *label, figure(*most), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	if err != nil || !ok {
		fmt.Printf("FAILED: %s\n", *label)
		os.Exit(1)
	}
}

func gotest(dir, label string, f figure, args []string) (ok bool, err error) {
	start := time.Now()
	seed := cmp.Or(os.Getenv(randtest.SeedEnv), fmt.Sprint(rand.Uint64())) //nolint:gosec // chance
	first, err := execute(dir, label, seed, args)
	if err != nil {
		return false, err
	}
	if ok = first.ok; !ok {
		if ok, err = first.again(dir, label, seed, args); err != nil {
			return false, err
		}
	}
	if !ok {
		fmt.Printf("%s=%s repeats its chance, but for tests that name a variable of their own\n", randtest.SeedEnv, seed)
	}
	fmt.Printf("%s: %s in %s; %s", label, plural(len(first.packages), "package"), seconds(time.Since(start)), first.table())
	few, err := first.tellUnproven(os.Getenv(unprovenFile))
	return ok && few, errors.Join(err, f.tell(first, ok))
}

// unprovenFile is the environment variable that names a file of tests that have
// proven nothing: those of several runs.
const unprovenFile = "REDLATCH_UNPROVEN"

// tellUnproven lists the tests that have proven nothing, and says whether they are
// few, with those that the file lists.
func (r *run) tellUnproven(file string) (few bool, err error) {
	var lines []string
	seen := map[string]bool{}
	for _, u := range r.unproven {
		if test := u.pkg + whole(u.test); !seen[test] { // one standstill may meet much that a test does at the same time
			seen[test] = true
			lines = append(lines, u.String()+"\n")
		}
	}
	if len(lines) > 0 {
		fmt.Printf("NOT PROVEN: %d (more than %d fail)\n  %s", len(lines), mostUnproven, strings.Join(lines, "  "))
	}
	if file == "" {
		return len(lines) <= mostUnproven, nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	if _, err := f.WriteString(strings.Join(lines, "")); err != nil {
		return false, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	all, err := os.ReadFile(file)
	return bytes.Count(all, []byte("\n")) <= mostUnproven, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
