package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machines are the packages that have states. Each has a page, its doc.go.
var machines = []string{"barrier", "gate", "handoff", "lock", "multi", "notify", "permit", "poll", "ratequeue", "renew", "request", "revoke"}

// The page of a package says what it promises and what it does not know, and draws
// its states: else one would have to find that out from the code, which knows no
// better.
func TestEachMachineHasAPage(t *testing.T) {
	for _, name := range machines {
		text, err := os.ReadFile(filepath.Join(top, "internal", name, "doc.go"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(text)
		for what, there := range map[string]bool{
			"a page of 20 lines":         strings.Count(page, "\n") >= 20,
			"a drawing":                  strings.Contains(page, "──►"),
			"what it does not know":      strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(page, "//", "")), " "), "not know"),
			"nothing but comments in it": !slices.ContainsFunc(strings.Split(page, "\n"), isCode),
		} {
			if !there {
				t.Errorf("internal/%s/doc.go: no %s", name, what)
			}
		}
	}
}

func isCode(line string) bool {
	return line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "package ")
}
