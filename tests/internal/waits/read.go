package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/printer"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

const (
	withServers = "server"
	inRealTime  = "real time"
)

// waiters are the functions that wait, and which of their arguments says for how
// long at most.
var waiters = map[string]int{
	"time.Sleep": 0, "time.After": 0, "time.NewTimer": 0, "time.AfterFunc": 0, "time.NewTicker": 0, "time.Tick": 0,
	"context.WithTimeout": 1, "context.WithTimeoutCause": 1,
	"(*github.com/redlatch/redlatch.Lock).TryAcquire": 1, "(*github.com/redlatch/redlatch.Lock).TryDo": 1,
	"(*github.com/redlatch/redlatch/semaphore.Semaphore).TryAcquire": 2, "(*github.com/redlatch/redlatch/semaphore.Semaphore).TryDo": 2,
	"(*github.com/redlatch/redlatch/semaphore.Expirable).TryAcquire": 2, "(*github.com/redlatch/redlatch/semaphore.Expirable).TryDo": 2,
	"(*github.com/redlatch/redlatch/ratelimit.Limiter).TryAcquire": 2,
	until: 0,
}

// until is what a loop begins with that ends at some time, as in "for end :=
// time.Now().Add(d)".
const until = "(time.Time).Add"

// starters start another program.
var starters = []string{
	"(*os/exec.Cmd).Start", "(*os/exec.Cmd).Run", "(*os/exec.Cmd).Output", "(*os/exec.Cmd).CombinedOutput", "os.StartProcess",
}

// bubble is where fake time begins.
const bubble = "testing/synctest.Test"

// harness are packages that start servers and talk to them: their limits say
// nothing about a test.
const harness = "/internal/testserver"

// A test is what a Test function does outside of fake time.
type test struct {
	pkg, name, on string
	longest       wait
}

// A wait is one place where something waits.
type wait struct {
	d       time.Duration // unknown: no constant says it
	what    string        // the call, or what it is for
	where   string
	harness bool
	by      string // the call in the test that leads there
}

const unknown = -1

func (w wait) length() string {
	switch w.d {
	case 0:
		return "-"
	case unknown:
		return "?"
	}
	return w.d.String()
}

func (w wait) String() string {
	switch {
	case w.d == 0:
		return "events, without a limit of its own"
	case w.by == "":
		return fmt.Sprintf("%s (%s)", w.what, w.where)
	}
	return fmt.Sprintf("%s: %s (%s)", w.by, w.what, w.where)
}

// A fn is a function for tests, or a variable of a package with functions in it.
type fn struct {
	name   string
	pkg    *packages.Package
	code   ast.Node
	isTest bool
	params map[types.Object]int

	// What it does in real time, itself: all but what it hands to a bubble.
	calls  []call
	waits  []wait
	starts bool // another program

	bubbles bool         // it runs what it is given in fake time
	limits  map[int]bool // the parameters that limit a wait of its own
}

// A call is where a function uses another.
type call struct {
	to string
	at ast.Node
}

// A program is all functions for tests.
type program map[string]*fn

// read reads the functions, as often as that brings news: what one does depends on
// what others do.
func read(pkgs []*packages.Package) program {
	p := program{}
	for _, pkg := range pkgs {
		for _, file := range pkg.Syntax {
			if isForTests(pkg, file) {
				p.add(pkg, file)
			}
		}
	}
	for news := true; news; {
		news = false
		for _, f := range p {
			bubbles, limits := f.bubbles, len(f.limits)
			f.calls, f.waits = nil, nil
			p.walk(f, f.code, p.insideBubbles(f))
			news = news || bubbles != f.bubbles || limits != len(f.limits)
		}
	}
	return p
}

// isForTests says whether a file belongs to the tests, and not to the library or
// the command.
func isForTests(pkg *packages.Package, file *ast.File) bool {
	path := pkg.PkgPath + "/"
	return strings.HasSuffix(pkg.Fset.Position(file.Package).Filename, "_test.go") ||
		slices.ContainsFunc([]string{"/tests/", harness + "/", "/drivertest/"}, func(of string) bool { return strings.Contains(path, of) })
}

func (p program) add(pkg *packages.Package, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			obj := pkg.TypesInfo.Defs[d.Name].(*types.Func)
			f := &fn{name: d.Name.Name, pkg: pkg, code: d.Body, params: map[types.Object]int{}, limits: map[int]bool{}}
			sig := obj.Signature()
			for i := range sig.Params().Len() {
				f.params[sig.Params().At(i)] = i
			}
			f.isTest = d.Recv == nil && strings.HasPrefix(f.name, "Test") && sig.Params().Len() == 1 &&
				sig.Params().At(0).Type().String() == "*testing.T"
			p[id(obj)] = f
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						p[id(pkg.TypesInfo.Defs[name])] = &fn{name: name.Name, pkg: pkg, code: v, limits: map[int]bool{}}
					}
				}
			}
		}
	}
}

// id names a function or a variable of a package, the same in each of the forms in
// which a package is loaded.
func id(obj types.Object) string {
	switch o := obj.(type) {
	case *types.Func:
		return o.Origin().FullName()
	case *types.Var:
		if o.Pkg() != nil && o.Parent() == o.Pkg().Scope() {
			return o.Pkg().Path() + "." + o.Name()
		}
	}
	return ""
}

// used is the function or variable that an expression names.
func (f *fn) used(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.IndexExpr:
		return f.used(x.X)
	case *ast.IndexListExpr:
		return f.used(x.X)
	case *ast.SelectorExpr:
		return f.pkg.TypesInfo.Uses[x.Sel]
	case *ast.Ident:
		return f.pkg.TypesInfo.Uses[x]
	}
	return nil
}

// functions are the arguments of a call that are functions.
func (f *fn) functions(c *ast.CallExpr) (args []ast.Expr) {
	for _, arg := range c.Args {
		if _, ok := f.pkg.TypesInfo.TypeOf(arg).Underlying().(*types.Signature); ok {
			args = append(args, arg)
		}
	}
	return args
}

// isBubble says whether a call runs its functions in fake time.
func (p program) isBubble(f *fn, c *ast.CallExpr) bool {
	to := id(f.used(c.Fun))
	g := p[to]
	return to == bubble || g != nil && g.bubbles
}

// insideBubbles are the types of the functions that f runs in fake time and does
// not name: they stand in a table.
func (p program) insideBubbles(f *fn) (all []types.Type) {
	ast.Inspect(f.code, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || !p.isBubble(f, c) {
			return true
		}
		for _, arg := range f.functions(c) {
			all = append(all, f.pkg.TypesInfo.TypeOf(arg))
			ast.Inspect(arg, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if _, named := f.used(c.Fun).(*types.Func); !named {
						all = append(all, f.pkg.TypesInfo.TypeOf(c.Fun))
					}
				}
				return true
			})
		}
		return true
	})
	return all
}

// walk reads what n does in real time.
func (p program) walk(f *fn, n ast.Node, inside []types.Type) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				t := f.pkg.TypesInfo.TypeOf(e)
				if t == nil || !slices.ContainsFunc(inside, func(u types.Type) bool { return types.Identical(t, u) }) {
					p.walk(f, e, inside)
				}
			}
			return false
		case *ast.ForStmt:
			if a, ok := n.Init.(*ast.AssignStmt); ok {
				if c, ok := a.Rhs[0].(*ast.CallExpr); ok && id(f.used(c.Fun)) == until {
					p.wait(f, c, until, n)
				}
			}
		case *ast.Ident:
			if to := id(f.pkg.TypesInfo.Uses[n]); to != "" {
				f.use(to, n)
			}
		case *ast.CallExpr:
			return p.call(f, n, inside)
		}
		return true
	})
}

// call reads a call, and says whether what it is given runs in real time, too.
func (p program) call(f *fn, c *ast.CallExpr, inside []types.Type) (given bool) {
	to := id(f.used(c.Fun))
	if to != until {
		p.wait(f, c, to, c)
	}
	if !p.isBubble(f, c) {
		return true
	}
	f.use(to, c)
	functions := f.functions(c)
	f.bubbles = f.bubbles || slices.ContainsFunc(functions, f.wasGiven)
	for _, arg := range c.Args {
		if !slices.Contains(functions, arg) {
			p.walk(f, arg, inside)
		}
	}
	return false
}

// use notes that f uses another function.
func (f *fn) use(to string, at ast.Node) {
	f.starts = f.starts || slices.Contains(starters, to)
	f.calls = append(f.calls, call{to, at})
}

// wasGiven says whether a function is one that f was given, or calls one.
func (f *fn) wasGiven(arg ast.Expr) (was bool) {
	ast.Inspect(arg, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			obj := f.pkg.TypesInfo.Uses[x]
			if _, ok := f.params[obj]; ok {
				_, function := obj.Type().Underlying().(*types.Signature)
				was = was || function
			}
		}
		return !was
	})
	return was
}

// wait notes that a call waits, as long as a constant or something else says,
// unless a parameter of f says it: then the calls of f wait.
func (p program) wait(f *fn, c *ast.CallExpr, to string, what ast.Node) {
	limits := map[int]bool{}
	if i, ok := waiters[to]; ok {
		limits[i] = true
	} else if g := p[to]; g != nil {
		limits = g.limits
	}
	for i := range limits {
		if i >= len(c.Args) {
			continue
		}
		if n, ok := f.params[f.used(c.Args[i])]; ok {
			f.limits[n] = true
			continue
		}
		d := time.Duration(unknown)
		if v := f.pkg.TypesInfo.Types[c.Args[i]].Value; v != nil {
			if n, ok := constant.Int64Val(constant.ToInt(v)); ok {
				d = time.Duration(n)
			}
		}
		f.waits = append(f.waits, wait{d: d, what: f.purpose(c, what), where: f.place(c), harness: strings.HasSuffix(f.pkg.PkgPath, harness)})
	}
}

// purpose is what waits, as it stands there; of a call that makes a context, what
// that is used for first.
func (f *fn) purpose(c *ast.CallExpr, what ast.Node) string {
	ctx := f.assigned(c)
	ast.Inspect(f.code, func(n ast.Node) bool {
		use, ok := n.(*ast.CallExpr)
		if ok && ctx != nil && what == c && use.Pos() > c.End() && slices.ContainsFunc(use.Args, func(arg ast.Expr) bool { return f.used(arg) == ctx }) {
			what = use
		}
		return true
	})
	return f.text(what)
}

// assigned is the context that a call makes.
func (f *fn) assigned(c *ast.CallExpr) (ctx types.Object) {
	ast.Inspect(f.code, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 2 && a.Rhs[0] == c {
			if x, ok := a.Lhs[0].(*ast.Ident); ok {
				ctx = cmp.Or(f.pkg.TypesInfo.Defs[x], f.pkg.TypesInfo.Uses[x])
			}
		}
		return ctx == nil
	})
	return ctx
}

// text is the code on one line, cut where it gets long.
func (f *fn) text(n ast.Node) string {
	const longest = 80
	var b bytes.Buffer
	if c, ok := n.(*ast.CallExpr); ok {
		if fun, ok := c.Fun.(*ast.SelectorExpr); ok && fun.End()-fun.Pos() > longest {
			n = &ast.CallExpr{Fun: fun.Sel, Args: c.Args}
		}
	}
	if err := printer.Fprint(&b, f.pkg.Fset, n); err != nil {
		return err.Error()
	}
	text := []rune(strings.Join(strings.Fields(b.String()), " "))
	if len(text) > longest {
		return string(text[:longest]) + "..."
	}
	return string(text)
}

func (f *fn) place(n ast.Node) string {
	at := f.pkg.Fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// tests are the Test functions that do something in real time.
func (p program) tests() (all []test) {
	for _, f := range p {
		if !f.isTest {
			continue
		}
		waits, starts := p.reach(f, map[*fn]bool{})
		if !starts && len(waits) == 0 {
			continue
		}
		t := test{pkg: strings.TrimSuffix(f.pkg.PkgPath, "_test"), name: f.name, on: inRealTime}
		if starts {
			t.on = withServers
		}
		if len(waits) > 0 {
			t.longest = slices.MinFunc(waits, func(a, b wait) int {
				if a.harness != b.harness {
					return map[bool]int{false: -1, true: 1}[a.harness]
				}
				return cmp.Or(cmp.Compare(b.d, a.d), strings.Compare(a.where, b.where))
			})
		}
		all = append(all, t)
	}
	return all
}

// reach finds the waits of f and of all that it uses, and whether one of them
// starts a program.
func (p program) reach(f *fn, seen map[*fn]bool) (waits []wait, starts bool) {
	seen[f] = true
	waits, starts = slices.Clone(f.waits), f.starts
	for _, c := range f.calls {
		g := p[c.to]
		if g == nil || seen[g] {
			continue
		}
		more, s := p.reach(g, seen)
		starts = starts || s
		for _, w := range more {
			if f.isTest {
				w.by = f.text(enclosing(f.code, c.at))
			}
			waits = append(waits, w)
		}
	}
	return waits, starts
}

// enclosing is the innermost call around a use of a function.
func enclosing(code, at ast.Node) ast.Node {
	found := at
	ast.Inspect(code, func(n ast.Node) bool {
		if n == nil || n.Pos() > at.Pos() || n.End() < at.End() {
			return false
		}
		if c, ok := n.(*ast.CallExpr); ok && c.Fun.Pos() <= at.Pos() && at.End() <= c.Fun.End() {
			found = c
		}
		return true
	})
	return found
}
