package redlatch_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holdctx"
)

// Whoever looks up a type finds its values there. go doc sees that they are of the type
// only if their declaration names it: a conversion does not.
func TestGoDocListsTheValuesOfATypeWithIt(t *testing.T) {
	files := token.NewFileSet()
	var parsed []*ast.File
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	pkg, err := doc.NewFromFiles(files, parsed, "github.com/redlatch/redlatch")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, typ := range pkg.Types {
		for _, c := range typ.Consts {
			listed[typ.Name] = append(listed[typ.Name], c.Names...)
		}
	}
	for typ, values := range map[string][]string{
		"LossReason": {"LostExpired", "LostGone", "LostRevoked", "LostMaxHold", "LostLease"},
		"Acks":       {"AcksAuto", "AcksOff", "AcksBestEffort", "AcksAny"},
		"PubSub":     {"PubSubAuto", "PubSubClassic", "PubSubSharded", "PubSubBoth"},
		"HandOff":    {"HandOffLocal", "HandOffNone"},
	} {
		if !slices.Equal(listed[typ], values) {
			t.Errorf("%s has %v, want %v", typ, listed[typ], values)
		}
	}
}

// The engines say how something was lost in words of their own, which become the user's.
func TestLossReasonsAreThoseOfTheEngines(t *testing.T) {
	for reason, engines := range map[redlatch.LossReason]holdctx.Reason{
		redlatch.LostExpired: holdctx.Expired, redlatch.LostGone: holdctx.Gone,
		redlatch.LostRevoked: holdctx.Revoked, redlatch.LostMaxHold: holdctx.MaxHold, redlatch.LostLease: holdctx.Lease,
	} {
		if string(reason) != string(engines) {
			t.Errorf("%q is %q of the engines", reason, engines)
		}
	}
}
