// Package archtest keeps the shape of the library, as tests: which package may
// import which, which module may require which, how large a thing may grow, how
// long the way to a lock is, what only the root package must do without, that
// nobody asks for the type of a lock, that the map of the code in
// docs/architecture.md is true, and that nothing stands twice.
//
// It parses files and does not ask the go command, but for what a go.mod says, for
// the way to a lock, which a program goes, and for the types of what the engine of
// locks imports: files of every platform count, and the test cache sees which
// files were read.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const top = "../.." // the folder of the root package, seen from here

// A source is a file of Go that is not a test.
type source struct {
	dir   string // of its package, seen from the root package, which is "."
	name  string
	lines int
	ast   *ast.File
}

var fset = token.NewFileSet()

// parsed are the sources of the library: of the root module, and of the modules
// beside it that programs import.
var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(file, entry.Name())
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		tree, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(top, filepath.Dir(file))
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(dir), entry.Name(), fset.File(tree.FileStart).LineCount(), tree})
		return nil
	})
	return all, err
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// apart are the folders that hold no library: the command, and modules that are
// never released.
var apart = []string{"cmd", "examples", "tests", "tools"}

// enter skips the folders that hold no package of the library, hidden ones and
// test data among them.
func enter(dir, name string) error {
	if dir != top && (strings.HasPrefix(name, ".") || name == "testdata") || filepath.Dir(dir) == filepath.Clean(top) && slices.Contains(apart, name) {
		return filepath.SkipDir
	}
	return nil
}
