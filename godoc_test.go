package redlatch_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
)

// Whoever looks up a type finds its values there, and can read them. go doc sees
// that a value is of a type only if its declaration names the type, and it shows a
// value of another package by its name there.
func TestGoDocShowsTheValuesOfATypeWithIt(t *testing.T) {
	values := 0
	for _, dir := range []string{".", "admin", "barrier", "observe"} {
		pkg := documented(t, dir)
		for _, c := range pkg.Consts {
			t.Errorf("%s: %v is listed apart from its type", dir, c.Names)
		}
		for _, typ := range pkg.Types {
			for _, c := range typ.Consts {
				for _, spec := range c.Decl.Specs {
					for _, value := range spec.(*ast.ValueSpec).Values {
						values++
						if _, literal := value.(*ast.BasicLit); !literal && !isIota(value) {
							t.Errorf("%s: %v hides its value", dir, c.Names)
						}
					}
				}
			}
		}
	}
	if values < 30 {
		t.Errorf("only %d values were looked at", values)
	}
}

// An option is a word in a call: what it is for is best read where it is used.
func TestEveryOptionHasAnExample(t *testing.T) {
	example := regexp.MustCompile(`(?m)^func Example([A-Z]\w*)\(\)`)
	options := 0
	for _, dir := range []string{".", "election", "fence", "redlatchgoredis"} {
		names := map[string]bool{}
		files, err := filepath.Glob(filepath.Join(dir, "*example*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range example.FindAllStringSubmatch(string(text), -1) {
				names[m[1]] = true
			}
		}
		for _, typ := range documented(t, dir).Types {
			if !strings.HasSuffix(typ.Name, "Option") {
				continue
			}
			for _, f := range typ.Funcs {
				options++
				if !names[f.Name] {
					t.Errorf("%s: no Example%s", dir, f.Name)
				}
			}
		}
	}
	if options < 10 {
		t.Errorf("only %d options were looked at", options)
	}
}

// A link in a comment that leads nowhere is shown with its brackets.
func TestEveryLinkInTheGodocLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\[\*?(\w+\.)?[A-Z]\w*(\.[A-Z]\w*)?\]`)
	links := 0
	for _, dir := range []string{".", "admin", "barrier", "connect", "driver", "election", "fence", "latch", "observe", "ratelimit", "redisson", "semaphore"} {
		pkg := documented(t, dir)
		comments := []string{pkg.Doc}
		for _, v := range append(pkg.Consts, pkg.Vars...) {
			comments = append(comments, v.Doc)
		}
		for _, f := range pkg.Funcs {
			comments = append(comments, f.Doc)
		}
		for _, typ := range pkg.Types {
			comments = append(comments, typ.Doc)
			for _, v := range append(typ.Consts, typ.Vars...) {
				comments = append(comments, v.Doc)
			}
			for _, f := range append(typ.Funcs, typ.Methods...) {
				comments = append(comments, f.Doc)
			}
		}
		for _, text := range comments {
			plain := string(pkg.Text(text)) // as go doc shows it, without the brackets of links
			links += strings.Count(text, "[")
			if left := link.FindString(plain); left != "" {
				t.Errorf("%s: %s is no link", dir, left)
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d links were looked at", links)
	}
}

func documented(t *testing.T, dir string) *doc.Package {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	pkg, err := doc.NewFromFiles(files, parsed, path.Join("github.com/redlatch/redlatch", dir))
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func isIota(value ast.Expr) bool {
	id, ok := value.(*ast.Ident)
	return ok && id.Name == "iota"
}

// The engines say in words of their own what something is, and how it was lost or
// ended. These become the user's.
func TestTheWordsAreThoseOfTheEngines(t *testing.T) {
	same := func(user, engine string) {
		if user != engine {
			t.Errorf("%q is %q of the engines", user, engine)
		}
	}
	for acks, engine := range map[redlatch.Acks]request.Policy{
		redlatch.AckAuto: request.Auto, redlatch.AckOff: request.Off, redlatch.AckBestEffort: request.BestEffort,
		redlatch.AckAny: request.Any, redlatch.AckRequired: request.Required,
	} {
		same(fmt.Sprint(uint8(acks)), fmt.Sprint(uint8(engine)))
	}
	for kind, engine := range map[redlatch.Kind]string{
		redlatch.KindLock: inspect.Lock, redlatch.KindFenced: inspect.Fenced, redlatch.KindFair: inspect.Fair,
		redlatch.KindReadWrite: inspect.ReadWrite, redlatch.KindGroup: inspect.Group, redlatch.KindSemaphore: inspect.Semaphore,
		redlatch.KindExpirable: inspect.Expirable, redlatch.KindLatch: inspect.Latch, redlatch.KindRateLimiter: inspect.RateLimiter,
		redlatch.KindBarrier: inspect.Barrier, redlatch.KindCounter: inspect.Counter,
	} {
		same(string(kind), engine)
	}
	for reason, engine := range map[redlatch.LossReason]holdctx.Reason{
		redlatch.LostExpired: holdctx.Expired, redlatch.LostGone: holdctx.Gone,
		redlatch.LostRevoked: holdctx.Revoked, redlatch.LostMaxHold: holdctx.MaxHold, redlatch.LostLease: holdctx.Lease,
	} {
		same(string(reason), string(engine))
	}
}
