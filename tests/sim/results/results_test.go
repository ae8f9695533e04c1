package results

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/tests/internal/folder"
	"github.com/redlatch/redlatch/tests/sim"
)

// root is the folder of the root module.
const root = "../../.."

// Who mends the page alone would lose it with the next run, and figures that are
// not those of the files are nobody's.
func TestThePageIsThatOfTheFigures(t *testing.T) {
	want, err := Page(".")
	if err != nil {
		t.Fatal(err)
	}
	if folder.At(t, root).Read("docs/robustness.md") != want {
		t.Error("docs/robustness.md is not what the files of this folder give: cd tests && go run ./sim/replay -page ../docs/robustness.md")
	}
}

// A test that has another name now, or is gone, would leave a claim that nobody
// can check.
func TestEachFaultOfTheRecordHasItsTest(t *testing.T) {
	known := map[string]bool{}
	for _, f := range trackRecord {
		if !strings.Contains(folder.At(t, root).Read(f.file), "\nfunc "+f.test+"(t *testing.T)") {
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

// A fault without a name on the page would be shown as nothing, and a loss of data
// with a bound that nobody has promised.
func TestThePageNamesEachFault(t *testing.T) {
	var keeping, losing []string
	for _, x := range troubles {
		if x.told == "" {
			keeping = append(keeping, x.name)
		} else {
			losing = append(losing, x.name)
		}
	}
	slices.Sort(keeping)
	slices.Sort(losing)
	if want := slices.Sorted(slices.Values(slices.Concat(sim.Keeping(), sim.Replicated(), sim.Clustered()))); !slices.Equal(keeping, want) {
		t.Errorf("the page says of %q that they lose nothing, and not of %q", keeping, want)
	}
	if want := slices.Sorted(slices.Values(sim.Losing())); !slices.Equal(losing, want) {
		t.Errorf("the page says of %q that they lose data, and not of %q", losing, want)
	}
}

// What was not played, and what the page does not know, would be missing without a
// word.
func TestThePageShowsWhatWasPlayedAndWhatWasNot(t *testing.T) {
	s, none := &Simulation{}, &Simulation{}
	s.Of("lock", sim.OneServer).Add(&Played{Faults: map[string]int{"cut": 1}})
	s.Of("acked", sim.WithReplica).Add(&Played{Simulated: 6 * time.Minute, Faults: map[string]int{"lag": 1234}, Overlaps: map[string]time.Duration{"wipe": time.Second}})
	text, err := s.matrices(none)
	if err != nil {
		t.Fatal(err)
	}
	overlaps, err := s.overlaps(none)
	if err != nil {
		t.Fatal(err)
	}
	text += overlaps + s.figures()
	for _, want := range []string{
		"| a link is cut, one way or both | 1 | – |", "| `OOM` | – |", "| fault | acked |\n", "| the replica stands still | 1,234 |\n",
		"### Cluster, in fake time\n\nNothing was played here", "### Sentinel, with real processes\n\nNothing was played here",
		"| the server restarts without data | – | 1.00 s | – |", "| it restarts with older data | – | – | – |", "It took 0.1 simulated hours",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	for _, wrong := range []*Played{
		{Type: "lock", Topology: sim.OneServer, Faults: map[string]int{"flood": 7}},
		{Type: "red", Topology: sim.OneServer},
		{Type: "lock", Topology: sim.OneServer, Overlaps: map[string]time.Duration{"cut": 0}},
	} {
		s := &Simulation{Plays: []*Played{wrong}}
		text, err := s.matrices(none)
		if _, other := s.overlaps(none); err == nil && other == nil {
			t.Errorf("%+v is shown as\n%s", wrong, text)
		}
		if _, err := none.overlaps(s); err == nil && wrong.Overlaps != nil {
			t.Errorf("%+v is shown with a bound that nobody has promised", wrong)
		}
	}
}

// A mutant that nobody has looked for proves nothing, and neither does one that
// the page leaves out.
func TestThePageShowsEachMutant(t *testing.T) {
	m := Mutants{Mutants: []Mutant{
		{Rule: "tokens", Name: "a", Seeds: 3}, {Rule: "tokens", Name: "b", Seeds: 1}, {Rule: "rates", Name: "c", Seeds: 9}, {Rule: "rates", Name: "d"},
	}}
	table, err := m.table()
	if err != nil {
		t.Fatal(err)
	}
	text := m.text() + table
	for _, want := range []string{
		"| b |", "(guarantees.md#turns) | none |", "| d |  | not looked for yet |", "It found 3 mutants. The median number of seeds is 3.", "Of 1 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	m.Mutants = append(m.Mutants, Mutant{Rule: "manners"})
	if text, err := m.table(); err == nil {
		t.Errorf("an unknown rule is left out of %s", text)
	}
	m.Mutants = m.Mutants[3:4]
	if text, err := m.table(); err == nil {
		t.Errorf("nothing was found, and the table is %s", text)
	}
}

// Figures of real servers that are read wrong would be shown as what the
// simulation has found.
func TestACampaignOfRealProcessesIsRead(t *testing.T) {
	dir := t.TempDir()
	if c, err := campaign(dir); err != nil || c.real() != noCampaign {
		t.Errorf("without a campaign: %v, %s", err, c.real())
	}
	lines := []Line{
		{
			Source: Source{Commit: "0123456789abcdef", Date: "2026-01-02"}, Topology: "Sentinel", Type: "lock", Seconds: 90, Holds: 5,
			By: map[string]int{"go-redis": 3, "rueidis": 2}, Faults: map[string]int{"process is killed": 2}, Overlaps: map[string]float64{"failover": 1500},
		},
		{
			Source: Source{Commit: "0123456789abcdef", Date: "2026-01-02"}, Topology: "Sentinel", Type: "lock", Seconds: 36, Holds: 4, Wrong: true,
			By: map[string]int{"go-redis": 4, "rueidis": 0}, Faults: map[string]int{"process is killed": 1}, Overlaps: map[string]float64{"failover": 500},
		},
	}
	if err := WriteLines(filepath.Join(dir, CampaignFile), lines); err != nil {
		t.Fatal(err)
	}
	c, err := campaign(dir)
	if err != nil {
		t.Fatal(err)
	}
	none := &Simulation{}
	met, err := none.matrices(c)
	if err != nil {
		t.Fatal(err)
	}
	overlaps, err := none.overlaps(c)
	if err != nil {
		t.Fatal(err)
	}
	text := c.real() + met + overlaps
	for _, want := range []string{
		"commit `0123456789ab`, 2026-01-02", "| of go-redis | of rueidis | plays that went wrong |", "| Sentinel | 2 | 2.1 | 3 | 9 | 7 | 2 | 1 |",
		"| process is killed | 3 |", "| a replica that lags takes its place | – | – | 1.50 s |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, wrong := range []*Played{{Type: "lock", Topology: "Moon"}, {Type: "latch", Topology: "Sentinel"}} {
		if _, err := none.matrices(&Simulation{Plays: []*Played{wrong}}); err == nil {
			t.Errorf("the page shows nothing of %+v, and says nothing", wrong)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, CampaignFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := campaign(dir); err == nil {
		t.Error("half a line is read as if it were none")
	}
}
