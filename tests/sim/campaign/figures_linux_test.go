package campaign

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/tests/interop/peer"
	"github.com/redlatch/redlatch/tests/sim"
	"github.com/redlatch/redlatch/tests/sim/results"
)

// resultsEnv is the variable with the file for the figures, a line of JSON for
// each play. Next to it, with .txt at the end, is a table.
const resultsEnv = "REDLATCH_CAMPAIGN_RESULTS"

// figure returns that of a play which is over.
func (c *campaign) figure(v sim.Verdict) results.Line {
	server, _, _ := strings.Cut(string(c.nodes[0].Kind()), "-")
	f := results.Line{
		Topology: c.topology, Server: server, Version: c.nodes[0].Version(), Type: c.typ,
		Seconds: (now() - c.began).Seconds(), Holds: v.Claims, By: c.by(), Faults: c.struck, Overlaps: map[string]float64{},
	}
	if c.redisson != nil {
		f.Redisson = peer.Newest
	}
	for _, l := range c.losses {
		f.Lost += (l.To - l.From).Seconds()
	}
	for what, d := range v.Overlaps {
		f.Overlaps[what] = float64(d) / float64(time.Millisecond)
	}
	return f
}

// rivalName is what the process of Redisson is called beside our adapters.
const rivalName = "Redisson"

// by returns how many holds each adapter had, and Redisson if it took part.
func (c *campaign) by() map[string]int {
	had := map[string]int{}
	for _, name := range adapters {
		had[name] = 0
	}
	if c.redisson != nil {
		had[rivalName] = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for claim := range c.lines {
		if process := claim[0]; process < firstRival {
			had[adapterOf(process)]++
		} else {
			had[rivalName]++
		}
	}
	return had
}

// idle says who took part and never had anything, in all plays of a topology or in
// all of a type: they show nothing of it.
func idle(all []results.Line) (wrong []string) {
	had := map[string]int{}
	for _, f := range all {
		for who, n := range f.By {
			for _, where := range []string{f.Topology, f.Type} {
				had[who+" never has anything: "+where] += n
			}
		}
	}
	for text, n := range had {
		if n == 0 {
			wrong = append(wrong, text)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// A fleet of which one adapter cannot acquire is as quiet as one in which nothing
// goes wrong.
func TestWhoNeverHasAnythingIsNamed(t *testing.T) {
	all := []results.Line{
		{Topology: "single", Type: "lock", By: map[string]int{"go-redis": 1, "rueidis": 0, rivalName: 0}},
		{Topology: "single", Type: "fair", By: map[string]int{"go-redis": 1, "rueidis": 3}},
		{Topology: "Cluster", Type: "lock", By: map[string]int{"go-redis": 0, "rueidis": 0, rivalName: 5}},
		{Topology: "Cluster", Type: "fair", Wrong: true}, // it did not get to its end
	}
	want := []string{
		"Redisson never has anything: single", "go-redis never has anything: Cluster", "rueidis never has anything: Cluster",
		"rueidis never has anything: lock",
	}
	if got := idle(all); !slices.Equal(got, want) {
		t.Errorf("idle are %q, want %q", got, want)
	}
}

// figures are those of all plays.
type figures struct {
	*testing.T

	source results.Source

	mu  sync.Mutex
	all []results.Line
}

func (f *figures) add(one results.Line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.Source = f.source
	f.all = append(f.all, one)
}

// tell writes them to a file, if there is to be one, and a table. It fails if
// somebody never had anything.
func (f *figures) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	table := tabulate(f.all)
	f.Log(table)
	for _, text := range idle(f.all) {
		f.Error(text)
	}
	file := os.Getenv(resultsEnv)
	if file == "" {
		return
	}
	if err := results.WriteLines(file, f.all); err != nil {
		f.Error(err)
	}
	if err := os.WriteFile(file+".txt", []byte(table), 0o600); err != nil {
		f.Error(err)
	}
}

// tabulate adds up what there is of each topology, of each type in it, and of each
// fault.
func tabulate(all []results.Line) string {
	var names []string // of topologies, in their order
	rows := []map[string]map[string]float64{{}, {}, {}, {}, {}}
	sum := func(section int, row, topology string, n float64) {
		if rows[section][row] == nil {
			rows[section][row] = map[string]float64{}
		}
		rows[section][row][topology] += n
	}
	for _, f := range all {
		if !slices.Contains(names, f.Topology) {
			names = append(names, f.Topology)
		}
		sum(0, "plays", f.Topology, 1)
		sum(0, "seconds", f.Topology, f.Seconds)
		sum(0, "seconds of losses", f.Topology, f.Lost)
		sum(0, "holds", f.Topology, float64(f.Holds))
		typ := f.Type
		if f.Redisson != "" {
			typ += ", with Redisson"
		}
		sum(1, typ, f.Topology, float64(f.Holds))
		for who, n := range f.By {
			sum(2, who, f.Topology, float64(n))
		}
		for what, n := range f.Faults {
			sum(3, what, f.Topology, float64(n))
		}
		for what, ms := range f.Overlaps {
			sum(4, what, f.Topology, max(0, ms-rows[4][what][f.Topology]))
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for i, title := range []string{"in all", "holds", "holds by", "faults", "longest overlap, ms"} {
		fmt.Fprintf(&out, "\n%-40s", title)
		for _, name := range names {
			fmt.Fprintf(&out, "%10s", name)
		}
		for _, row := range slices.Sorted(maps.Keys(rows[i])) {
			fmt.Fprintf(&out, "\n  %-38s", row)
			for _, name := range names {
				text := ""
				if n, ok := rows[i][row][name]; ok {
					text = fmt.Sprintf("%.0f", n)
				}
				fmt.Fprintf(&out, "%10s", text)
			}
		}
	}
	return out.String() + "\n"
}
