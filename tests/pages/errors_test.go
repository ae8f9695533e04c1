package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/redlatchgocron"
)

// errorsTable returns the table of docs/faq.md that says what to do about an
// error.
func errorsTable(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## Errors\n")
	table, _, ends := strings.Cut(table, "\n## ")
	if !found || !ends {
		t.Fatal("docs/faq.md has no section of errors")
	}
	return table
}

// Who gets an error looks it up: docs/faq.md has each that the packages export, by
// its name.
func TestTheQuestionsPageHasEachError(t *testing.T) {
	table := errorsTable(t)
	all := exportedErrors(t)
	for _, name := range all {
		if !strings.Contains(table, name+"`") {
			t.Errorf("docs/faq.md does not say what to do about %s", name)
		}
	}
	if len(all) < 15 || !slices.Contains(all, "ErrBusy") || !slices.Contains(all, "LostError") {
		t.Errorf("%q: does this test still find them?", all)
	}
}

// Or by what stands in a log: the table shows how the text of each begins, with …
// for what differs.
func TestTheQuestionsPageHasTheTextOfEachError(t *testing.T) {
	var texts []*regexp.Regexp
	for _, code := range codeSpan.FindAllString(errorsTable(t), -1) {
		begins := strings.TrimSuffix(strings.Trim(code, "`"), "…")
		texts = append(texts, regexp.MustCompile("^(redlatch|fence): "+strings.ReplaceAll(regexp.QuoteMeta(begins), "…", ".+")))
	}
	for _, err := range []error{
		redlatch.ErrUnavailable, redlatch.ErrClosed, redlatch.ErrReentry, redlatch.ErrUninitialized, redlatch.ErrNotHeld,
		fence.ErrUnfenced, &fence.StaleError{Token: 33, Highest: 34}, election.ErrResigned,
		redlatchgocron.ErrNotLocked, redlatchgocron.ErrNotLeader,
		&redlatch.BusyError{Name: "x", Kind: redlatch.KindLock, Owner: "o:1"}, &redlatch.BusyError{Name: "x", Kind: redlatch.KindLock},
		&redlatch.BusyError{Name: "x", Kind: redlatch.KindSemaphore}, &redlatch.BusyError{Name: "x", Kind: redlatch.KindExpirable},
		&redlatch.BusyError{Name: "x", Kind: redlatch.KindLatch}, &redlatch.BusyError{Name: "x", Kind: redlatch.KindRateLimiter},
		&redlatch.BusyError{Name: "x", Kind: redlatch.KindBarrier}, &redlatch.BusyError{Name: "x", Kind: redlatch.KindReadWrite},
		&redlatch.LostError{Name: "x", Kind: redlatch.KindLock}, &redlatch.LostError{Name: "x", Kind: redlatch.KindExpirable},
		&redlatch.AckError{Name: "x", Want: 2, Got: 1}, &barrier.BrokenError{Name: "x"},
		fmt.Errorf("redlatch: %w", &driver.RunError{Outcome: driver.Refused, Err: io.EOF}),
		fmt.Errorf("redlatch: %w", &driver.RunError{Outcome: driver.NotExecuted, Err: io.EOF}),
		fmt.Errorf("redlatch: %w", &driver.RunError{Err: io.EOF}),
	} {
		text := err.Error()
		if !slices.ContainsFunc(texts, func(begins *regexp.Regexp) bool {
			return begins.MatchString(text) || begins.MatchString(text+": ") // a sentinel alone
		}) {
			t.Errorf("docs/faq.md does not show %q", text)
		}
	}
	for _, reason := range []redlatch.LossReason{redlatch.LostExpired, redlatch.LostGone, redlatch.LostRevoked, redlatch.LostMaxHold, redlatch.LostLease} {
		_, why, _ := strings.Cut((&redlatch.LostError{Name: "x", Reason: reason}).Error(), "lost: ")
		if !strings.Contains(page(t, "../../docs/production.md"), "`"+why+"`") {
			t.Errorf("docs/production.md does not show %q", why)
		}
	}
}

// exportedErrors returns the names of the variables Err... and of the types
// ...Error that a user can import.
func exportedErrors(t *testing.T) (all []string) {
	t.Helper()
	walkPublished(t, func(name string) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			general, is := decl.(*ast.GenDecl)
			if !is {
				continue
			}
			for _, spec := range general.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if general.Tok == token.VAR && strings.HasPrefix(name.Name, "Err") {
							all = append(all, name.Name)
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
						all = append(all, spec.Name.Name)
					}
				}
			}
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// walkPublished calls f with the name of each file, tests aside, of what a user
// can import.
func walkPublished(t *testing.T, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{"internal", "tests", "tools", "cmd", "examples", "testdata"}, d.Name()) || len(d.Name()) > 1 && d.Name()[0] == '.' {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			f(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
