package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// docs/cli.md knows every command, flag, exit code and JSON field.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, cmd := range (&app{}).root().Commands() {
		if cmd.Hidden {
			continue
		}
		contains(t, doc, "redlatch "+cmd.Use)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "output" {
				contains(t, doc, "`-o json`")
				return
			}
			contains(t, doc, "--"+f.Name)
			if f.Shorthand != "" {
				contains(t, doc, "`-"+f.Shorthand+"`")
			}
		})
	}
	for _, code := range []int{
		exitConflict, exitProblem, exitUsage, exitData, exitUnavailable, exitSoftware, exitSystem, exitLost, exitTempFail,
		exitCannotRun, exitNotFound,
	} {
		contains(t, doc, "\n| "+strconv.Itoa(code)+" |")
	}
	for field := range strings.FieldsSeq("name kind held ttl_ms holders owner client count redlatch token queue mode value until_ms released version revision modified go platform severity servers findings check what consequence remedy") {
		contains(t, doc, "`"+field+"`")
	}
}
