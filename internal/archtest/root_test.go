package archtest

import (
	"go/ast"
	"path/filepath"
	"slices"
	"testing"
)

// The root package is the words that a user knows. What does the work stands in internal/.
const (
	rootFiles = 28
	rootLines = 4000 // half of them comments: the words and what they mean
)

// rootLocks are what the root package may have of package sync, with the reason for each.
var rootLocks = map[string]string{
	"client.go: sync.Once": "Close does its work once, and whoever else calls it waits for that: the client's life",
}

func TestRootIsSmall(t *testing.T) {
	files, lines := 0, 0
	for _, src := range sources(t) {
		if src.dir == "." {
			files++
			lines += src.lines
		}
	}
	if files > rootFiles || lines > rootLines {
		t.Errorf("the root package has %d files and %d lines; it may have %d and %d", files, lines, rootFiles, rootLines)
	}
}

func TestRootHasNoScripts(t *testing.T) {
	for _, pattern := range []string{"*.lua", "*.luainc"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			t.Errorf("%s stands in the root package; scripts stand in internal/lua", filepath.Base(file))
		}
	}
}

// Whatever is called Go runs its argument in a goroutine: sync.WaitGroup's, request.Server's and worker.Pool's. To pass
// such a method on is not to start one.
func TestRootStartsNoGoroutine(t *testing.T) {
	for _, src := range sources(t) {
		if src.dir != "." {
			continue
		}
		ast.Inspect(src.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a go statement in the root package", fset.Position(n.Pos()))
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Go" || f.Sel.Name == "AfterFunc") {
					t.Errorf("%s: a call of %s starts a goroutine in the root package", fset.Position(n.Pos()), f.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestRootHasNoMutex(t *testing.T) {
	var got []string
	for _, src := range sources(t) {
		if src.dir != "." {
			continue
		}
		for _, imp := range src.ast.Imports {
			if imp.Path.Value == `"sync"` && imp.Name != nil {
				t.Errorf("%s imports sync under another name", src.name)
			}
		}
		ast.Inspect(src.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "sync" {
					got = append(got, src.name+": sync."+sel.Sel.Name)
				}
			}
			return true
		})
	}
	for i, use := range got {
		if rootLocks[use] == "" || slices.Contains(got[:i], use) {
			t.Errorf("%s in the root package: what is shared is guarded where the work is done, or rootLocks says why not", use)
		}
	}
	for use := range rootLocks {
		if !slices.Contains(got, use) {
			t.Errorf("rootLocks has %s, which is not there any more", use)
		}
	}
}
