// Command waits lists the tests that run on real servers, in real time, or with
// other programs: `waits PATTERN...` in a module or a workspace.
//
// A line has the longest that the test waits for one thing, what it runs on, its
// name, and what it waits for: the call in the test, and where the limit stands.
//
// The waits are read from the sources, not measured: constants in the test and in
// what it calls among the tests. It does not list what the library itself waits
// for, what a test does in fake time, or a channel that a test reads without a
// limit: the limit of `go test` ends that. How long a server may take to start and
// to answer is listed only for tests that wait for nothing else.
package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests, err := list(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(1)
	}
	show(tests)
}

// list returns the tests package by package, those that may wait the longest
// first.
func list(patterns []string) ([]test, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedDeps | packages.NeedExportFile,
		Tests: true,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if n := packages.PrintErrors(pkgs); n > 0 {
		return nil, fmt.Errorf("the packages do not build: %d errors", n)
	}
	tests := read(pkgs).tests()
	slices.SortFunc(tests, func(a, b test) int {
		return cmp.Or(strings.Compare(a.pkg, b.pkg), cmp.Compare(b.longest.d, a.longest.d), strings.Compare(a.name, b.name))
	})
	return tests, nil
}

func show(tests []test) {
	on := map[string]int{}
	for i, of := range tests {
		if i > 0 && of.pkg == tests[i-1].pkg {
			continue
		}
		fmt.Println(of.pkg)
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, t := range tests[i:] {
			if t.pkg != of.pkg {
				break
			}
			on[t.on]++
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", t.longest.length(), t.on, t.name, t.longest)
		}
		w.Flush()
	}
	fmt.Printf("%d tests with servers or other programs, %d in real time\n", on[withServers], on[inRealTime])
}
