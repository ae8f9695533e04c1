package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"testing"
)

const (
	engine   = "internal/lock" // of locks
	kindFile = "kind.go"       // the only one that knows their kinds
)

// A kind answers, and nobody asks which kind it is. So a kind is named where a
// lock is made to be of it, and nowhere else; two locks may be compared in it, but
// no lock with a kind, nor anything with one of the words that kinds consist of,
// such as modeRead.
func TestNobodyAsksForTheKind(t *testing.T) {
	files, info := checked(t, engine, empty{})
	kinds, words := 0, map[types.Object]bool{}
	for ident, obj := range info.Defs {
		if packageVar(obj) && isKind(obj.Type()) {
			kinds++
			if file := path.Base(fset.Position(ident.Pos()).Filename); file != kindFile {
				t.Errorf("kind %s stands in %s; the kinds stand in %s", obj.Name(), file, kindFile)
			}
		}
	}
	for ident, obj := range info.Uses {
		if _, ok := obj.(*types.Const); ok && obj.Pkg() != nil && path.Base(fset.Position(ident.Pos()).Filename) == kindFile {
			words[obj] = true
		}
	}
	if kinds == 0 || len(words) == 0 {
		t.Fatalf("%d kinds of locks found in %s, of %d words: this test sees nothing", kinds, engine, len(words))
	}
	isWord := func(e ast.Expr) bool {
		ident, ok := e.(*ast.Ident)
		return ok && words[info.Uses[ident]]
	}
	comparisons := 0
	for _, src := range files {
		if src.name == kindFile {
			continue
		}
		walk(src.ast, func(n ast.Node, above []ast.Node) {
			switch n := n.(type) {
			case *ast.Ident:
				obj := info.Uses[n]
				if packageVar(obj) && isKind(obj.Type()) && !slices.ContainsFunc(above, makesLock) {
					t.Errorf("%s: kind %s is named where no lock is made: give type kind a field that says what is wanted, and ask for that", fset.Position(n.Pos()), n.Name)
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
	}
	if comparisons == 0 {
		t.Errorf("no comparison of two kinds found in %s: does this test still see types?", engine)
	}
}

// checked returns the sources of a package with the types of what it declares
// itself. Where other packages are empty, what comes of them has no type; but a
// kind, and what has one, does not come of them.
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
	cfg := types.Config{
		Error: func(err error) {
			if others != (empty{}) { // which has not what is used of it
				t.Error(err)
			}
		},
		Importer: others,
	}
	_, _ = cfg.Check(ours(dir), fset, trees, info)
	return files, info
}

// empty imports every package as one with nothing in it.
type empty struct{}

func (empty) Import(imp string) (*types.Package, error) {
	pkg := types.NewPackage(imp, path.Base(imp))
	pkg.MarkComplete()
	return pkg, nil
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

// isKind says whether a type is *kind.
func isKind(typ types.Type) bool {
	pointer, ok := typ.(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := pointer.Elem().(*types.Named)
	return ok && named.Obj().Name() == "kind"
}

// fieldKind says whether e is the kind of some lock: its field.
func fieldKind(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "kind"
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
