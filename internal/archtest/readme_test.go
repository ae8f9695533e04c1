package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every line of Go in the README stands in an Example, which is compiled.
func TestTheReadmesSnippetsAreExamples(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]bool)
	for _, file := range []string{"example_test.go", "dashboard/example_test.go", "redlatchgoredis/example_test.go", "redlatchotel/example_test.go", "redlatchprom/example_test.go"} {
		examples, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(examples)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	snippets := 0
	for i, part := range strings.Split(string(readme), "```") {
		if i%2 == 0 || !strings.HasPrefix(part, "go\n") {
			continue
		}
		snippets++
		for line := range strings.Lines(strings.TrimPrefix(part, "go\n")) {
			if line = strings.TrimSpace(line); line != "" && !lines[line] {
				t.Errorf("no Example has the line %q", line)
			}
		}
	}
	if snippets == 0 {
		t.Error("the README has no Go")
	}
}
