// Package archtest keeps the shape of the root module, as tests: which package may import which, how large a thing may
// grow, how long the way to a lock is, what only the root package must do without, that nobody asks for the type of a
// lock, and that the map of the code in docs/architecture.md is true.
//
// It parses files and does not ask the go command: files of every platform count, the test cache sees which files were
// read, and it takes milliseconds. Only for the way to a lock a program is
// built and run.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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

// parsed are the sources of the root module.
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

// enter skips the folders that hold no package of the root module: hidden ones, test data, and other modules.
func enter(dir, name string) error {
	if dir == top {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || strings.HasPrefix(name, ".") || name == "testdata" {
		return filepath.SkipDir
	}
	return nil
}
