package archtest

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make runs some tests without the race detector, by their names and packages: a
// test or package that has another name would run nowhere, and nobody would
// notice.
func TestMakeKnowsWhatRunsWithoutTheRaceDetector(t *testing.T) {
	unraced, costs := regexp.MustCompile(makeVariable(t, "UNRACED")), strings.Split(makeVariable(t, "COSTS"), "|")
	folders := strings.Fields(strings.ReplaceAll(makeVariable(t, "NOTRACED"), "./", ""))
	proof := append(strings.Fields(strings.ReplaceAll(makeVariable(t, "PLAIN_UNRACED"), "./", "")), folders...)
	plainly := regexp.MustCompile(strings.ReplaceAll(makeVariable(t, "PLAINLY"), "redlatch/cmd", "cmd"))
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	unbuilt := regexp.MustCompile(`(?m)^//go:build .*!race`)
	var with []string // folders of which it is true
	testFiles(t, func(dir, text string) {
		for _, match := range function.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if i := slices.Index(costs, name); i >= 0 {
				costs = slices.Delete(costs, i, i+1)
				with = append(with, dir)
				if !slices.Contains(folders, dir) {
					t.Errorf("%s: make check does not run %s: COSTS has it, but NOTRACED does not have its folder", dir, name)
				}
			}
			if !unbuilt.MatchString(text) {
				continue
			}
			with = append(with, dir)
			if !unraced.MatchString(name) {
				t.Errorf("%s: make proof does not run %s: UNRACED does not match it", dir, name)
			}
			if !slices.Contains(proof, dir) {
				t.Errorf("%s: make proof does not run %s: neither NOTRACED nor PLAIN_UNRACED has its folder", dir, name)
			}
			if !slices.Contains(folders, dir) && !plainly.MatchString("/"+dir) {
				t.Errorf("%s: make check does not run %s: neither NOTRACED nor PLAINLY has its folder", dir, name)
			}
		}
	})
	for _, name := range costs {
		t.Errorf("COSTS has %s, which is no test", name)
	}
	for _, dir := range proof {
		if !slices.Contains(with, dir) {
			t.Errorf("%s has no test that runs without the race detector", dir)
		}
	}
}

// makeVariable is the value of a variable of the Makefile.
func makeVariable(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "--eval=show-it: ; $(info $("+name+"))", "show-it")
	cmd.Dir = top
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	value, _, _ := strings.Cut(string(out), "\n")
	if value == "" {
		t.Fatalf("the Makefile has no %s", name)
	}
	return value
}
