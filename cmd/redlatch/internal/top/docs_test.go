package top

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

// docs/cli.md shows what top draws: its head, the worst locks, and its foot.
func TestTheDocsShowWhatTopDraws(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "\n## top\n")
	_, shown, _ = strings.Cut(shown, "\n```\n")
	shown, _, _ = strings.Cut(shown, "\n```\n")
	want := strings.Split(shown, "\n")
	if len(want) != 8 || want[6] != "..." {
		t.Fatalf("docs/cli.md shows\n%s", shown)
	}

	free := overview.Lock{Name: "stock", Kind: "lock", Who: overview.Who{Lost: []overview.Claim{{Client: "u", Owner: "u:1", Reason: "expired"}}}}
	s := newScreen(t,
		held("orders:42", "billing@host-7 pid 4121", 12_300, 9_800, 4_000), held("jobs:nightly", "report.sh@host-8 pid 77", 86_000, 80_000),
		free, held("zones", "billing@host-7 pid 4121", 1_000))
	s.Server = "redis://localhost:6379"
	s.last.At = time.Date(2026, 1, 2, 14, 3, 22, 0, time.UTC)
	var got []string
	for line := range strings.SplitSeq(s.text(), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
	for i, line := range want {
		at := i
		if i > 6 {
			at = len(got) - 1
		}
		if i != 6 && got[at] != strings.TrimRight(line, " ") {
			t.Errorf("top draws\n%s\nand docs/cli.md\n%s", got[at], line)
		}
	}
}
