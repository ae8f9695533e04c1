package redlatch

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/script"
)

// scriptFiles returns every Lua file beside this one and in fence, loaded.
func scriptFiles(t *testing.T) []*Script {
	t.Helper()
	var scripts []*Script
	for _, dir := range []string{".", "fence"} {
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

// A server compiles every script, and knows it by the name that we call it.
func TestEveryScriptLoads(t *testing.T) {
	m := miniredis.NewMiniRedis()
	defer m.Close()
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() }})
	defer rdb.Close()
	for _, s := range scriptFiles(t) {
		sha, err := rdb.ScriptLoad(t.Context(), s.Source()).Result()
		if err != nil || sha != s.SHA() {
			t.Errorf("%s: loaded as %q (%v), want %q", s.Name(), sha, err, s.SHA())
		}
	}
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

// Every file is loaded by one variable, or one field of one, and each of these
// is used.
func TestEveryScriptHasItsVariable(t *testing.T) {
	files, err := fs.Glob(luaFiles, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]string{} // variable by script name
	used := map[string]int{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		note := func(value ast.Expr, variable string) {
			name, ok := loadedBy(value)
			if other := loaded[name]; ok && other != "" {
				t.Errorf("%s is loaded by %s and by %s", name, other, variable)
			}
			if ok {
				loaded[name] = variable
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					note(value, n.Names[i].Name)
				}
			case *ast.KeyValueExpr:
				if field, ok := n.Key.(*ast.Ident); ok {
					note(n.Value, field.Name)
				}
			case *ast.Ident:
				used[n.Name]++
			}
			return true
		})
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".lua")
		switch v := loaded[name]; {
		case v == "":
			t.Errorf("%s is loaded by no variable", file)
		case used[v] < 2:
			t.Errorf("%s, which loads %s, is not used", v, file)
		}
		delete(loaded, name)
	}
	for name, v := range loaded {
		t.Errorf("%s loads %s, which is not embedded", v, name)
	}
}

// loadedBy returns x of an expression script.Load(luaFiles, "x").
func loadedBy(e ast.Expr) (string, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return "", false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Load" {
		return "", false
	}
	pkg, ok := f.X.(*ast.Ident)
	if !ok || pkg.Name != "script" {
		return "", false
	}
	name, ok := call.Args[1].(*ast.BasicLit)
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
		{"an argument declared in the middle", "-- p\n-- ARGV x... y\n-- returns r\nlocal x, n = ARGV[2], #ARGV\n", 1},
		{"in a comment only", top + "-- KEYS[1] KEYS[2]\nlocal x, n = ARGV[1], #ARGV\n", 2},
		{"in a string only", top + "local s = 'KEYS[1]' .. \"KEYS[2]\"\nlocal x, n = ARGV[1], #ARGV\n", 2},
		{"a key in the lock's slot", top + uses + "redis.call('GET', timeout_key(a, x, 1))\nredis.call('GET', timeout_key(KEYS[1], x, n))\n", 0},
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
