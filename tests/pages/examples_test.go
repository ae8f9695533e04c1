package pages

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

// A type is learned from code that has one: an example of its package, in godoc.
// For an option that is a test of the root.
func TestEveryTypeIsInAnExample(t *testing.T) {
	find := exports(t)
	all := 0
	for _, dir := range published(t) {
		fset := token.NewFileSet()
		imports := importer.ForCompiler(fset, "gc", find)
		pkg, err := imports.Import(path.Join("github.com/redlatch/redlatch", filepath.ToSlash(dir)))
		if err != nil {
			t.Error(err)
			continue
		}
		shown := inExamples(t, fset, imports, filepath.Join("../..", dir))
		for _, name := range pkg.Scope().Names() {
			of, is := pkg.Scope().Lookup(name).(*types.TypeName)
			if !is || !of.Exported() {
				continue
			}
			all++
			if !shown[pkg.Path()+"."+name] {
				t.Errorf("no example of package %s shows its type %s", pkg.Path(), name)
			}
		}
	}
	if all < 100 {
		t.Errorf("there are %d types: does this test still find them?", all)
	}
}

// inExamples returns the types of what stands in the files of examples of a
// folder.
func inExamples(t *testing.T, fset *token.FileSet, imports types.Importer, dir string) map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*example*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	// What they import beside what the packages do is not found, and does not matter.
	_, _ = (&types.Config{Importer: imports, Error: func(error) {}}).Check(dir, fset, files, &info)
	shown := make(map[string]bool)
	for _, value := range info.Types {
		show(shown, value.Type)
	}
	for _, object := range info.Defs {
		if object != nil {
			show(shown, object.Type())
		}
	}
	return shown
}

// show notes the type, or those that it is made of.
func show(shown map[string]bool, t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if of := t.Obj(); of.Pkg() != nil {
			shown[of.Pkg().Path()+"."+of.Name()] = true
		}
	case interface{ Elem() types.Type }: // a pointer, a slice, a channel or a map
		show(shown, t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			show(shown, v.Type())
		}
	}
}

// published returns the folders of packages that a user can import.
func published(t *testing.T) (dirs []string) {
	t.Helper()
	walkPublished(t, func(name string) { dirs = append(dirs, filepath.Dir(name)) })
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
