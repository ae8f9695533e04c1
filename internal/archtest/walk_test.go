package archtest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// How far an uncontended Lock.Acquire goes, exactly. If you make the walk shorter,
// write the new numbers here.
var walks = []struct {
	to        string // where it is counted: a folder that testdata/walk writes
	functions int
	files     int
}{
	{"down", 41, 22},  // from Lock.Acquire to the driver's Run
	{"whole", 86, 34}, // and back
	// The same with a context that can end, or a driver with a longer time-out: a
	// worker sends the request.
	{"down by a worker", 43, 22},
	{"whole by a worker", 89, 34},
}

// To acquire a free lock is a short walk, and the first of the two in
// docs/architecture.md names each file on it. The compiler's counters tell which
// functions were called; those of interfaces and of the standard library do not
// count.
func TestAcquireIsAShortWalk(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "walk")
	run(t, "build", "-cover", "-covermode=atomic", "-coverpkg="+root+"/...", "-o", program, "./testdata/walk")
	sources(t) // on which the result depends, for the test cache
	cmd := exec.Command(program)
	for _, w := range walks {
		cmd.Args = append(cmd.Args, filepath.Join(dir, w.to))
	}
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range walks {
		functions, files := walked(t, filepath.Join(dir, want.to))
		if len(functions) != want.functions || len(files) != want.files {
			t.Errorf("the walk %q passes %d functions in %d files, and %d in %d by the table walks: has it grown, or are the numbers old?\n%s",
				want.to, len(functions), len(files), want.functions, want.files, strings.Join(functions, "\n"))
		}
		for _, file := range files {
			if !strings.Contains(freeLock(t), "](../"+file+")") {
				t.Errorf("%s is on the walk %q, and the walk to a free lock in docs/architecture.md does not link to it", file, want.to)
			}
		}
	}
}

// counted is a line of covdata's about a function that was called.
var counted = regexp.MustCompile(`^` + root + `/(\S+\.go):\d+:\s+(\S+)\s+([1-9]\S*)%$`)

// walked returns which functions were called by what was counted into a folder,
// and their files.
func walked(t *testing.T, dir string) (functions, files []string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(run(t, "tool", "covdata", "func", "-i", dir)))
	for lines.Scan() {
		if m := counted.FindStringSubmatch(lines.Text()); m != nil && !strings.Contains(m[1], "/testdata/") {
			functions, files = append(functions, m[1]+" "+m[2]), append(files, m[1])
		}
	}
	return functions, slices.Compact(slices.Sorted(slices.Values(files)))
}

// freeLock returns the first of the two walks.
func freeLock(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(text), "\n### A free lock\n")
	walk, _, ends := strings.Cut(walk, "\n### ")
	if !found || !ends {
		t.Fatal("docs/architecture.md has no section about a free lock")
	}
	return walk
}

// run runs the go command.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}
