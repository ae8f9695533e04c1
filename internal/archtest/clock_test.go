package archtest

import (
	"go/ast"
	"go/parser"
	"slices"
	"testing"
)

// wallClock are the methods of a time.Time that look at the wall clock, or after
// which nothing else is left of it. So are In, Round and Truncate, of which strips
// says more.
var wallClock = []string{"Unix", "UnixNano", "UnixMilli", "UnixMicro", "UTC", "Local", "AddDate"}

// onTheWall are the files in which one of them is called, and why that is right.
var onTheWall = map[string]string{
	"internal/renew/window.go":          "a window ends by whichever clock says that more time has passed: a step can only end it early",
	"internal/overview/lock.go":         "it is shown, and nothing is decided",
	"internal/inspect/info.go":          "it is shown: the server's time until when a waiter may wait",
	"internal/inspect/synchronizers.go": "it is shown: the server's time until when a client is believed to live",
	"dashboard/lock.go":                 "it is shown",
}

// Somebody sets a clock, or lets NTP step it, while locks are held. What the
// library decides follows from the monotonic clock, which nobody sets, so package
// sim does not have to play it: a time that time.Now has given keeps that clock
// unless one of these methods drops it.
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
			if !ok || !slices.Contains(wallClock, method.Sel.Name) && !strips(method, call.Args) {
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

// strips says whether a call leaves nothing but the wall clock's reading:
// t.In(place), t.Round(0), time.Now().Truncate(d). Round and Truncate are also
// methods of a duration, which this test does not tell from a time in a variable:
// it sees a time only where one is made, and misses t.Round(time.Second).
func strips(method *ast.SelectorExpr, args []ast.Expr) bool {
	switch {
	case len(args) != 1:
		return false
	case method.Sel.Name == "In":
		return true
	case method.Sel.Name != "Round" && method.Sel.Name != "Truncate":
		return false
	}
	if n, ok := args[0].(*ast.BasicLit); ok && n.Value == "0" {
		return true
	}
	made, ok := method.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	by, ok := made.Fun.(*ast.SelectorExpr)
	return ok && (by.Sel.Name == "Now" || by.Sel.Name == "Add")
}

// The library has no such call, so nothing else would show that they are found.
func TestCallsThatStripATimeAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"t.In(place)": true, "t.Round(0)": true, "time.Now().Truncate(d)": true, "t.Add(d).Round(d)": true,
		"w.In()": false, "d.Round(time.Second)": false, "time.Since(t).Round(d)": false, "math.Round(x)": false,
	} {
		tree, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		call, _ := tree.(*ast.CallExpr)
		method, _ := call.Fun.(*ast.SelectorExpr)
		if got := strips(method, call.Args); got != want {
			t.Errorf("%s strips a time: %v", text, got)
		}
	}
}
