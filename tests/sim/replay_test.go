package sim

import (
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
)

// Package replay runs this test, where all follows from the seed. By itself it
// plays nothing.
func TestReplay(t *testing.T) {
	text := os.Getenv(PlanEnv)
	if text == "" {
		return
	}
	var plan Plan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	var r *Report
	synctest.Test(t, func(*testing.T) { r = Play(plan) })
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("\n" + ReportBegins + string(out) + "\n"); err != nil {
		t.Fatal(err)
	}
}
