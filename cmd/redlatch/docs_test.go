package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// docs/cli.md knows every command, flag, exit code and JSON field, and docs/faq.md
// what to do about an exit code.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	faq, err := os.ReadFile("../../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range (&app{ui: &ui{}}).root().Commands() {
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
		exitConfig, exitCannotRun, exitNotFound,
	} {
		contains(t, doc, "\n| "+strconv.Itoa(code)+" |")
		if !regexp.MustCompile("(?m)^\\| (`\\d+`, )?`" + strconv.Itoa(code) + "`").Match(faq) {
			t.Errorf("docs/faq.md does not say what to do about the exit code %d", code)
		}
	}
	for field := range strings.FieldsSeq("name kind exists waiting claims others silent evidence by identity program host pid labels answered for_ms renewed site note held ttl_ms holders owner client count redlatch token queue mode value until_ms total rate permits interval_ms per_client keep_alive_ms generation released version revision modified go platform url addresses master_name database user password sentinel_user sentinel_password client_name prefix protocol tls dial_timeout_ms timeout_ms watchdog_ms fair_lock_wait_ms codec pubsub acks ack_timeout_ms warnings cacert cert key sni min_version verify line text severity servers findings check what consequence remedy at change reason waiters lock") {
		contains(t, doc, "`"+field+"`")
	}
}

// docs/security.md shows what redlatch acl prints.
func TestDocsShowRule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := func(args ...string) []string {
		var out strings.Builder
		root := (&app{ui: &ui{out: &out, err: io.Discard}}).root()
		root.SetArgs(append([]string{"acl"}, args...))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(out.String())
	}
	plain := rule()
	for marker, words := range map[string][]string{
		"redlatch acl orders:":    rule("orders:"),
		"redlatch acl --sentinel": rule("--sentinel"),
		"redlatch acl --watch":    rule("--watch"),
		"redlatch acl --doctor, beyond redlatch acl": slices.DeleteFunc(rule("--doctor"), func(word string) bool {
			return slices.Contains(plain, word)
		}),
	} {
		want := "\n<!-- " + marker + " -->\n```\n" + strings.Join(wrapped(strings.Join(words, " "), 140), "\n") + "\n```\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/security.md should have this:\n%s", want)
		}
	}
}
