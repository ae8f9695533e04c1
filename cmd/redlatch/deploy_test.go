package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The units and manifests under deploy/ call this command as it is: a flag that
// has another name would fail on somebody's machine first. What is after -- and -c
// is not ours.
func TestTheUnitsAndManifestsKnowTheCommand(t *testing.T) {
	t.Parallel()
	called := regexp.MustCompile(`(?m)^(?:ExecStart=|\s+command: \[)/usr/bin/redlatch\b,?(.*?)\]?$`)
	word := regexp.MustCompile(`[^\s,]+`)
	want := map[string]string{"systemd/redlatch-serve.service": "serve", "systemd/redlatch-run@.service": "run", "kubernetes/election.yaml": "elect", "kubernetes/cronjob.yaml": "run"}
	for _, folder := range []string{"systemd/*.service", "kubernetes/*.yaml"} {
		files, err := filepath.Glob("../../deploy/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.ToSlash(strings.TrimPrefix(file, filepath.FromSlash("../../deploy/")))
			match := called.FindAllSubmatch(text, -1)
			if len(match) != 1 {
				t.Errorf("%s calls redlatch %d times", name, len(match))
				continue
			}
			args := word.FindAllString(strings.ReplaceAll(string(match[0][1]), `"`, ""), -1)
			args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "$REDLATCH_") }) // flags, for the user to set
			root := (&app{ui: &ui{}}).root()
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd.Name() != want[name] {
				t.Errorf("%s calls redlatch %q: %v", name, args, err)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

// The packages have all units, with the file that these read, and the chart has
// the rules that are tested.
func TestThePackagesHaveWhatTheUnitsNeed(t *testing.T) {
	t.Parallel()
	packages, err := os.ReadFile("../../deploy/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("../../deploy/systemd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		contains(t, string(packages), "{src: systemd/"+file.Name()+", ")
		unit, err := os.ReadFile(filepath.Join("../../deploy/systemd", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name(), ".service") {
			contains(t, string(unit), "\nEnvironmentFile=-/etc/redlatch/redlatch.env\n")
			contains(t, string(unit), "\nDynamicUser=yes\n")
		}
	}
	contains(t, string(packages), "dst: /etc/redlatch/redlatch.env,")
	shipped, err := os.ReadFile("../../deploy/chart/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("../../redlatchprom/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if string(shipped) != string(tested) {
		t.Error("deploy/chart/rules.yml is not redlatchprom/rules.yml")
	}
}
