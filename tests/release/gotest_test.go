package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What gotest.sh makes of the output of go test. A program of the name go says it, and writes down how it was called.
func TestOnlyAFaultOfTheRaceDetectorIsTriedAgain(t *testing.T) {
	const (
		passed   = "ok  \tgithub.com/a/passed\t1.000s\n"
		killed   = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:282 (0x0, 0x0) (tid=463)\nexit status 66\n"
		detector = killed + "FAIL\tgithub.com/a/detector\t1.000s\n"
		test     = "--- FAIL: TestIt (0.00s)\n    it_test.go:1: wrong\nFAIL\nFAIL\tgithub.com/a/test\t1.000s\n"
	)
	for name, run := range map[string]struct {
		first, again string // what it prints
		calls        int
		green        bool
	}{
		"all passed":                           {first: passed, calls: 1, green: true},
		"a test failed":                        {first: test + passed, calls: 1},
		"the detector failed":                  {first: passed + detector + passed, again: "ok  \tgithub.com/a/detector\t1.000s\n", calls: 2, green: true},
		"the detector failed twice":            {first: detector, again: detector, calls: 2},
		"a test failed in the second run":      {first: detector, again: test, calls: 2},
		"a test failed as well":                {first: detector + test, calls: 1},
		"a test of the same package failed":    {first: "--- FAIL: TestIt (0.00s)\n" + detector, calls: 1},
		"the detector found a race before":     {first: "WARNING: DATA RACE\n" + detector, calls: 1},
		"another package ended without a word": {first: detector + "FAIL\tgithub.com/a/other\t1.000s\n", calls: 1},
		"another package does not build":       {first: detector + "FAIL\tgithub.com/a/other [build failed]\n", calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"1": run.first, "2": run.again,
				"go": `#!/bin/sh
echo "$@" >>"$DIR/calls"
call=$(wc -l <"$DIR/calls")
cat "$DIR/$((call))"
! grep -q FAIL "$DIR/$((call))"
`,
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			f := folder{T: t, dir: top, env: []string{"LABEL=", "DIR=" + dir, "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}}
			out, err := f.try("scripts/gotest.sh", "tests", "-race", "-timeout", "20m", "./...", "github.com/a/passed")
			if (err == nil) != run.green || strings.Contains(out, "FAILED: tests") == run.green {
				t.Errorf("err = %v, printed:\n%s", err, out)
			}
			if _, shown, _ := strings.Cut(run.first, killed); !strings.Contains(out, shown) {
				t.Errorf("printed:\n%s\nwithout what the first run said:\n%s", out, run.first)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			want := "test -race -timeout 20m ./... github.com/a/passed\n"
			if run.calls == 2 {
				want += "test -race -timeout 20m github.com/a/detector\n"
			}
			if string(calls) != want {
				t.Errorf("go was called with\n%swant\n%s", calls, want)
			}
		})
	}
}
