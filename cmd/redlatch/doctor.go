package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/doctor"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server for what is bad for locks",
		Long: `Check the server, or each primary of a cluster, for what is bad for locks: whether
it evicts locks or forgets them in a restart, whether its replicas keep up, whether
the clocks agree, whether the user may do all that locks need, whether messages
arrive, what others have left behind, and what nobody expects there.

doctor changes nothing. But it tries the commands of locks on a key of its own,
redlatch_doctor: and a random number, which is gone before anybody can see it.
--prefix stands before that, for a user that may touch no other keys. The other
checks are about everything on the server, whatever its name.

The exit code is 0 if all is fine or worth a note, 1 if there is a warning, and 2 if
there is a problem.`,
		Example: `  redlatch doctor
  redlatch doctor -o json | jq '.findings[] | select(.severity == "problem")'`,
		Args: cobra.NoArgs,
	}
	opt := doctor.Options{Linger: 500 * time.Millisecond}
	skew := duration{Duration: time.Second}
	cmd.Flags().Var(&skew, "max-clock-skew", "by how much the clocks may differ: Config.Redisson.MaxClockSkew")
	cmd.Flags().IntVar(&opt.Keys, "keys", 100_000, "look at about this many keys of a server at most, for leftovers; 0 leaves these checks out")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		opt.MaxClockSkew, opt.Prefix = skew.Duration, a.server.prefix
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
	p, err := a.plan(redlatch.Config{})
	if err != nil {
		return doctor.Report{}, err
	}
	client, mask, err := rawClient(p)
	if err != nil {
		return doctor.Report{}, answered(err)
	}
	opt.Database = p.Database
	defer client.Close()
	servers, err := doctor.Servers(ctx, client, a.shownAddress(), mask)
	if err != nil {
		return doctor.Report{}, answered(err)
	}
	report, err := doctor.Examine(ctx, servers, opt)
	return report, answered(err)
}

// answered says in words that a server has not.
func answered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return err
}

// rawClient connects for commands that are no scripts. Mask hides credentials.
func rawClient(p connect.Plan) (client rueidis.Client, mask func(string) string, err error) {
	option := redlatchrueidis.Options(p)
	mask = func(text string) string { return connect.Mask(text, option.Password, option.Sentinel.Password) }
	option.DisableRetry = true
	option.PipelineMultiplex = -1
	client, err = rueidis.NewClient(option)
	if err != nil && client != nil {
		client.Close()
	}
	return client, mask, err
}

// What each severity looks like on a terminal.
var paint = map[doctor.Severity]color.Color{
	doctor.OK: lipgloss.Green, doctor.Note: lipgloss.Cyan, doctor.Warning: lipgloss.Yellow, doctor.Problem: lipgloss.Red,
}

// findings writes a report for people: a paragraph for what is found, and a line
// for what is fine.
func (u *ui) findings(r doctor.Report) error {
	page := reportPage{report: r}
	if f, ok := u.out.(*os.File); ok {
		page.color = colorful(f)
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			page.width = columns
		}
	}
	for _, f := range r.Findings {
		page.checks = max(page.checks, len(f.Check))
	}
	var b strings.Builder
	fine := map[string]bool{} // checks of which there is a line
	for _, f := range r.Findings {
		if f.Severity == doctor.OK && len(r.Servers) > 1 {
			if fine[f.Check] {
				continue // servers differ in numbers at most
			}
			fine[f.Check] = true
		}
		page.write(&b, f)
	}
	_, err := io.WriteString(u.out, b.String())
	return err
}

// A reportPage is how a report is shown.
type reportPage struct {
	report doctor.Report
	checks int // the width of their names
	width  int // of the terminal; 0 for no limit
	color  bool
}

func (p *reportPage) write(b *strings.Builder, f doctor.Finding) {
	const gap = "  "
	word := fmt.Sprintf("%-*s", len(doctor.Problem), f.Severity)
	if p.color {
		word = lipgloss.NewStyle().Foreground(paint[f.Severity]).Render(word)
	}
	head := word + gap + fmt.Sprintf("%-*s", p.checks, f.Check) + gap
	indent := strings.Repeat(" ", len(doctor.Problem)+len(gap)+p.checks+len(gap))
	room := 0
	if p.width > 0 {
		room = max(p.width-len(indent), 40)
	}
	for _, text := range []struct{ label, text string }{{"", f.What + p.where(f)}, {"so: ", f.Consequence}, {"fix: ", f.Remedy}} {
		if text.text == "" {
			continue
		}
		for _, line := range wrapped(text.label+overview.Printable(text.text), room) {
			b.WriteString(head + line + "\n")
			head = indent
		}
	}
}

// where says which of several servers a finding is about.
func (p *reportPage) where(f doctor.Finding) string {
	if len(f.Servers) == len(p.report.Servers) {
		return ""
	}
	fine := map[string]bool{}
	for _, other := range p.report.Findings {
		for _, server := range other.Servers {
			if f.Severity == doctor.OK && other.Severity == doctor.OK && other.Check == f.Check && !slices.Contains(f.Servers, server) {
				fine[server] = true
			}
		}
	}
	text := " (" + strings.Join(f.Servers, ", ")
	if len(fine) > 0 {
		text += fmt.Sprintf("; fine at %d more", len(fine))
	}
	return text + ")"
}

// wrapped breaks text into lines of at most width characters, where there are
// spaces. 0 is no limit.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case width > 0 && ansi.StringWidth(line)+1+ansi.StringWidth(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
