package demo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// judged writes records, in pieces of the given size, and returns what the
// oracle makes of them.
func judged(t *testing.T, records string, piece int) (*oracle, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o, err := openOracle(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for len(records) > 0 {
		n := min(piece, len(records))
		if _, err := f.WriteString(records[:n]); err != nil {
			t.Fatal(err)
		}
		records = records[n:]
		if err := o.read(); err != nil {
			return o, err
		}
	}
	return o, nil
}

func TestOracle(t *testing.T) {
	for _, tc := range []struct {
		name, records     string
		entered, overlaps int
	}{
		{"nothing", "", 0, 0},
		{"one after the other", "1 10 1 enter\n2 10 1 leave\n3 20 2 enter\n4 20 2 leave\n", 2, 0},
		{"two at once", "1 10 1 enter\n2 20 2 enter\n3 10 1 leave\n4 20 2 leave\n", 2, 1},
		{"three at once", "1 10 1 enter\n2 20 2 enter\n3 30 3 enter\n", 3, 3},
		{"died inside", "1 10 1 enter\n2 10 1 died\n3 20 2 enter\n", 2, 0},
		{"died outside", "1 10 1 enter\n2 10 1 leave\n2 10 1 died\n3 20 2 enter\n", 2, 0},
		{"entered before the death", "1 10 1 enter\n3 20 2 enter\n2 10 1 died\n", 2, 1},
		{"its place is another process", "1 10 1 enter\n2 11 1 enter\n", 2, 1},
		{"the order of the file counts, and not the clock", "9 10 1 enter\n8 10 1 leave\n7 20 2 enter\n", 2, 0},
	} {
		for _, piece := range []int{1, 5, 1 << 20} {
			o, err := judged(t, tc.records, piece)
			if err != nil || o.entered != tc.entered || len(o.overlaps) != tc.overlaps {
				t.Errorf("%s, in pieces of %d: %d sections, overlaps %q, %v", tc.name, piece, o.entered, o.overlaps, err)
			}
		}
	}
	for _, records := range []string{"x\n", "1 2 3\n", "1 a 1 enter\n", "1 1 a enter\n", "1 1 1 dance\n", "1 10 1 leave\n", "\n"} {
		if _, err := judged(t, records, 1<<20); !errors.Is(err, errRecord) {
			t.Errorf("%q: %v", records, err)
		}
	}
}

func TestRecorderAndOracleAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	r, err := openRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	o, err := openOracle(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for _, step := range []struct {
		worker            int
		kind              string
		entered, overlaps int
	}{{1, enter, 1, 0}, {1, leave, 1, 0}, {2, enter, 2, 0}, {1, enter, 3, 1}, {2, died, 3, 1}, {1, leave, 3, 1}, {2, enter, 4, 1}} {
		if err := r.write(time.Now(), 100+step.worker, step.worker, step.kind); err != nil {
			t.Fatal(err)
		}
		if err := o.read(); err != nil {
			t.Fatal(err)
		}
		if o.entered != step.entered || len(o.overlaps) != step.overlaps {
			t.Fatalf("after %+v: %d sections, overlaps %q", step, o.entered, o.overlaps)
		}
	}
	if !strings.Contains(o.overlaps[0], "worker 1 (pid 101) entered while worker 2 (pid 102) was in") {
		t.Errorf("said: %s", o.overlaps[0])
	}
}

func TestSummary(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cli.md")
	if shown := (Summary{Acquisitions: 415, Losses: 1}).String(); err != nil || !strings.Contains(string(page), "\n```\n"+shown+"\n```\n") {
		t.Errorf("docs/cli.md does not show %q: %v", shown, err)
	}
	for s, want := range map[Summary]string{
		{}:                             "0 acquisitions, 0 violations, 0 losses",
		{1, 1, 1, nil}:                 "1 acquisition, 1 violation, 1 loss",
		{Acquisitions: 300, Losses: 2}: "300 acquisitions, 0 violations, 2 losses",
	} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}
