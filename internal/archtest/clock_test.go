package archtest

import (
	"go/ast"
	"slices"
	"testing"
)

// wallClock are the methods of a time.Time that look at the wall clock, or after which nothing else is left of it. So are Round and
// Truncate, if they are given 0; with anything else a duration is rounded.
var wallClock = []string{"Unix", "UnixNano", "UnixMilli", "UnixMicro", "UTC", "Local", "AddDate"}

// onTheWall are the files in which one of them is called, and why that is right.
var onTheWall = map[string]string{
	"internal/renew/window.go":          "a window ends by whichever clock says that more time has passed: a step can only end it early",
	"internal/overview/lock.go":         "it is shown, and nothing is decided",
	"internal/inspect/info.go":          "it is shown: the server's time until when a waiter may wait",
	"internal/inspect/synchronizers.go": "it is shown: the server's time until when a client is believed to live",
	"dashboard/lock.go":                 "it is shown",
}

// Somebody sets a clock, or lets NTP step it, while locks are held. What the library decides follows from the monotonic clock, which
// nobody sets, so package sim does not have to play it: a time that time.Now has given keeps that clock unless one of these methods
// drops it.
func TestWhatIsDecidedDoesNotFollowTheWallClock(t *testing.T) {
	found := map[string]bool{}
	for _, src := range sources(t) {
		file := src.name
		if src.dir != "." {
			file = src.dir + "/" + src.name
		}
		ast.Inspect(src.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(wallClock, method.Sel.Name) && !strips(method.Sel.Name, call.Args) {
				return true
			}
			if found[file] = true; onTheWall[file] == "" {
				t.Errorf("%v: %s looks at the wall clock, which somebody may set: decide by time.Since, Sub and After, or say in onTheWall why this is right",
					fset.Position(method.Sel.Pos()), method.Sel.Name)
			}
			return true
		})
	}
	for file := range onTheWall {
		if !found[file] {
			t.Errorf("%s does not look at the wall clock any more: take it out of onTheWall", file)
		}
	}
}

// strips says whether a call leaves nothing but the wall clock's reading: t.Round(0).
func strips(method string, args []ast.Expr) bool {
	if method != "Round" && method != "Truncate" || len(args) != 1 {
		return false
	}
	n, ok := args[0].(*ast.BasicLit)
	return ok && n.Value == "0"
}
