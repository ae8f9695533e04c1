package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the folder of the root module.
const root = "../../.."

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Who mends the page alone would lose it with the next run, and figures that are not those of the files are nobody's.
func TestThePageIsThatOfTheFigures(t *testing.T) {
	want, err := Page(".")
	if err != nil {
		t.Fatal(err)
	}
	if contents(t, "docs/robustness.md") != want {
		t.Error("docs/robustness.md is not what the files of this folder give: cd tests && go run ./sim/replay -page ../docs/robustness.md")
	}
}

// A test that has another name now, or is gone, would leave a claim that nobody can check.
func TestEachFaultOfTheRecordHasItsTest(t *testing.T) {
	known := map[string]bool{}
	for _, f := range trackRecord {
		if !strings.Contains(contents(t, f.file), "\nfunc "+f.test+"(t *testing.T)") {
			t.Errorf("%s has no %s, which is to replay: %s", f.file, f.test, f.what)
		}
		if known[f.test] {
			t.Errorf("%s stands twice", f.test)
		}
		known[f.test] = true
	}
	if len(known) < 25 {
		t.Errorf("there are %d faults only", len(known))
	}
}

// What the page does not know would be missing without a word.
func TestThePageShowsWhatWasPlayedAndWhatWasNot(t *testing.T) {
	s, none := &Simulation{}, &Simulation{}
	s.Of("lock", OneServer).Add(&Played{Faults: map[string]int{"cut": 1, "flood": 7}})
	text := s.matrices(none)
	for _, want := range []string{"| a link is cut, one way or both | 1 |", "| `OOM` | – |", "| flood | 7 |", "### Sentinel, with real processes\n\nNothing was played here"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the matrices:\n%s", want, text)
		}
	}
	m := Mutants{Mutants: []Mutant{{Rule: "tokens", Name: "a", Seeds: 3}, {Rule: "tokens", Name: "b", Seeds: 1}, {Rule: "rates", Name: "c", Seeds: 9}}}
	if text, err := m.table(); err != nil || !strings.Contains(text, "| b |") || !strings.Contains(text, "(guarantees.md#turns) | none |") || m.median() != 3 {
		t.Errorf("%v, the median is %d, and the table is %s", err, m.median(), text)
	}
	m.Mutants = append(m.Mutants, Mutant{Rule: "manners"})
	if text, err := m.table(); err == nil {
		t.Errorf("an unknown rule is left out of %s", text)
	}
}

// Figures of real servers that are read wrong would be shown as what the simulation has found.
func TestACampaignOfRealProcessesIsRead(t *testing.T) {
	dir := t.TempDir()
	if c, err := campaign(dir); err != nil || c.real() != noCampaign {
		t.Errorf("without a campaign: %v, %s", err, c.real())
	}
	lines := `{"topology":"Sentinel","type":"lock","plays":1,"seconds":90,"holds":5,"faults":{"kill -9":2},"longest_overlap_ms":{"failover":1500}}
{"topology":"Sentinel","type":"lock","plays":1,"seconds":30,"holds":4,"faults":{"kill -9":1},"longest_overlap_ms":{"failover":500}}
`
	if err := os.WriteFile(filepath.Join(dir, CampaignFile), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := campaign(dir)
	if err != nil {
		t.Fatal(err)
	}
	none := &Simulation{}
	text := c.real() + none.matrices(c) + none.overlaps(c)
	for _, want := range []string{"| Sentinel | 2 | 2 | 3 | 9 |", "| kill -9 | 3 |", "| a failover to a replica that lags | – | – | 1.50 s |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, CampaignFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := campaign(dir); err == nil {
		t.Error("half a line is read as if it were none")
	}
}
