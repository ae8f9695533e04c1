package archtest

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The root package is the words that a user knows. What does the work stands in
// internal/.
const (
	rootFiles = 20
	rootLines = 2600 // half of them comments: the words and what they mean

	rootNames  = 115  // that are exported: types, functions, methods, constants and variables
	rootFields = 60   // of exported structs
	rootDoc    = 1055 // lines of go doc -all, which shows what stands in a struct as it is wrapped
)

// rootLocks are what the root package may have of package sync, with the reason
// for each.
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

// A reader of the root package meets locks, and no more words than one can learn.
func TestTheRootIsAboutLocks(t *testing.T) {
	names, fields := 0, 0
	count := func(ids ...*ast.Ident) (n int) {
		for _, id := range ids {
			if id.IsExported() {
				n++
			}
		}
		return n
	}
	for _, src := range sources(t) {
		if src.dir != "." {
			continue
		}
		for _, decl := range src.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil || ast.IsExported(receiver(decl.Recv.List[0].Type)) {
					names += count(decl.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						names += count(spec.Names...)
					case *ast.TypeSpec:
						names += count(spec.Name)
						if s, is := spec.Type.(*ast.StructType); is && spec.Name.IsExported() {
							for _, f := range s.Fields.List {
								fields += count(f.Names...)
							}
						}
					}
				}
			}
		}
	}
	if names > rootNames || fields > rootFields {
		t.Errorf("the root package exports %d names and %d fields; it may have %d and %d: what is not about locks has a package of its own", names, fields, rootNames, rootFields)
	}
	cmd := exec.Command("go", "doc", "-all", ".")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(out), "\n"); lines > rootDoc || lines < rootDoc/2 {
		t.Errorf("go doc -all shows %d lines of the root package; it may be %d: say it in fewer words, or if a type is new raise rootDoc", lines, rootDoc)
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

// Whatever is called Go runs its argument in a goroutine: sync.WaitGroup's,
// request.Server's and worker.Pool's. To pass such a method on is not to start
// one.
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
