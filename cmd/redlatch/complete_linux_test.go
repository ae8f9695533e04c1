package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shells are how each shell is started with completion, and with nothing of its
// user's.
var shells = map[string]struct {
	args []string
	rc   string // what it runs first
}{
	"bash": {
		[]string{"--noprofile", "--rcfile", "rc", "-i"},
		"source /usr/share/bash-completion/bash_completion; source <(redlatch completion bash)",
	},
	"zsh": {
		[]string{"-d", "-i"}, // its own file is named by ZDOTDIR
		"autoload -U compinit; compinit -u -D; source <(redlatch completion zsh)",
	},
	"fish": {
		[]string{"--no-config", "--private", "-i", "-C", "source rc"},
		"redlatch completion fish | source",
	},
}

// Who presses TAB has not read the names that others have given to locks. No shell
// may take one for anything but a word: neither at once, nor when the line is run.
func TestAShellRunsNoNameAsCode(t *testing.T) {
	long(t)
	t.Parallel()
	r := newRedis(t)
	// What all of these begin with is typed. Two of each have more in common, which a
	// shell puts on the line.
	hostile := map[string]string{
		"tw": "two$(touch ran)", "ba": "back`touch ran`", "fi": "fi(touch ran)", "se": "semi;touch ran;", "pi": "pipe|touch ran|", "an": "and&touch ran&",
		"li": "line\ntouch ran\n", "in": "in<(touch ran)", "qu": "quote'$(touch ran)", "st": "stroke\\$(touch ran)", "br": "br{$(touch ran),}", "un": "un)touch ran", "ca": "caret^(touch ran)",
		"ou": "out >ran ", "ec": "echo\t$(touch ran)", "pe": "per%(touch ran)", "eq": "eq=(touch ran)", "do": "do\"$(touch ran)",
	}
	for _, name := range hostile {
		r.hold(name+"x", time.Hour)
		r.hold(name+"y", time.Hour)
		r.hold("1"+name, time.Hour) // and one has nothing in common with another
	}
	// These are flags, homes and comments to a shell or to redlatch.
	for _, name := range []string{"--url=redis://elsewhere", "~root", "#x", "=ls", "!!", "%self$", "*"} {
		r.hold(name, time.Hour)
	}
	const harmless = "orders-_:./@%+,:42/x"
	r.hold(harmless, time.Hour)

	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil {
				t.Fatalf("%v: scripts/shells.sh installs it", err)
			}
			dir := t.TempDir()
			cmd := r.command()
			cmd.Path, cmd.Args, cmd.Dir, cmd.SysProcAttr = path, append([]string{name}, shell.args...), dir, nil
			cmd.Env = append(cmd.Env, "R="+os.Args[0], "HOME="+dir, "ZDOTDIR="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "TERM=xterm", "PATH="+dir+":"+os.Getenv("PATH"))
			for file, text := range map[string]string{
				"rc": shell.rc, ".zshrc": shell.rc,
				// The program completes; what a line would run is noted.
				"redlatch": "#!/bin/sh\ncase $1 in show) printf '<%s>\\n' \"$@\" >>" + dir + "/log ;; *) exec \"$R\" \"$@\" ;; esac\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			term := onTerminal(t, cmd)
			ran := func() []string {
				text, _ := os.ReadFile(filepath.Join(dir, "log"))
				return strings.Split(string(text), "<show>\n")[1:]
			}
			// line types the beginning of a name, and has the shell complete and run it.
			line := func(begun string) string {
				n := len(ran())
				term.types("redlatch show " + begun + "\t\t\r")
				eventually(t, "a line with "+begun, func() bool { return len(ran()) > n }, term.output)
				return ran()[n]
			}
			if got := line("ord"); got != "<"+harmless+">\n" {
				t.Errorf("a harmless name is completed as %q", got)
			}
			var begun []string
			for b := range hostile {
				begun = append(begun, b, "1"+b)
			}
			slices.Sort(begun)
			for _, b := range append(begun, "") {
				_ = line(b)
				if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
					t.Fatalf("%s has run a name that begins with %q:\n%s", name, b, term.output())
				}
			}
			term.types("exit\r")
			term.wait()
		})
	}
}
