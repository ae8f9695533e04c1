package campaign

import (
	"bytes"
	"encoding/json"
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
)

// resultsEnv is the variable with the file for the figures, a line of JSON for each play. Next to it, with .txt at the end, is a table.
const resultsEnv = "REDLATCH_CAMPAIGN_RESULTS"

// A figure is what is told of a play.
type figure struct {
	Topology string         `json:"topology"`
	Server   string         `json:"server"`
	Version  string         `json:"version"`
	Type     string         `json:"type"`
	Redisson string         `json:"redisson,omitempty"` // the version of the process beside ours
	Plays    int            `json:"plays"`
	Seconds  float64        `json:"seconds"`
	Lost     float64        `json:"lost_seconds"` // of these, in which data may have been lost
	Holds    int            `json:"holds"`
	Faults   map[string]int `json:"faults"`

	// Overlaps are the longest times, in ms, for which two had what one may have, by the way to lose data. A way that made no two have
	// it has 0.
	Overlaps map[string]float64 `json:"longest_overlap_ms"`
}

func (f figure) String() string {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// figure returns that of a play which is over.
func (c *campaign) figure(v sim.Verdict) figure {
	server, _, _ := strings.Cut(string(c.nodes[0].Kind()), "-")
	f := figure{
		Topology: c.topology, Server: server, Version: c.nodes[0].Version(), Type: c.typ, Plays: 1,
		Seconds: (now() - c.began).Seconds(), Holds: v.Claims, Faults: c.struck, Overlaps: map[string]float64{},
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

// figures are those of all plays.
type figures struct {
	*testing.T

	mu  sync.Mutex
	all []figure
}

func (f *figures) add(one figure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, one)
}

// tell writes them to a file, if there is to be one, and a table.
func (f *figures) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	table := tabulate(f.all)
	f.Log(table)
	file := os.Getenv(resultsEnv)
	if file == "" {
		return
	}
	var lines bytes.Buffer
	for _, one := range f.all {
		fmt.Fprintln(&lines, one)
	}
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		f.Error(err)
	}
	if err := os.WriteFile(file+".txt", []byte(table), 0o600); err != nil {
		f.Error(err)
	}
}

// tabulate adds up what there is of each topology, of each type in it, and of each fault.
func tabulate(all []figure) string {
	var names []string // of topologies, in their order
	rows := []map[string]map[string]float64{{}, {}, {}, {}}
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
		for what, n := range f.Faults {
			sum(2, what, f.Topology, float64(n))
		}
		for what, ms := range f.Overlaps {
			sum(3, what, f.Topology, max(0, ms-rows[3][what][f.Topology]))
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for i, title := range []string{"in all", "holds", "faults", "longest overlap, ms"} {
		fmt.Fprintf(&out, "\n%-36s", title)
		for _, name := range names {
			fmt.Fprintf(&out, "%10s", name)
		}
		for _, row := range slices.Sorted(maps.Keys(rows[i])) {
			fmt.Fprintf(&out, "\n  %-34s", row)
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
