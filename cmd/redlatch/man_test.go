package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The packages have a man page for each command. scripts/dist.sh runs this test to
// write them into the folder REDLATCH_MAN: so the command itself does not have to
// know how.
func TestEachCommandHasAManPage(t *testing.T) {
	t.Parallel()
	folder := cmp.Or(os.Getenv("REDLATCH_MAN"), t.TempDir())
	var commands []*cobra.Command
	var collect func(cmd *cobra.Command)
	collect = func(cmd *cobra.Command) {
		commands = append(commands, cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				collect(sub)
			}
		}
	}
	root := (&app{ui: newUI(os.Stdout, os.Stderr)}).root()
	root.InitDefaultCompletionCmd()
	collect(root)

	mandoc, _ := exec.LookPath("mandoc") // a second opinion, where there is one
	for _, cmd := range commands {
		cmd.InitDefaultHelpFlag()
		file := filepath.Join(folder, manName(cmd)+".1")
		page := manPage(cmd)
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"} {
			contains(t, page, "\n.SH "+section+"\n")
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				contains(t, page, `\-\-`+roff(f.Name))
			}
		})
		for line := range strings.Lines(page) {
			if (line[0] == '.' || line[0] == '\'') && !strings.HasPrefix(line, ".TH ") && !strings.HasPrefix(line, ".SH ") &&
				line != ".PP\n" && line != ".TP\n" && line != ".nf\n" && line != ".fi\n" {
				t.Errorf("%s has the request %q", file, line)
			}
		}
		if mandoc != "" {
			if out, err := exec.Command(mandoc, "-T", "lint", "-W", "error", file).CombinedOutput(); err != nil {
				t.Errorf("mandoc: %v\n%s", err, out)
			}
		}
	}
	if len(commands) < 20 {
		t.Errorf("there are pages of %d commands", len(commands))
	}
}

// manName returns the name of the page of a command: redlatch-semaphore-acquire.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns what help says, in the language of man.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, ".SH %s\n", name) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" redlatch redlatch\n", strings.ToUpper(roff(manName(cmd))))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	fmt.Fprintf(&b, "%s\n", roff(cmd.UseLine()))
	section("DESCRIPTION")
	paragraphs(&b, cmp.Or(cmd.Long, cmd.Short+"."))
	if cmd.HasExample() {
		section("EXAMPLES")
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(cmd.Example))
	}
	section("OPTIONS")
	manFlags(&b, cmd.NonInheritedFlags())
	if cmd.HasAvailableInheritedFlags() {
		section("OPTIONS OF ALL COMMANDS")
		manFlags(&b, cmd.InheritedFlags())
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, manName(sub)+"(1)")
		}
	}
	if len(also) > 0 {
		section("SEE ALSO")
		fmt.Fprintf(&b, "%s\n", roff(strings.Join(also, ", ")))
	}
	return b.String()
}

// paragraphs writes text whose paragraphs are filled, but for indented lines.
func paragraphs(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") || strings.Contains(paragraph, "\n\t") {
			fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(paragraph))
			continue
		}
		fmt.Fprintf(b, "%s\n", roff(paragraph))
	}
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && !strings.Contains(usage, "(default") {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", roff(name), roff(usage))
	})
}

// roff has man show a text as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
		if line == "" {
			lines[i] = `\&`
		}
	}
	return strings.Join(lines, "\n")
}
