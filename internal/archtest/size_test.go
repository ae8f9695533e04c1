package archtest

import (
	"fmt"
	"go/ast"
	"testing"
)

// What no struct, type, function or file exceeds, unless oversized says why.
const (
	mostFields  = 15
	mostMethods = 25
	mostLines   = 80  // of a function
	mostInFile  = 500 // lines
)

// An excess is the size of something that is larger than others may be.
type excess struct {
	size int
	why  string
}

// oversized are they, exactly. Who makes one of them smaller writes the new number
// here, or removes its line.
var oversized = map[string]excess{
	"fields of internal/bridge.Engines": {17, "one engine for each family of types, and what the root alone can do for the packages beside it"},
	"fields of connect.Settings":        {18, "a field is a setting, under the name by which users know it; in parts it would be harder to write and to read"},
	"fields of internal/census.Claim":   {16, "all that a client says of what it holds or waits for, under the names that package admin has for it"},
	"fields of internal/census.told":    {16, "the same on the wire, a field of JSON each"},
	"methods of drivertest.env":         {40, "the words of the contract's tests, which read as sentences because one value has them all"},
	"methods of internal/permit.Permit": {28, "what its user can do with it, the ways in which it ends, and what the clock of renewals asks of it"},
}

// free may grow as they like: a field of theirs is a word of the user's.
var free = map[string]bool{".Config": true, "observe.Hooks": true}

func TestNothingIsOversized(t *testing.T) {
	got := oversizes(t)
	for what, size := range got {
		switch known, ok := oversized[what]; {
		case !ok:
			t.Errorf("there are %d %s: too many; split it, or have oversized say why not", size, what)
		case known.size != size:
			t.Errorf("there are %d %s, and %d in the table oversized: has it grown, or is the number old?", size, what, known.size)
		}
	}
	for what := range oversized {
		if got[what] == 0 {
			t.Errorf("the table oversized still has the %s, which are not too many any more", what)
		}
	}
}

// oversizes returns what is too large, and how large.
func oversizes(t *testing.T) map[string]int {
	t.Helper()
	got := map[string]int{}
	note := func(size, most int, format string, args ...any) {
		if size > most {
			got[fmt.Sprintf(format, args...)] = size
		}
	}
	methods := map[string]int{}
	for _, src := range sources(t) {
		if ast.IsGenerated(src.ast) {
			continue
		}
		note(src.lines, mostInFile, "lines of %s/%s", src.dir, src.name)
		for _, part := range parts(src) {
			ast.Inspect(part.node, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					if !free[part.name] {
						note(n.Fields.NumFields(), mostFields, "fields of %s", part.name)
					}
				case *ast.FuncDecl:
					if !constructs(n) {
						methods[part.of]++
					}
					note(height(n), mostLines, "lines of %s", part.name)
				case *ast.FuncLit:
					note(height(n), mostLines, "lines in a function of %s", part.name)
				}
				return true
			})
		}
	}
	delete(methods, "")
	for of, n := range methods {
		note(n, mostMethods, "methods of %s", of)
	}
	return got
}

// A part is a declaration of a file, with its name: "internal/lock/term.Term",
// ".Client.Close".
type part struct {
	name string
	of   string // the type, if it is a method
	node ast.Node
}

func parts(src source) (all []part) {
	pkg := src.dir + "."
	if src.dir == "." {
		pkg = "."
	}
	for _, decl := range src.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			p := part{pkg + decl.Name.Name, "", decl}
			if decl.Recv != nil {
				p.of = pkg + receiver(decl.Recv.List[0].Type)
				p.name = p.of + "." + decl.Name.Name
			}
			all = append(all, p)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, part{pkg + spec.Name.Name, "", spec})
				case *ast.ValueSpec:
					all = append(all, part{pkg + spec.Names[0].Name, "", spec})
				}
			}
		}
	}
	return all
}

// receiver returns the name of a method's type, which may be a pointer and
// generic.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	panic(fmt.Sprintf("a method of %T", e))
}

// constructs says whether f is one of the Client's methods that make something
// that has a name, a word of the user's; or one of Locks' that say which lock that
// is. Each type has one of either.
func constructs(f *ast.FuncDecl) bool {
	if f.Recv == nil || f.Type.Results.NumFields() != 1 {
		return false
	}
	switch receiver(f.Recv.List[0].Type) {
	case "Client":
		made, ok := f.Type.Results.List[0].Type.(*ast.StarExpr)
		return ok && ast.IsExported(receiver(made.X))
	case "Locks":
		made, ok := f.Type.Results.List[0].Type.(*ast.Ident)
		return ok && made.Name == "Spec"
	}
	return false
}

func height(n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}
