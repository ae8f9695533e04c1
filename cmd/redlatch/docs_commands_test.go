package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	docsBlock = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
	docsSpan  = regexp.MustCompile("`((?:\\./)?redlatch [^`\n]+)`")
	// calls is where a line calls the command: as it is, in $(...), behind another
	// one, in a unit or in a manifest.
	calls = regexp.MustCompile(`(?:^|[;&|(=] ?|\$ |command: )(?:sudo |exec )?(?:/usr/(?:local/)?bin/|go run \./cmd/|go run github\.com/redlatch/redlatch/cmd/)?redlatch (.*)`)
)

// commandLines returns the arguments of each call of the command in a page.
func commandLines(text string) (all [][]string) {
	var lines []string
	for _, m := range docsBlock.FindAllStringSubmatch(text, -1) {
		if m[1] != "go" && m[1] != "json" {
			lines = append(lines, strings.Split(strings.ReplaceAll(m[2], "\\\n", ""), "\n")...)
		}
	}
	for _, m := range docsSpan.FindAllStringSubmatch(docsBlock.ReplaceAllString(text, ""), -1) {
		lines = append(lines, m[1])
	}
	for _, line := range lines {
		line = strings.ReplaceAll(strings.TrimSpace(line), "[flags]", "")
		if words, ok := strings.CutPrefix(line, "command: ["); ok {
			line = "command: " + strings.NewReplacer(`"`, "", ",", "").Replace(strings.TrimSuffix(words, "]"))
		}
		m := calls.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(m[1], "→") { // an arrow from package to package
			continue
		}
		var args []string
		for word := range strings.FieldsSeq(m[1]) {
			if strings.HasPrefix(word, "#") || word == "|" || word == "||" || word == "&&" || word == "&" || word == "--" {
				break
			}
			word, ends := strings.CutSuffix(strings.TrimSuffix(word, ";"), ")")
			word, _, _ = strings.Cut(word, "|") // get|set: the first will do
			args = append(args, strings.Trim(word, `"'[]`))
			if ends {
				break
			}
		}
		all = append(all, args)
	}
	return all
}

// What the docs say is typed: a command or a flag that has another name would fail
// on the reader's machine first.
func TestTheDocsCallTheCommandAsItIs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md", "../../examples/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range commandLines(string(text)) {
			found++
			if err := understood(args); err != nil {
				t.Errorf("%s: redlatch %s: %v", filepath.Base(page), strings.Join(args, " "), err)
			}
		}
	}
	if found < 60 {
		t.Errorf("%d calls found: does this test still read them?", found)
	}
	const manifest = "```yaml\ncommand: [/usr/bin/redlatch, run, x, --conflict-exit-code, \"0\", --, /x]\n```\n"
	if got := commandLines(manifest); !slices.EqualFunc(got, [][]string{{"run", "x", "--conflict-exit-code", "0"}}, slices.Equal) {
		t.Errorf("a manifest calls %q", got)
	}
	for _, wrong := range [][]string{{"unlock", "x"}, {"semaphore", "take", "x"}, {"run", "x", "--wiat", "3s"}, {"ls", "--interval", "soon"}} {
		if understood(wrong) == nil {
			t.Errorf("%q is let through", wrong)
		}
	}
}

// understood parses a command line as far as the program does before it asks a
// server.
func understood(args []string) error {
	if slices.Equal(args[:min(2, len(args))], []string{"completion", "SHELL"}) {
		args = []string{"completion", "bash"}
	}
	root := (&app{ui: &ui{}}).root()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return usage("%s has no %s", cmd.CommandPath(), rest[0])
	}
	cmd.InitDefaultHelpFlag()
	for i, arg := range rest { // what a reader puts in
		if arg == "DURATION" || arg == "D" {
			rest[i] = "1s"
		}
		if arg == "N" {
			rest[i] = "1"
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if left := cmd.Flags().Args(); len(left) > 1 && strings.HasPrefix(left[1], "-") { // run and elect have flags behind the name, too
		return cmd.ParseFlags(left[1:])
	}
	return nil
}
