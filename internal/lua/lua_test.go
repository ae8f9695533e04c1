package lua

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/script"
)

// scriptFiles returns every Lua file beside this one and in package fence, loaded.
func scriptFiles(t *testing.T) []*script.Script {
	t.Helper()
	var scripts []*script.Script
	for _, dir := range []string{".", "../../fence"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no scripts in %s: %v", dir, err)
		}
		for _, file := range files {
			scripts = append(scripts, script.Load(os.DirFS(dir), strings.TrimSuffix(filepath.Base(file), ".lua")))
		}
	}
	return scripts
}

// What a script's header declares is what its body uses.
func TestScriptHeaders(t *testing.T) {
	for _, s := range scriptFiles(t) {
		for _, fault := range headerFaults(s) {
			t.Errorf("%s: %s", s.Name(), fault)
		}
	}
}

// In a cluster the keys of a script must be known before it runs.
func TestScriptsComputeNoKeys(t *testing.T) {
	for _, s := range scriptFiles(t) {
		for _, fault := range keyFaults(s.Source()) {
			t.Errorf("%s: %s", s.Name(), fault)
		}
	}
}

// Redis refuses global variables, when it comes to the line.
func TestScriptsHaveNoGlobals(t *testing.T) {
	for _, s := range scriptFiles(t) {
		for _, name := range globals(luaTokens(s.Source())) {
			t.Errorf("%s: %s is not local", s.Name(), name)
		}
	}
}

// Every file is loaded by one variable, and each of these is used.
func TestEveryScriptHasItsVariable(t *testing.T) {
	names, err := fs.Glob(files, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]string{} // variable by script name
	eachNode(t, ".", func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		for i, value := range spec.Values {
			if name, ok := loadedBy(value); ok {
				if other := loaded[name]; other != "" {
					t.Errorf("%s is loaded by %s and by %s", name, other, spec.Names[i].Name)
				}
				loaded[name] = spec.Names[i].Name
			}
		}
	})
	used := map[string]bool{}
	eachNode(t, "../..", func(n ast.Node) {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "lua" {
				used[sel.Sel.Name] = true
			}
		}
	})
	for _, file := range names {
		name := strings.TrimSuffix(file, ".lua")
		switch v := loaded[name]; {
		case v == "":
			t.Errorf("%s is loaded by no variable", file)
		case !used[v]:
			t.Errorf("%s, which loads %s, is not used", v, file)
		}
	}
}

// eachNode walks the syntax of all Go files below dir that are no tests.
func eachNode(t *testing.T, dir string, visit func(ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err == nil {
			ast.Inspect(parsed, func(n ast.Node) bool { visit(n); return true })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// loadedBy returns x of an expression load("x").
func loadedBy(e ast.Expr) (string, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	f, ok := call.Fun.(*ast.Ident)
	if !ok || f.Name != "load" {
		return "", false
	}
	name, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(name.Value)
	return text, err == nil
}

// The checks find what they are there for.
func TestScriptChecks(t *testing.T) {
	const top = "-- p\n-- KEYS a b\n-- ARGV x y...\n-- returns r\n"
	const uses = "local a, b = KEYS[1], KEYS[2]\nlocal x, n = ARGV[1], #ARGV\n"
	for _, c := range []struct {
		name, source string
		faults       int
	}{
		{"right", top + uses + "redis.call('DEL', a, KEYS[2])\nredis.call('PUBLISH', x, '0')\n", 0},
		{"right in a loop", "-- p\n-- KEYS a...\n-- returns r\nfor i, key in ipairs(KEYS) do\n redis.pcall('HGET', key, i)\nend\n", 0},
		{"an undeclared key", top + uses + "redis.call('DEL', KEYS[3])\n", 1},
		{"a key not used", top + "local a = KEYS[1]\nlocal x, n = ARGV[1], #ARGV\n", 1},
		{"an argument not used", top + "local a, b, n = KEYS[1], KEYS[2], #ARGV\n", 1},
		{"no variable part", top + "local a, b = KEYS[1], KEYS[2]\nlocal x = ARGV[1]\n", 1},
		{"an undeclared variable part", top + uses + "local n = #KEYS\n", 1},
		{"a key that is wanted", "-- p\n-- KEYS a b...\n-- wants b\n-- returns r\nlocal a, b = KEYS[1], KEYS[2]\n", 0},
		{"a key that is wanted, and cannot be told", "-- p\n-- KEYS a\n-- wants b\n-- returns r\nlocal a = KEYS[1]\n", 1},
		{"an argument declared in the middle", "-- p\n-- ARGV x... y\n-- returns r\nlocal x, n = ARGV[2], #ARGV\n", 1},
		{"in a comment only", top + "-- KEYS[1] KEYS[2]\nlocal x, n = ARGV[1], #ARGV\n", 2},
		{"in a string only", top + "local s = 'KEYS[1]' .. \"KEYS[2]\"\nlocal x, n = ARGV[1], #ARGV\n", 2},
		{"a key in the lock's slot", top + uses + "redis.call('GET', timeout_key(a, x, 1))\nredis.call('GET', timeout_key(KEYS[1], x, n))\n", 0},
		{"a function of a key", top + uses + "local function f(c, d)\n redis.call('SET', c, d)\nend\nf(a, x)\nf(KEYS[2], 1)\n", 0},
		{"a function of what may be no key", top + uses + "local function f(c)\n redis.call('GET', c)\nend\nf(a)\nf(x)\n", 1},
		{"a key in another slot", top + uses + "redis.call('GET', timeout_key(x, a, 1))\n", 1},
		{"a computed key", top + uses + "redis.call('DEL', KEYS[1] .. ':1')\n", 1},
		{"a literal key", top + uses + "redis.call('GET', 'a')\n", 1},
		{"an argument as a key", top + uses + "redis.call('GET', x)\n", 1},
		{"a variable that is not always a key", top + uses + "a = a .. x\nredis.call('GET', a)\n", 1},
		{"a variable with a computed key", top + uses + "local c = b .. ':1'\nredis.call('GET', c)\n", 1},
		{"a second key", top + uses + "redis.call('DEL', a, x)\n", 1},
		{"a computed command", top + uses + "redis.call(x, a)\n", 1},
		{"a command we do not know", top + uses + "redis.call('BITOP', a)\n", 1},
		{"redis.call passed on", top + uses + "local call = redis.call\n", 1},
		{"a global", top + uses + "n = 2\nm = 3\n", 1},
	} {
		s, err := script.New(c.name, c.source)
		if err != nil {
			t.Fatal(err)
		}
		faults := slices.Concat(headerFaults(s), keyFaults(s.Source()), globals(luaTokens(s.Source())))
		if len(faults) != c.faults {
			t.Errorf("%s: %d faults, want %d: %q", c.name, len(faults), c.faults, faults)
		}
	}
}
