package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Who gets an error looks it up: docs/faq.md has each that the packages export, by its name.
func TestTheQuestionsPageHasEachError(t *testing.T) {
	page, err := os.ReadFile("../../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## Errors\n")
	table, _, ends := strings.Cut(table, "\n## ")
	if !found || !ends {
		t.Fatal("docs/faq.md has no section of errors")
	}
	all := exportedErrors(t)
	for _, name := range all {
		if !strings.Contains(table, name+"`") {
			t.Errorf("docs/faq.md does not say what to do about %s", name)
		}
	}
	if len(all) < 15 || !slices.Contains(all, "ErrBusy") || !slices.Contains(all, "LostError") {
		t.Errorf("%q: does this test still find them?", all)
	}
}

// exportedErrors returns the names of the variables Err... and of the types ...Error that a user can import.
func exportedErrors(t *testing.T) (all []string) {
	t.Helper()
	walkPublished(t, func(name string) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			general, is := decl.(*ast.GenDecl)
			if !is {
				continue
			}
			for _, spec := range general.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if general.Tok == token.VAR && strings.HasPrefix(name.Name, "Err") {
							all = append(all, name.Name)
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
						all = append(all, spec.Name.Name)
					}
				}
			}
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// walkPublished calls f with the name of each file, tests aside, of what a user can import.
func walkPublished(t *testing.T, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{"internal", "tests", "tools", "cmd", "examples", "testdata"}, d.Name()) || len(d.Name()) > 1 && d.Name()[0] == '.' {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			f(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
