package pages

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Who compares himself with others has to say where that can be looked up: a test,
// a page, or a line of theirs.
func TestEachComparisonLinksToItsProof(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## Beside others\n")
	section, _, ends := strings.Cut(after, "\n## ")
	if !found || !ends {
		t.Fatal("README.md has no section about others")
	}
	proven := regexp.MustCompile(`^\[[^\]]+\]\([^)\s]+\)$`)
	rows := 0
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for _, cell := range cells[1:] {
			if cell = strings.TrimSpace(cell); !proven.MatchString(cell) {
				t.Errorf("%s:%s has no link", cells[0], cell)
			}
		}
	}
	if rows < 8 {
		t.Errorf("%d rows: does this test still read them?", rows)
	}
}
