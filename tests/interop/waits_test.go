package interop

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

var update = flag.Bool("update", false, "measure how long Redisson waits, and write that into docs/performance.md")

// waitsPart is what tests/bench adds to docs/performance.md.
const (
	waitsPart  = "../bench/waits.md"
	waitsPage  = "../../docs/performance.md"
	waitsTitle = "## Redisson's waiters\n"
)

// How long does a Redisson thread wait for a lock that a Go process takes over and
// over? Not parallel: it measures.
func TestRedissonsWaits(t *testing.T) {
	if !*update {
		t.Skip("measures for docs/performance.md: run it with -update")
	}
	needsServers(t)
	const length = 5 * time.Second
	var table strings.Builder
	for _, section := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
		for _, goroutines := range []int{1, 16} {
			for _, delay := range []time.Duration{0, 2 * time.Millisecond} {
				t.Run(fmt.Sprintf("goroutines=%d/section=%v/delay=%v", goroutines, section, delay), func(t *testing.T) {
					w := newWorld(t, cast{peer.Newest, "rueidis", peer.Plain}, testserver.Redis)
					java := w.openJava(sharedOrFail(t, w.version), w.slowly(delay))
					t.Cleanup(func() { _ = java.Close(w.ctx) })
					loop := peer.Loop{Name: w.name, MaxOps: 200, Duration: length}
					if _, err := java.Loop(w.ctx, loop); err != nil { // what the first calls cost is no wait
						t.Fatal(err)
					}
					crowd := w.goCrowd(goroutines, section)
					loop.MaxOps, loop.Section, loop.Pause, loop.Control = 0, section, time.Millisecond, "control"
					got, err := java.Loop(w.ctx, loop)
					crowd.stop()
					if err != nil {
						t.Fatal(err)
					}
					ours := 0
					for _, n := range crowd.sections {
						ours += n
					}
					ms := func(us int64) string { return fmt.Sprintf("%.1f", float64(us)/1000) }
					fmt.Fprintf(&table, "| %d | %v | %v | %d | %d | %s | %s | %s | %s |\n",
						goroutines, section, delay, ours, got.Ops, ms(got.P50), ms(got.P99), ms(got.Max), ms(got.ControlMax))
				})
			}
		}
	}
	t.Log("\n" + table.String())
	if t.Failed() {
		return
	}
	part, err := os.ReadFile(waitsPart)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(part), "|---|---|---|---|---|---|---|---|---|\n")
	if !found {
		t.Fatalf("%s has no such table", waitsPart)
	}
	text := head + "|---|---|---|---|---|---|---|---|---|\n" + table.String()
	if err := os.WriteFile(waitsPart, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(waitsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), waitsTitle)
	_, after, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatalf("%s has no such part", waitsPage)
	}
	if err := os.WriteFile(waitsPage, []byte(before+text+"\n## "+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
