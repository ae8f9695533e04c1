package archtest

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kindFile is the only one of the engine that knows the kinds of locks.
const kindFile = "internal/lock/kind.go"

// A kind answers, and nobody asks which kind it is. So a kind is named where a
// lock is made to be of it, and nowhere else; two locks may be compared in it, but
// no lock with a kind, nor anything with one of the words that kinds consist of,
// such as wire.ModeRead.
func TestNobodyAsksForTheKind(t *testing.T) {
	others := importer.ForCompiler(fset, "source", nil)
	kinds, comparisons, words := 0, 0, map[types.Object]bool{}
	for _, dir := range engine { // the first one has the kinds
		files, info := checked(t, dir, others)
		for ident, obj := range info.Defs {
			if packageVar(obj) && isKind(obj.Type()) {
				kinds++
				if !inKindFile(ident) {
					t.Errorf("kind %s stands in %s; the kinds stand in %s", obj.Name(), fset.Position(ident.Pos()), kindFile)
				}
			}
		}
		for ident, obj := range info.Uses {
			if _, ok := obj.(*types.Const); ok && obj.Pkg() != nil && inKindFile(ident) {
				words[obj] = true
			}
		}
		for _, src := range files {
			if path.Join(src.dir, src.name) != kindFile {
				comparisons += asksForKind(t, src, info, words)
			}
		}
	}
	if kinds == 0 || len(words) == 0 {
		t.Errorf("%d kinds of locks found in %s, of %d words: this test sees nothing", kinds, kindFile, len(words))
	}
	if comparisons == 0 {
		t.Errorf("no comparison of two kinds found in %q: does this test still see types?", engine)
	}
}

// inKindFile says whether n stands in the file of the kinds.
func inKindFile(n ast.Node) bool {
	return strings.HasSuffix(filepath.ToSlash(fset.Position(n.Pos()).Filename), "/"+kindFile)
}

// asksForKind fails if a file asks for the kind of a lock, and returns how often
// it compares two locks in theirs.
func asksForKind(t *testing.T, src source, info *types.Info, words map[types.Object]bool) (comparisons int) {
	t.Helper()
	isWord := func(e ast.Expr) bool {
		if sel, ok := e.(*ast.SelectorExpr); ok {
			e = sel.Sel
		}
		ident, ok := e.(*ast.Ident)
		return ok && words[info.Uses[ident]]
	}
	walk(src.ast, func(n ast.Node, above []ast.Node) {
		switch n := n.(type) {
		case *ast.Ident:
			obj := info.Uses[n]
			if packageVar(obj) && isKind(obj.Type()) && !slices.ContainsFunc(above, makesLock) {
				t.Errorf("%s: kind %s is named where no lock is made: give type Kind a field that says what is wanted, and ask for that", fset.Position(n.Pos()), n.Name)
			}
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				return
			}
			if isWord(n.X) || isWord(n.Y) {
				t.Errorf("%s: something is compared with a word of a kind: ask the kind", fset.Position(n.Pos()))
			}
			if !isKind(info.TypeOf(n.X)) && !isKind(info.TypeOf(n.Y)) {
				return
			}
			comparisons++
			if !fieldKind(n.X) || !fieldKind(n.Y) {
				t.Errorf("%s: a lock's kind is compared with what is not another lock's", fset.Position(n.Pos()))
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isKind(info.TypeOf(n.Tag)) {
				t.Errorf("%s: a switch over the kind of a lock", fset.Position(n.Pos()))
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, isWord) {
				t.Errorf("%s: a case is a word of a kind: ask the kind", fset.Position(n.Pos()))
			}
		}
	})
	return comparisons
}

// checked returns the sources of a package with their types.
func checked(t *testing.T, dir string, others types.Importer) ([]source, *types.Info) {
	t.Helper()
	var files []source
	var trees []*ast.File
	for _, src := range sources(t) {
		if src.dir == dir {
			files, trees = append(files, src), append(trees, src.ast)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Error: func(err error) { t.Error(err) }, Importer: others}
	_, _ = cfg.Check(ours(dir), fset, trees, info)
	return files, info
}

// walk calls f with every node of a tree, and with those above it.
func walk(tree ast.Node, f func(n ast.Node, above []ast.Node)) {
	var above []ast.Node
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		f(n, above)
		above = append(above, n)
		return true
	})
}

func packageVar(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	return ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// isKind says whether a type is *Kind.
func isKind(typ types.Type) bool {
	pointer, ok := typ.(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := pointer.Elem().(*types.Named)
	return ok && named.Obj().Name() == "Kind" && named.Obj().Pkg().Path() == ours("internal/lock/term")
}

// fieldKind says whether e is the kind of some lock: its field.
func fieldKind(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Kind"
}

// makesLock says whether n is a function that returns a lock's Spec, or such a
// Spec that is written out.
func makesLock(n ast.Node) bool {
	var made ast.Expr
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Type.Results.NumFields() == 1 {
			made = n.Type.Results.List[0].Type
		}
	case *ast.CompositeLit:
		made = n.Type
	}
	name, ok := made.(*ast.Ident)
	return ok && name.Name == "Spec"
}
