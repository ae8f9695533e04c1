// Package results has the figures of docs/robustness.md, as make robustness has
// found them, and writes the page of them.
package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The files of the figures, in the folder of this package.
const (
	SimulationFile = "simulation.json"
	MutantsFile    = "mutants.json"
	CampaignFile   = "campaign.json" // what make campaign writes; it may be missing
)

// A Source says of what the figures are.
type Source struct {
	Commit string `json:"commit"` // the last one that changed what is tested, and not only tests or pages
	Date   string `json:"date"`
}

// A Simulation is what make sim has played.
type Simulation struct {
	Source

	Plays []*Played `json:"plays"`
}

// Played is what was played of a type on a topology.
type Played struct {
	Type      string                   `json:"type"`
	Topology  string                   `json:"topology"`
	Seeds     int                      `json:"seeds"`
	Wrong     int                      `json:"wrong"` // of the seeds
	Simulated time.Duration            `json:"simulated"`
	Scripts   int                      `json:"scripts"`
	Holds     int                      `json:"holds"`
	Told      int                      `json:"told"`     // of a loss
	Excused   int                      `json:"excused"`  // holds that a loss of data may have taken
	Lost      int                      `json:"lost"`     // requests and replies
	Late      int                      `json:"late"`     // requests
	Faults    map[string]int           `json:"faults"`   // that struck
	Overlaps  map[string]time.Duration `json:"overlaps"` // the longest, by how data was lost

	By map[string]int `json:"-"` // of the holds, if processes were real: by who had them
}

// A Line is what a campaign of real processes writes of one play, as JSON in a
// line.
type Line struct {
	Source

	Topology string         `json:"topology"`
	Server   string         `json:"server"`
	Version  string         `json:"version"`
	Type     string         `json:"type"`
	Redisson string         `json:"redisson,omitempty"` // the version of the process beside ours
	Wrong    bool           `json:"wrong"`
	Seconds  float64        `json:"seconds"`
	Lost     float64        `json:"lost_seconds"` // of these, in which data may have been lost
	Holds    int            `json:"holds"`
	By       map[string]int `json:"holds_by"` // all who took part, by their adapter, or Redisson
	Faults   map[string]int `json:"faults"`

	// Overlaps are the longest times, in ms, for which two had what one may have, by
	// the way to lose data, as the simulation calls it. A way that made no two have it
	// has 0.
	Overlaps map[string]float64 `json:"longest_overlap_ms"`
}

// Mutants are those of the library that the checker was to find.
type Mutants struct {
	Source

	Mutants []Mutant `json:"mutants"`
}

// A Mutant is the library with one fault that was put in on purpose.
type Mutant struct {
	Name  string `json:"name"`
	Rule  string `json:"rule"` // that it breaks
	Type  string `json:"type"`
	Seeds uint64 `json:"seeds"` // that it took to find it; 0: nobody has looked for it yet
	Most  uint64 `json:"most"`  // that it may take
}

// SourceNow returns what is tested now: the last commit that changed more than
// tests and pages.
func SourceNow(ctx context.Context) Source {
	cmd := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "log", "-1", "--format=%H", "--",
		":(top)*.go", ":(top)*.lua", ":(top)*.luainc", ":(exclude,top)tests", ":(exclude,top)*_test.go")
	commit, err := cmd.Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return Source{Commit: strings.TrimSpace(string(commit)), Date: time.Now().UTC().Format(time.DateOnly)}
}

// Write writes figures into a file.
func Write(file string, figures any) error {
	text, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // it is published
}

// WriteLines writes those of a campaign into a file.
func WriteLines(file string, lines []Line) error {
	var text bytes.Buffer
	for out := json.NewEncoder(&text); len(lines) > 0; lines = lines[1:] {
		if err := out.Encode(lines[0]); err != nil {
			return err
		}
	}
	return os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // it is published
}

func read(dir, file string, figures any) error {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, figures)
}

// campaign reads what real processes have played: a line of JSON for each play.
func campaign(dir string) (*Simulation, error) {
	all := &Simulation{}
	text, err := os.ReadFile(filepath.Join(dir, CampaignFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	for lines := json.NewDecoder(bytes.NewReader(text)); err == nil; {
		var line Line
		if err = lines.Decode(&line); err != nil {
			break
		}
		p := Played{
			Seeds: 1, Holds: line.Holds, Simulated: time.Duration(line.Seconds * float64(time.Second)),
			Faults: line.Faults, By: line.By, Overlaps: map[string]time.Duration{},
		}
		if line.Wrong {
			p.Wrong = 1
		}
		for what, ms := range line.Overlaps {
			p.Overlaps[what] = time.Duration(ms * float64(time.Millisecond))
		}
		all.Source = line.Source // all are of one run
		all.Of(line.Type, line.Topology).Add(&p)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return all, nil
}
