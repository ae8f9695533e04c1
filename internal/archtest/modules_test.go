package archtest

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const miniredis = "github.com/alicebob/miniredis/v2"

// mayRequire says what the go.mod of each module that is released requires for
// itself, its tests included: modules of ours by their folder ("." is the root
// module), and modules of others. What these require in turn is theirs to say.
var mayRequire = map[string][]string{
	".":               {},
	"redlatchgoredis": {".", goredis},
	"redlatchrueidis": {".", rueidis},
	"redlatchvalkey":  {".", valkeygo},
	"drivertest":      {".", miniredis},
	"redlatchtest":    {".", "redlatchrueidis", rueidis, miniredis},
	"redissonyaml":    {".", yaml},
	"redlatchprom":    {".", prometheus},
	"redlatchotel":    {".", otel, otel + "/metric", otel + "/trace"},
	"redlatchgocron":  {".", gocron},
	"cmd/redlatch": {
		".", "redissonyaml", "redlatchrueidis", rueidis, miniredis,
		"charm.land/bubbletea/v2", "charm.land/lipgloss/v2", "github.com/charmbracelet/colorprofile", "github.com/charmbracelet/x/ansi",
		"github.com/creack/pty", "github.com/rogpeppe/go-internal", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys", "golang.org/x/term",
	},
}

// unreleased are the modules that stay in the repository, and may require what
// they like.
var unreleased = []string{"examples", "tests", "tools", "tools/api", "tools/dist"}

func TestModulesRequireWhatTheyMay(t *testing.T) {
	mods := modules(t)
	for dir := range mods {
		if _, ok := mayRequire[dir]; ok == slices.Contains(unreleased, dir) {
			t.Errorf("module %s must be in one of the tables mayRequire and unreleased", dir)
		}
	}
	for dir, allowed := range mayRequire {
		mod, ok := mods[dir]
		if !ok {
			t.Errorf("module %s has a rule but no go.mod", dir)
		}
		want := map[string]bool{}
		for _, rule := range allowed {
			if _, module := mayRequire[rule]; module {
				rule = ours(rule)
			}
			want[rule] = true
		}
		for _, r := range mod.Require {
			if !want[r.Path] && !r.Indirect {
				t.Errorf("module %s requires %s; it may require %q", dir, r.Path, allowed)
			}
			delete(want, r.Path)
		}
		for rule := range want {
			t.Errorf("module %s may require %s, and does not", dir, rule)
		}
	}
}

// A go.mod that is published replaces nothing: go install refuses one that does,
// and go get ignores it. All modules require one another at one version, the last
// released one, and before there is one, v0.0.0. Those that are not published
// replace it by what stands beside them. A release changes the version, and none
// of a commit between.
func TestModulesRequireOneAnotherAsReleased(t *testing.T) {
	last, released := "", versions(t)
	for dir, mod := range modules(t) {
		required := map[string]bool{}
		for _, r := range mod.Require {
			if r.Path == root || strings.HasPrefix(r.Path, root+"/") {
				required[r.Path] = true
				if !released.MatchString(r.Version) {
					t.Errorf("module %s requires %s %s, which is no release", dir, r.Path, r.Version)
				}
				if last == "" {
					last = r.Version
				}
				if r.Version != last {
					t.Errorf("module %s requires %s %s, and another module requires %s of ours", dir, r.Path, r.Version, last)
				}
			}
		}
		if _, published := mayRequire[dir]; published {
			if len(mod.Replace) > 0 {
				t.Errorf("module %s replaces %q, and would be published so", dir, mod.Replace)
			}
			continue
		}
		for _, r := range mod.Replace {
			beside := strings.TrimPrefix(strings.TrimPrefix(r.Old.Path, root), "/")
			to, err := filepath.Rel(filepath.Join(top, dir), filepath.Join(top, beside))
			if err != nil {
				t.Fatal(err)
			}
			if !required[r.Old.Path] || filepath.ToSlash(filepath.Clean(r.New.Path)) != filepath.ToSlash(to) {
				t.Errorf("module %s replaces %s by %s", dir, r.Old.Path, r.New.Path)
			}
			delete(required, r.Old.Path)
		}
		for lacking := range required {
			t.Errorf("module %s requires %s and does not replace it", dir, lacking)
		}
	}
}

// versions are those that release.sh makes and dist.sh takes, and no commit's.
func versions(t *testing.T) *regexp.Regexp {
	t.Helper()
	var said []string
	for _, script := range []string{"release.sh", "dist.sh"} {
		text, err := os.ReadFile(filepath.Join(top, "scripts", script))
		if err != nil {
			t.Fatal(err)
		}
		pattern := regexp.MustCompile(`\$version =~ (\^\S+\$) `).FindSubmatch(text)
		if pattern == nil {
			t.Fatalf("%s does not say any more which versions it takes", script)
		}
		said = append(said, string(pattern[1]))
	}
	if said[0] != said[1] {
		t.Errorf("release.sh makes the versions %s, and dist.sh takes %s", said[0], said[1])
	}
	all := regexp.MustCompile(said[0])
	for version, want := range map[string]bool{"v0.0.0": true, "v1.2.3": true, "v1.2.3-rc.1": true, "v0.0.0-20260102030405-0123456789ab": false} {
		if all.MatchString(version) != want {
			t.Errorf("release.sh makes the version %s: %v, want %v", version, !want, want)
		}
	}
	return all
}

// make tests and releases the modules of its list, in which each follows on those
// that it requires; go.work has those that its users build together.
func TestModulesAreListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^PUBLISHED := (.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile has no list PUBLISHED")
	}
	published := strings.Fields(string(line[1]))
	if got, want := slices.Sorted(slices.Values(published)), slices.Sorted(maps.Keys(mayRequire)); !slices.Equal(got, want) {
		t.Errorf("the Makefile publishes %q, want %q", got, want)
	}
	for i, dir := range published {
		for _, rule := range mayRequire[dir] {
			if slices.Contains(published[i:], rule) {
				t.Errorf("the Makefile publishes %s before %s, which it requires", dir, rule)
			}
		}
	}

	var work struct{ Use []struct{ DiskPath string } }
	edit(t, &work, "work", filepath.Join(top, "go.work"))
	var used []string
	for _, use := range work.Use {
		used = append(used, path.Clean(use.DiskPath))
	}
	want := append(slices.Collect(maps.Keys(mayRequire)), "examples", "tests") // the linters' requirements are their own
	if slices.Sort(used); !slices.Equal(used, slices.Sorted(slices.Values(want))) {
		t.Errorf("go.work uses %q, want %q", used, want)
	}
}

// What programs need is what make oldest-go runs with, and what users read; the
// tests module has the newest.
func TestOldestGoAndGoRedis(t *testing.T) {
	read := func(file string) (mod module) {
		edit(t, &mod, "mod", filepath.Join(top, file))
		return mod
	}
	if need, tested := read("go.mod").Go, read("tests/oldest.mod").Go; need != tested {
		t.Errorf("the library needs Go %s and is tested with %s", need, tested)
	}
	version := func(file string) string {
		mod := read(file)
		for _, r := range mod.Require {
			if r.Path == goredis {
				return r.Version
			}
		}
		return "none"
	}
	oldest := version("redlatchgoredis/go.mod")
	if tested := version("tests/oldest.mod"); tested != oldest {
		t.Errorf("redlatchgoredis requires go-redis %s and is tested with %s", oldest, tested)
	}
	for _, file := range []string{"README.md", "redlatchgoredis/doc.go"} {
		text, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			t.Fatal(err)
		}
		if name := "go-redis " + strings.TrimSuffix(strings.TrimPrefix(oldest, "v"), ".0"); !strings.Contains(string(text), name) {
			t.Errorf("%s does not say %s", file, name)
		}
	}
}

// A module is what its go.mod says.
type module struct {
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old, New struct{ Path string } }
}

// modules returns all modules of the repository, by their folder.
func modules(t *testing.T) map[string]module {
	t.Helper()
	all := map[string]module{}
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != top && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(top, filepath.Dir(file))
		if err != nil {
			return err
		}
		var mod module
		edit(t, &mod, "mod", file)
		all[filepath.ToSlash(dir)] = mod
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// edit has the go command read a go.mod or a go.work. The file is opened here,
// too, so that the test cache sees it.
func edit(t *testing.T, into any, kind, file string) {
	t.Helper()
	if _, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("go", kind, "edit", "-json", file).Output()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
