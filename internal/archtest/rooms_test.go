package archtest

import (
	"go/ast"
	"go/importer"
	"path"
	"slices"
	"testing"
)

// A room is files of the engine of locks that are to become a package.
type room struct {
	name  string
	files []string
	below []string // the rooms that it knows
}

// rooms are all of them. What a room knows does not know it: a term does not know
// who waits for one, and who waits does not know of which type the lock is.
var rooms = []room{
	{"term", []string{
		"claimed.go", "detach.go", "doc.go", "env.go", "group.go", "hold.go", "home.go", "keep.go", "lock.go", "loss.go", "nest.go",
		"options.go", "orphans.go", "readhold.go", "readwrite.go", "reenter.go", "scope.go", "sharing.go", "taking.go", "term.go",
	}, nil},
	{"wait", []string{
		"claims.go", "entry.go", "handoff.go", "inner.go", "inquire.go", "intent.go", "joint.go", "queue.go", "seen.go", "table.go", "take.go", "wait.go",
	}, []string{"term"}},
	{"readers", []string{"readers.go"}, []string{"term", "wait"}},
	{"fair", []string{"fair.go", "fairentry.go"}, []string{"term", "wait"}},
	{"lock", []string{"byowner.go", "do.go", "kind.go", "locks.go", "spec.go", "spin.go", "together.go"}, []string{"term", "wait", "readers", "fair"}},
}

func TestTheRoomsOfTheEngineRunOneWay(t *testing.T) {
	roomOf := map[string]room{} // by file
	var before []string
	for _, r := range rooms {
		for _, name := range r.below {
			if !slices.Contains(before, name) {
				t.Errorf("room %s knows %s, which does not stand before it in the table rooms", r.name, name)
			}
		}
		before = append(before, r.name)
		for _, file := range r.files {
			if other := roomOf[file].name; other != "" {
				t.Errorf("%s stands in the rooms %s and %s", file, other, r.name)
			}
			roomOf[file] = r
		}
	}
	files, info := checked(t, engine, importer.ForCompiler(fset, "source", nil))
	for _, src := range files {
		if roomOf[src.name].name == "" {
			t.Errorf("%s/%s is in no room: add it to the table rooms", src.dir, src.name)
		}
	}
	if len(roomOf) > len(files) {
		t.Errorf("the table rooms has %d files, and %s has %d", len(roomOf), engine, len(files))
	}
	across := 0
	for _, src := range files {
		from := roomOf[src.name]
		walk(src.ast, func(n ast.Node, above []ast.Node) {
			ident, ok := n.(*ast.Ident)
			if !ok || info.Uses[ident] == nil || info.Uses[ident].Pkg() == nil || info.Uses[ident].Pkg().Path() != ours(engine) {
				return
			}
			to := roomOf[path.Base(fset.Position(info.Uses[ident].Pos()).Filename)]
			if to.name == from.name {
				return
			}
			across++
			if !slices.Contains(from.below, to.name) {
				t.Errorf("%s: %s of room %s is named in room %s", fset.Position(ident.Pos()), ident.Name, to.name, from.name)
			} else if len(above) > 1 && isReceiver(above[1], ident) {
				t.Errorf("%s: a method of %s, which stands in room %s", fset.Position(ident.Pos()), ident.Name, to.name)
			}
		})
	}
	if across < 300 {
		t.Errorf("%d times a room of %s names what stands in another: does this test still see types?", across, engine)
	}
}

// isReceiver says whether ident is the type whose method a declaration is.
func isReceiver(decl ast.Node, ident *ast.Ident) bool {
	f, ok := decl.(*ast.FuncDecl)
	return ok && f.Recv != nil && f.Recv.Pos() <= ident.Pos() && ident.Pos() < f.Recv.End()
}
