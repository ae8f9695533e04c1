package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a reader copies from these pages is run, or is a whole program that is
// compiled: tests/pages compiles the snippets of all pages.
func TestTheSnippetsOfThePagesAreRun(t *testing.T) {
	for page, files := range map[string][]string{
		"README.md":          {"examples/first/main.go"},
		"docs/quickstart.md": {"examples/quickstart/main.go", "examples/quickstart/main_test.go"},
		"docs/recipes.md":    {"tests/locks/recipes_test.go", "fence/example_test.go"},
	} {
		lines := make(map[string]bool)
		for _, file := range files {
			for line := range strings.Lines(contents(t, file)) {
				lines[strings.TrimSpace(line)] = true
			}
		}
		snippets := 0
		for i, part := range strings.Split(contents(t, page), "```") {
			if i%2 == 0 || !strings.HasPrefix(part, "go\n") {
				continue
			}
			snippets++
			for line := range strings.Lines(strings.TrimPrefix(part, "go\n")) {
				if line = strings.TrimSpace(line); line != "" && !lines[line] {
					t.Errorf("%s: %q do not have the line %q", page, files, line)
				}
			}
		}
		if snippets == 0 {
			t.Errorf("%s has no Go", page)
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
