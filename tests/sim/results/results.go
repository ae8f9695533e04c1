// Package results has the figures of docs/robustness.md, as make robustness has found them, and writes the page of them.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

	Real bool `json:"-"` // processes and servers were real, and so was the time
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
	Seeds uint64 `json:"seeds"` // that it took to find it
	Most  uint64 `json:"most"`  // that it may take
}

// Write writes figures into a file.
func Write(file string, figures any) error {
	text, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // it is published
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
		var line struct {
			Topology, Type string
			Plays, Holds   int
			Seconds        float64
			Faults         map[string]int
			Overlaps       map[string]float64 `json:"longest_overlap_ms"`
		}
		if err = lines.Decode(&line); err != nil {
			break
		}
		p := all.Of(line.Type, line.Topology)
		p.Real = true
		overlaps := map[string]time.Duration{}
		for what, ms := range line.Overlaps {
			overlaps[what] = time.Duration(ms * float64(time.Millisecond))
		}
		p.Add(&Played{Seeds: line.Plays, Holds: line.Holds, Simulated: time.Duration(line.Seconds * float64(time.Second)), Faults: line.Faults, Overlaps: overlaps})
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return all, nil
}
