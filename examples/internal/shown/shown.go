// Package shown is for the tests of the examples.
package shown

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var number = regexp.MustCompile(`\d+`)

// Check fails t if the README beside the program does not show what it has
// printed. Its numbers, which differ from run to run, may be others.
func Check(t *testing.T, printed string) {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := func(text string) string { return number.ReplaceAllString(text, "0") }
	if !strings.Contains(plain(string(readme)), "\n```\n"+plain(printed)+"```\n") {
		t.Errorf("README.md does not show this:\n%s", printed)
	}
}
