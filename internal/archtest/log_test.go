package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// logged is a row of the table of lines: the message and its level.
var logged = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (ERROR|WARN|INFO|DEBUG) \\|")

// levels are those of the methods and constants of log/slog.
var levels = map[string]string{
	"Error": "ERROR", "Warn": "WARN", "Info": "INFO", "Debug": "DEBUG", "LevelError": "ERROR", "LevelWarn": "WARN", "LevelInfo": "INFO", "LevelDebug": "DEBUG",
}

// Who reads a line of the log finds in docs/production.md what it means: each
// line, and none that is never written.
func TestTheProductionGuideHasEachLineOfTheLog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "docs/production.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range logged.FindAllStringSubmatch(string(text), -1) {
		told[m[1]] = m[2]
	}
	written := map[string]string{}
	for _, src := range sources(t) {
		if src.dir != "." && src.dir != "connect" {
			continue
		}
		ast.Inspect(src.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if message, level := lineOf(call); message != "" {
					written[message] = level
				}
			}
			return true
		})
	}
	if !maps.Equal(told, written) {
		t.Errorf("docs/production.md tells of\n%q\nand these are logged:\n%q", told, written)
	}
	if len(written) < 11 {
		t.Errorf("only %d lines were found: does this test still read the code?", len(written))
	}
}

// lineOf returns what a call logs, if it calls a method of a logger that a field
// named log or Logger has.
func lineOf(call *ast.CallExpr) (message, level string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if of, ok := method.X.(*ast.SelectorExpr); !ok || of.Sel.Name != "log" && of.Sel.Name != "Logger" {
		return "", ""
	}
	level = levels[method.Sel.Name]
	for _, arg := range call.Args {
		switch arg := arg.(type) {
		case *ast.SelectorExpr:
			if named := levels[arg.Sel.Name]; named != "" {
				level = named
			}
		case *ast.BasicLit:
			if arg.Kind == token.STRING {
				message, _ = strconv.Unquote(arg.Value)
				return message, level
			}
		}
	}
	return "", ""
}

// Each attribute of the longest line has a row of its own, and each row is an
// attribute.
func TestTheProductionGuideHasEachAttributeOfALoss(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "docs/production.md"))
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)\n### lock lost\n.*?\n## `).Find(text)
	var told, written []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllSubmatch(part, -1) {
		for _, name := range quoted.FindAllSubmatch(row[1], -1) {
			told = append(told, string(name[1]))
		}
	}
	events, err := os.ReadFile(filepath.Join(top, "events.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:ms|optional|slog\.\w+)\("(\w+)", `).FindAllSubmatch(events, -1) {
		written = append(written, string(m[1]))
	}
	slices.Sort(told)
	slices.Sort(written)
	if !slices.Equal(told, written) {
		t.Errorf("docs/production.md tells of\n%q\nand the line has\n%q", told, written)
	}
}
