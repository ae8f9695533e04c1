package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/doctor"
	"github.com/redlatch/redlatch/connect"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the server for what is bad for locks",
		Long: `Look at the server, or at each primary of a cluster, for what is bad for locks:
whether it evicts them or forgets them in a restart, whether its replicas keep
up, whether the clocks agree, whether the user may do all that locks do, whether
messages arrive, and what others have left behind.

It changes nothing, but tries the commands of locks on a key of its own,
redlatch_doctor: and a random number, which is gone before anybody can see it.

The exit code is 0 if all is fine or worth a note, 1 if there is a warning, and
2 if there is a problem.`,
		Example: `  redlatch doctor
  redlatch doctor -o json | jq '.findings[] | select(.severity == "problem")'`,
		Args: cobra.NoArgs,
	}
	opt := doctor.Options{Linger: 500 * time.Millisecond}
	skew := duration{Duration: time.Second}
	cmd.Flags().Var(&skew, "max-clock-skew", "by how much the clocks may differ: Config.MaxClockSkew")
	cmd.Flags().IntVar(&opt.Keys, "keys", 100_000, "look at about this many keys of a server at most; 0 leaves out leftovers")
	cmd.Flags().StringVar(&opt.Prefix, "prefix", "", "begin the name of the key that is tried with this, for a user who may touch no others")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		opt.MaxClockSkew = skew.Duration
		if opt.Keys < 0 {
			return usage("--keys must not be negative")
		}
		report, err := a.examine(cmd.Context(), opt)
		if err != nil {
			return a.serverFailure(err)
		}
		if asJSON() {
			err = a.ui.json(report)
		} else {
			err = a.ui.findings(report)
		}
		if err != nil {
			return written(err)
		}
		switch report.Severity {
		case doctor.Problem:
			return &failure{code: exitProblem}
		case doctor.Warning:
			return &failure{code: exitWarning}
		}
		return nil
	}
	return cmd
}

// examine connects and looks.
func (a *app) examine(ctx context.Context, opt doctor.Options) (doctor.Report, error) {
	client, mask, err := a.rawClient()
	if err != nil {
		return doctor.Report{}, err
	}
	defer client.Close()
	servers, err := doctor.Servers(ctx, client, a.shownAddress(), mask)
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.Examine(ctx, servers, opt)
}

// rawClient connects for commands that are no scripts. Mask hides credentials.
func (a *app) rawClient() (client rueidis.Client, mask func(string) string, err error) {
	option, err := connect.Parse(a.address())
	if err != nil {
		return nil, nil, usage("%w", err)
	}
	a.ui.hide(option.Password, option.Username)
	mask = func(text string) string { return connect.Mask(text, option.Password, option.Username) }
	option.DisableRetry = true
	option.PipelineMultiplex = -1
	client, err = rueidis.NewClient(option)
	if err != nil && client != nil {
		client.Close()
	}
	return client, mask, err
}

// What each severity looks like on a terminal.
var paint = map[doctor.Severity]string{
	doctor.OK: "\x1b[32m", doctor.Note: "\x1b[36m", doctor.Warning: "\x1b[33m", doctor.Problem: "\x1b[31m",
}

// findings writes a report for people: a paragraph for what is found, and a line
// for what is fine.
func (u *ui) findings(r doctor.Report) error {
	width, colored := 0, false
	if f, ok := u.out.(*os.File); ok {
		colored = colorful(f)
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = columns
		}
	}
	checks := 0
	for _, f := range r.Findings {
		checks = max(checks, len(f.Check))
	}
	var b strings.Builder
	done := map[string]bool{}
	for _, f := range r.Findings {
		what := f.What
		if f.Severity == doctor.OK && len(r.Servers) > 1 {
			// A line for all servers, which differ in numbers at most.
			if done[f.Check] {
				continue
			}
			done[f.Check] = true
			if len(f.Servers) < len(r.Servers) {
				what += others(r, f)
			}
		} else if len(f.Servers) < len(r.Servers) {
			what += " (" + strings.Join(f.Servers, ", ") + ")"
		}
		word := fmt.Sprintf("%-7s", f.Severity)
		if colored {
			word = paint[f.Severity] + word + "\x1b[0m"
		}
		const gap = "  "
		indent := strings.Repeat(" ", len("problem")+len(gap)+checks+len(gap))
		room := max(width-len(indent), 40)
		if width == 0 {
			room = 0
		}
		head := word + gap + fmt.Sprintf("%-*s", checks, f.Check) + gap
		for i, text := range []string{what, f.Consequence, f.Remedy} {
			if text == "" {
				continue
			}
			for j, line := range wrapped([]string{"", "so: ", "fix: "}[i]+printable(text), room) {
				if i+j > 0 {
					head = indent
				}
				b.WriteString(head + line + "\n")
			}
		}
	}
	_, err := io.WriteString(u.out, b.String())
	return err
}

// others says which other servers the same check is fine at.
func others(r doctor.Report, f doctor.Finding) string {
	var all []string
	for _, o := range r.Findings {
		if o.Check == f.Check && o.Severity == doctor.OK {
			all = append(all, o.Servers...)
		}
	}
	slices.Sort(all)
	n := len(slices.Compact(all)) - len(f.Servers)
	switch {
	case n <= 0:
		return " (" + strings.Join(f.Servers, ", ") + ")"
	case n == 1:
		return " (" + strings.Join(f.Servers, ", ") + "; fine at another one, too)"
	}
	return fmt.Sprintf(" (%s; fine at %d others, too)", strings.Join(f.Servers, ", "), n)
}

// wrapped breaks text into lines of at most width characters, where there are
// spaces. 0 is no limit.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case width > 0 && len([]rune(line))+1+len([]rune(word)) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
