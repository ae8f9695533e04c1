package pages

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// packages are those that snippets name without importing them.
var packages = []string{
	"context", "database/sql", "errors", "fmt", "log", "log/slog", "net/http", "os", "os/signal", "syscall", "testing", "testing/synctest", "time",
	"github.com/go-co-op/gocron/v2", "github.com/prometheus/client_golang/prometheus", "github.com/redis/go-redis/v9",
	"github.com/redlatch/redlatch", "github.com/redlatch/redlatch/admin", "github.com/redlatch/redlatch/barrier",
	"github.com/redlatch/redlatch/connect", "github.com/redlatch/redlatch/dashboard", "github.com/redlatch/redlatch/driver",
	"github.com/redlatch/redlatch/drivertest", "github.com/redlatch/redlatch/election",
	"github.com/redlatch/redlatch/fence",
	"github.com/redlatch/redlatch/latch", "github.com/redlatch/redlatch/observe", "github.com/redlatch/redlatch/ratelimit",
	"github.com/redlatch/redlatch/redisson", "github.com/redlatch/redlatch/redissonyaml",
	"github.com/redlatch/redlatch/redlatchgocron", "github.com/redlatch/redlatch/redlatchgoredis", "github.com/redlatch/redlatch/redlatchotel",
	"github.com/redlatch/redlatch/redlatchprom", "github.com/redlatch/redlatch/redlatchrueidis", "github.com/redlatch/redlatch/redlatchtest",
	"github.com/redlatch/redlatch/redlatchvalkey", "github.com/redlatch/redlatch/semaphore",
}

// given are what a reader of a snippet takes to be there, with their types.
var given = map[string]string{
	"accounts":  "fence.Table",
	"client":    "*redlatch.Client",
	"ctx":       "context.Context",
	"db":        "*sql.DB",
	"first":     "chan int",
	"hold":      "*redlatch.Hold",
	"id":        "string",
	"lock":      "*redlatch.Lock",
	"locks":     "*redlatch.Client",
	"logger":    "*slog.Logger",
	"old":       "func(ctx context.Context, do func(context.Context) error) error",
	"mux":       "*http.ServeMux",
	"mydriver":  "interface{ Use(client any) driver.Redis }",
	"mylib":     "interface { New(addr string, opts ...any) interface{ Close() }; Timeout(time.Duration) any }",
	"mustLogIn": "func(http.Handler) http.Handler",
	"enqueue":   "func(name, id string) error",
	"post":      "func(http.Handler) int",
	"r":         "*http.Request",
	"rdb":       "*redis.Client",
	"redisURL":  "string",
	"report":    "func(context.Context) error",
	"routes":    "func(*redlatch.Client, func(context.Context, string) error) *http.ServeMux",
	"schedule":  "interface{ AddFunc(string, func()) }",
	"server":    "*http.Server",
	"steps":     "[]func(ctx context.Context)",
	"ship":      "func(ctx context.Context, id string) error",
	"store":     "driver.Redis",
	"t":         "*testing.T",
	"vault":     "interface{ Read(ctx context.Context, path string) (username, password string, err error) }",
	"w":         "http.ResponseWriter",
	"work":      "func(context.Context) error",
}

// A reader copies what he sees: what does not compile is worse than nothing.
func TestEverySnippetCompiles(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	find := exports(t)
	snippets := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "```") {
			if code, isGo := strings.CutPrefix(part, "go\n"); isGo && i%2 == 1 {
				snippets++
				if err := compile(code, find); err != nil {
					t.Errorf("%s: %v in\n%s", filepath.Base(page), err, code)
				}
			}
		}
	}
	if snippets < 10 {
		t.Errorf("there are %d snippets in %d pages", snippets, len(pages)+1)
	}
}

// What the test would let through it would let through in every page.
func TestWhatDoesNotCompileIsFound(t *testing.T) {
	find := exports(t)
	for code, well := range map[string]bool{
		`hold, err := client.Lock("x").Acquire(ctx)`:                           true,
		`func f(l *redlatch.Lock) error { return l.Do(nil, nil) }`:             true,
		"package main\n\nfunc main() {}":                                       true,
		`return client.Lock("x").Do(ctx, func(context.Context) error { x() })`: false,
		`hold := client.Lock("x").Acquire(ctx)`:                                false,
		`client.Lock("x").Obtain(ctx)`:                                         false,
		`nobody.Lock("x")`:                                                     false,
		`client.Lock("x`:                                                       false,
		`semaphore.New(client, "x", redlatch.Lease(1))`:                        false,
	} {
		if err := compile(code, find); (err == nil) != well {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// compile says why a snippet does not compile: a whole file, declarations, or
// statements. A variable that it does not use is fine: it goes on elsewhere.
func compile(code string, find importer.Lookup) error {
	declarations, statements := "package p\n"+code, "package p\nfunc _() {\n"+code+"\n}"
	returning := "package p\nfunc _() error {\n" + code + "\nreturn nil\n}"
	var first error
	for _, source := range []string{code, declarations, statements, returning} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution); err != nil {
			first = cmpErr(first, err)
			continue
		}
		if err := check(source, find); err != nil {
			first = err // it is Go, so this is what is wrong with it
			continue
		}
		return nil
	}
	return first
}

func cmpErr(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// check checks the types of a file, to which it adds what it takes to be there.
func check(source string, find importer.Lookup) error {
	if strings.HasPrefix(source, "package p\n") {
		source = withGiven(source)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, 0)
	if err != nil {
		return err
	}
	var wrong error
	conf := types.Config{
		Importer: importer.ForCompiler(fset, "gc", find),
		Error: func(err error) {
			if e, is := err.(types.Error); is && !e.Soft && wrong == nil { //nolint:errorlint // it is never wrapped
				wrong = fmt.Errorf("%s", e.Msg)
			}
		},
	}
	_, _ = conf.Check("p", fset, []*ast.File{file}, nil)
	return wrong
}

// withGiven adds imports and variables to a source, at the level of the package:
// what the source declares goes before.
func withGiven(source string) string {
	var b strings.Builder
	b.WriteString("package p\nimport (\n")
	for _, path := range packages {
		fmt.Fprintf(&b, "%q\n", path)
	}
	b.WriteString(")\nvar (\n")
	declares := make(map[string]bool)
	if file, err := parser.ParseFile(token.NewFileSet(), "", source, 0); err == nil {
		for name := range file.Scope.Objects {
			declares[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !declares[name] {
			fmt.Fprintf(&b, "%s %s\n", name, given[name])
		}
	}
	b.WriteString(")\n")
	return b.String() + strings.TrimPrefix(source, "package p\n")
}

// exports finds what packages export, in what the go command has built of them.
func exports(t *testing.T) importer.Lookup {
	t.Helper()
	files, err := built()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("snippets import %s, which is not in the list", path)
		}
		return os.Open(files[path])
	}
}

// built returns the files of packages and of what they import.
var built = sync.OnceValues(func() (map[string]string, error) {
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...).Output()
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files, nil
})

// The quickstart says to copy these two files. Nobody else may import what is
// internal here.
func TestTheQuickstartCanBeCopied(t *testing.T) {
	for _, name := range []string{"main.go", "main_test.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../examples/quickstart/"+name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.Contains(spec.Path.Value, "/internal/") {
				t.Errorf("%s imports %s", name, spec.Path.Value)
			}
		}
	}
}
