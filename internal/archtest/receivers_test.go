package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// alike are the names of receivers that several types of a package share, with
// what these have in common.
var alike = map[string]string{
	"internal/lock/term.c": "each is a part of what a client has",
	"internal/lock/term.t": "each is a part of a term",
	"internal/permit.q":    "both are the queue of a semaphore",
	"internal/permit.qs":   "both are a client's queues",
	"internal/permit.s":    "both are a semaphore",
	"redlatchrueidis.c":    "each is a connection, or makes one",
	"redlatchvalkey.c":     "each is a connection, or makes one",
	"semaphore.s":          "both are a semaphore",
}

// Whoever has read what a name stands for in one file of a package need not ask
// again in the next. An error is e in each package.
func TestAReceiversNameIsOneType(t *testing.T) {
	got := map[string]map[string]bool{} // types, by package and name
	for _, src := range sources(t) {
		for _, decl := range src.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || len(f.Recv.List[0].Names) == 0 {
				continue
			}
			of := receiver(f.Recv.List[0].Type)
			if strings.HasSuffix(of, "Error") {
				continue
			}
			name := src.dir + "." + f.Recv.List[0].Names[0].Name
			if got[name] == nil {
				got[name] = map[string]bool{}
			}
			got[name][of] = true
		}
	}
	for name, types := range got {
		if len(types) > 1 && alike[name] == "" {
			t.Errorf("the receiver %s is of each of the types %q: give it a name for each, or an entry in the table alike", name, slices.Sorted(maps.Keys(types)))
		}
	}
	for name := range alike {
		if len(got[name]) < 2 {
			t.Errorf("the table alike still has %s, which is one type's", name)
		}
	}
}
