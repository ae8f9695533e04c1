// Command gotest runs `go test` for make: gotest [FLAG...] ARG... runs `go test ARG...`.
//
// It prints a line for each package that has tests, and all that a failed test says. At the end it prints the packages that
// took the longest and what they took of the processor.
//
// A failure says nothing about the library if the race detector itself ended the program, or if the process of the test stood
// still meanwhile (see internal/standstill). If nothing failed in another way, what failed so runs once more. A test that failed
// for a standstill and passes then has proven nothing before: it counts as NOT PROVEN, as do the tests that say so themselves.
// All of them are listed at the end, and more than a few fail the run.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
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
	figure := flag.Duration("figure", 0, "the `processor` time that the tests are to take; 0: any")
	over := flag.String("over", "", "the `file` that remembers a run far above the figure")
	flag.Parse()
	ok, err := gotest(*dir, *label, budget{*figure, *over}, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	if err != nil || !ok {
		fmt.Printf("FAILED: %s\n", *label)
		os.Exit(1)
	}
}

func gotest(dir, label string, b budget, args []string) (ok bool, err error) {
	start := time.Now()
	first, err := execute(dir, label, args)
	if err != nil {
		return false, err
	}
	if ok = first.ok; !ok {
		if ok, err = first.again(dir, label, args); err != nil {
			return false, err
		}
	}
	fmt.Printf("%s: %s in %s; %s", label, plural(len(first.packages), "package"), seconds(time.Since(start)), first.table())
	if n := len(first.unproven); n > 0 {
		fmt.Printf("NOT PROVEN: %d (more than %d fail)\n  %s\n", n, mostUnproven, strings.Join(first.unproven, "\n  "))
		ok = ok && n <= mostUnproven
	}
	within, err := b.keeps(first)
	return ok && within, err
}
