package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A goroutine that is left behind is a bug, whichever package's tests see it
// first.
func TestEveryPackageWithTestsLooksForLeaks(t *testing.T) {
	looks := map[string]bool{} // by folders that have tests
	testFiles(t, func(dir, text string) {
		if strings.Contains(text, "(t *testing.T)") && !looks[dir] {
			looks[dir] = false
		}
		for _, call := range []string{"leaktest.Main(m", "leaktest.Run("} {
			if strings.Contains(text, call) {
				looks[dir] = true
			}
		}
	})
	for dir, ok := range looks {
		if !ok && filepath.Base(dir) != "leaktest" {
			t.Errorf("the tests of %s do not look for goroutines that are left: see internal/leaktest", dir)
		}
	}
	if len(looks) < 40 {
		t.Errorf("there are %d folders with tests only", len(looks))
	}
}

// testFiles calls f with each file of tests, of whatever module, and the folder in
// which it stands, seen from the root package.
func testFiles(t *testing.T, f func(dir, text string)) {
	t.Helper()
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(top, filepath.Dir(file))
		if err != nil {
			return err
		}
		f(filepath.ToSlash(dir), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
