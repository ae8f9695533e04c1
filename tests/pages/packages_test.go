package pages

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A visitor of a package wants the lines that he can copy before he reads on.
func TestEveryPackageBeginsWithCodeThatCompiles(t *testing.T) {
	find := exports(t)
	for _, dir := range published(t) {
		if dir == "driver" { // it is for those who write an adapter: interfaces, and what they promise
			continue
		}
		code := firstCode(packageDoc(t, filepath.Join("../..", dir)))
		if code == "" {
			t.Errorf("the comment of package %s has no code", dir)
			continue
		}
		code = strings.ReplaceAll(strings.ReplaceAll(code, "{ ... }", "{ panic(0) }"), "\t...\n", "")
		if err := compile(code, find); err != nil {
			t.Errorf("package %s: %v in\n%s", dir, err, code)
		}
	}
}

// packageDoc returns the comment of the package in a folder.
func packageDoc(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var file *ast.File
		if file, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly); err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil && !strings.HasSuffix(name, "_test.go") {
			return file.Doc.Text()
		}
	}
	return ""
}

// firstCode returns the first lines of code in a comment.
func firstCode(text string) string {
	for _, block := range new(comment.Parser).Parse(text).Content {
		if code, is := block.(*comment.Code); is {
			return code.Text
		}
	}
	return ""
}
