package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// engine is the packages of locks. Each may know those behind it: the table
// mayImport says which.
var engine = []string{"internal/lock", "internal/lock/readers", "internal/lock/fair", "internal/lock/wait", "internal/lock/term"}

// mostExported is how many names these packages may have for each other and for
// all of ours, at package level.
const mostExported = 60

// What one package of the engine may use of another is to be few things. A name
// that is used once across a border often wants to be a method, or to stand on the
// other side.
func TestTheEngineExportsFewNames(t *testing.T) {
	got := map[string][]string{}
	for _, src := range sources(t) {
		if !slices.Contains(engine, src.dir) {
			if strings.HasPrefix(src.dir, engine[0]+"/") {
				t.Errorf("package %s is not in the list engine", src.dir)
			}
			continue
		}
		for _, decl := range src.ast.Decls {
			got[src.dir] = append(got[src.dir], exported(decl)...)
		}
	}
	all := 0
	for _, dir := range engine {
		if len(got[dir]) == 0 {
			t.Errorf("package %s exports nothing: does this test still see names?", dir)
		}
		all += len(got[dir])
	}
	if all > mostExported {
		t.Errorf("the packages of the engine export %d names, more than %d: %q", all, mostExported, got)
	}
}

// exported returns the names that a declaration exports at package level.
func exported(decl ast.Decl) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			add(decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id)
				}
			}
		}
	}
	return names
}
