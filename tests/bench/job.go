package main

import (
	"fmt"
	"time"
)

// A job is what a measuring process is told, as JSON in its environment.
type job struct {
	Implementation string        `json:"implementation"`
	Scenario       scenario      `json:"scenario"`
	Process        int           `json:"process"` // 0..Scenario.Processes-1
	Addr           string        `json:"addr"`
	Name           string        `json:"name"`       // of the lock, or the start of the names
	Page           string        `json:"page"`       // file for openPage; empty if not contended
	Warm           time.Duration `json:"warm"`       // before "ready"
	Length         time.Duration `json:"length"`     // from "go" to "stop", for who cannot be stopped
	ScriptsDir     string        `json:"scriptsDir"` // where lock.take.lua is

	// Files, or empty.
	CPUProfile   string `json:"cpuProfile"`
	MemProfile   string `json:"memProfile"`
	BlockProfile string `json:"blockProfile"`
}

// jobEnv carries the job of a measuring process.
const jobEnv = "REDLATCH_BENCH_JOB"

// key is the name of the lock that goroutine g takes.
func (j job) key(g int) string {
	if j.Scenario.Contended {
		return j.Name
	}
	return fmt.Sprintf("%s:%d:%d", j.Name, j.Process, g)
}

// keys returns key(g) for all goroutines.
func (j job) keys() []string {
	keys := make([]string, j.Scenario.Goroutines)
	for g := range keys {
		keys[g] = j.key(g)
	}
	return keys
}

// A procResult is what a measuring process answers, as JSON. Everything covers
// the time between "go" and "stop".
type procResult struct {
	Elapsed      time.Duration `json:"elapsed"`
	Acquisitions []int64       `json:"acquisitions"` // by goroutine
	Crossings    int64         `json:"crossings"`    // acquisitions that followed another process's
	CPU          time.Duration `json:"cpu"`
	Mallocs      uint64        `json:"mallocs"`
	AllocBytes   uint64        `json:"allocBytes"`
	Op           histogram     `json:"op"`      // one call, acquire or release
	Pair         histogram     `json:"pair"`    // acquire and release; the time of the section is left out
	HandOff      histogram     `json:"handOff"` // start of an unlock to return of the lock in another goroutine
	Violations   int64         `json:"violations"`
	Errors       int64         `json:"errors"`
	FirstError   string        `json:"firstError"`
	Hung         int           `json:"hung"` // goroutines still in a call long after the end
}

func (r procResult) total() (n int64) {
	for _, a := range r.Acquisitions {
		n += a
	}
	return n
}
