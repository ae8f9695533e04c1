package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Nobody could try all services, so the docs say which test stands for each row:
// it has to be there.
func TestEachKindOfManagedServiceIsSimulatedByATest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(top, "docs/connect.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Managed services\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests := map[string]bool{}
	testFiles(t, func(dir, text string) {
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			tests[dir+" "+match[1]] = true
		}
	})
	rows, simulated := 0, regexp.MustCompile("`(Test\\w+)` in `([\\w/]+)`")
	for row := range strings.Lines(section) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| what") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		named := simulated.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(named) == 0 {
			t.Errorf("a row names no test: %s", row)
		}
		for _, match := range named {
			if !tests[match[2]+" "+match[1]] {
				t.Errorf("there is no %s in %s", match[1], match[2])
			}
		}
	}
	if rows < 5 {
		t.Errorf("docs/connect.md has a table of %d kinds of services", rows)
	}
}
