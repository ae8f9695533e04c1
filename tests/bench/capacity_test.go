package main

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

var update = flag.Bool("update", false, "write the model's tables into docs/production.md")

const guide = "../../docs/production.md"

func TestTheGuideHasTheModelsTables(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	is := string(text)
	for name, want := range map[string]string{"capacity": capacityTable(measuredCosts), "cluster": clusterTable(measuredCosts)} {
		begin := "<!-- " + name + ": `cd tests && go test ./bench -run TestTheGuideHasTheModelsTables -update` writes this table -->\n"
		end := "<!-- the end of " + name + " -->\n"
		before, rest, ok := strings.Cut(is, begin)
		shown, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the table %s", guide, name)
		}
		if shown != want && !*update {
			t.Errorf("%s shows another table than this, which -update writes:\n%s", guide, want)
		}
		is = before + begin + want + end + after
	}
	if *update && is != string(text) {
		if err := os.WriteFile(guide, []byte(is), 0o644); err != nil { //nolint:gosec // as it was
			t.Fatal(err)
		}
	}
}

func TestRequestsWaitForThoseBeforeThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []demand
		want time.Duration
	}{
		{"nobody", nil, 0},
		{"each alone", []demand{{0, 0.5}, {1, 0.5}, {2, 0.5}}, 0},
		{"in a burst", []demand{{1, 0.5}, {1, 0.5}, {1, 0.5}}, time.Second},
		{"in any order", []demand{{2, 1}, {0, 3}}, time.Second},
		{"more than can be served", []demand{{0, 2}, {1, 2}, {2, 2}, {3, 2}}, 3 * time.Second},
	} {
		if got := wait(c.all); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A primary that is to be busy for half of the time at most is not planned to be
// busier, and one less would be.
func TestAsManyPrimariesAsItTakes(t *testing.T) {
	t.Parallel()
	for _, p := range fleets {
		n := p.primaries(measuredCosts)
		if alone := p.load(measuredCosts, 1<<40); alone.sum() >= halfACore {
			if n != 1 {
				t.Errorf("%+v: %d primaries, which are of no use", p, n)
			}
			continue
		}
		if got := p.load(measuredCosts, n).sum(); got > halfACore {
			t.Errorf("%+v: each of %d primaries is busy for %v of the time", p, n, got)
		}
		if n > 1 && p.load(measuredCosts, n-1).sum() <= halfACore {
			t.Errorf("%+v: %d primaries, and one less is enough", p, n)
		}
	}
}

// A script of a Cluster renews holds of one slot. The model must not have them
// share scripts as if there were no slots, nor more slots than there are names.
func TestHoldsOfOneSlotShareScripts(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	for _, holds := range []int{1, 100, 10_000, 300_000, 100 * slots} {
		var in [slots]int
		for range holds {
			in[wire.Slot(strconv.FormatUint(chance.Uint64(), 36))]++
		}
		want := 0
		for _, n := range in {
			want += (n + inScript - 1) / inScript
		}
		p := fleet{clients: 10, holds: 10 * holds, cluster: true}
		got := 3 * p.scripts(3)
		if math.Abs(got-float64(want)) > 0.05*float64(want) {
			t.Errorf("%d holds of a client are renewed in %v scripts, and not in %d", holds, got, want)
		}
		p.cluster = false
		if apart := 3 * p.scripts(3); apart < float64(holds)/inScript {
			t.Errorf("%d holds are renewed in %v scripts, of %d each at most", holds, apart, inScript)
		}
	}
}

// With more holds than a script of each slot can have, there are more scripts.
func TestFullScriptsAreSeveral(t *testing.T) {
	t.Parallel()
	const each = 100 * slots * inScript
	if got := (fleet{clients: 1, holds: each}).scripts(1); got != 100*slots {
		t.Errorf("%v scripts, want %d", got, 100*slots)
	}
	// In a Cluster the last script of each slot is half full, on average.
	if got := (fleet{clients: 1, holds: each, cluster: true}).scripts(1) / slots; math.Abs(got-100.5) > 0.1 {
		t.Errorf("in a Cluster %v scripts of each slot, want 100.5", got)
	}
}

// Whoever plans with the table's holds has primaries that are idle for half of
// their time, and could not have many more.
func TestAClusterBearsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	for _, n := range clusterSizes {
		for _, cluster := range []bool{false, true} {
			p := fleet{clients: 1_000, checked: checkedUsually, cluster: cluster}
			p.holds = p.most(measuredCosts, n)
			if got := p.load(measuredCosts, n).sum(); got > halfACore || got < halfACore-0.001 {
				t.Errorf("with %d holds each of %d primaries is busy for %v of the time", p.holds, n, got)
			}
		}
	}
	if p := (fleet{clients: 10_000, checked: checkedUsually, cluster: true}); p.most(measuredCosts, 10) != 0 {
		t.Error("clients whose checks take more than half of the time may have holds, too")
	}
}
