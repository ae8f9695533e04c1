package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// deleteCommand makes the command that deletes something of that kind, when its user has said that he is sure.
func (a *app) deleteCommand(kind string, remove func(ctx context.Context, c *redlatch.Client, name string) (bool, error)) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete it, whoever uses it; on a terminal it asks, elsewhere it needs --yes",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	a.completes(cmd, cobra.ShellCompDirectiveNoFileComp, (*redlatch.Client).Counters)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return a.with(name, func(c *redlatch.Client) error {
			l, _, err := overview.Look(cmd.Context(), c, name, false)
			switch {
			case err != nil:
				return err
			case !l.Exists:
				_, err = fmt.Fprintf(a.ui.out, "%s was not there\n", overview.Printable(name))
				return written(err)
			}
			if !yes {
				if err := a.ask(fmt.Sprintf("Delete the %s %s, %s?", kind, shellWord(name), standing(&l))); err != nil {
					return err
				}
			}
			deleted, err := remove(cmd.Context(), c, name)
			if err != nil {
				return err
			}
			text := "deleted"
			if !deleted {
				text = "was not there"
			}
			_, err = fmt.Fprintf(a.ui.out, "%s %s\n", overview.Printable(name), text)
			return written(err)
		})
	}
	return cmd
}

// standing says what would be lost.
func standing(l *overview.Lock) string {
	var parts []string
	if l.Count != nil {
		parts = append(parts, fmt.Sprintf("which is at %d", *l.Count))
	}
	if n := len(l.Holders); n > 0 {
		parts = append(parts, fmt.Sprintf("with %d taken", n))
	}
	if n := len(l.Waiting); n > 0 {
		parts = append(parts, fmt.Sprintf("for which %d wait", n))
	}
	if len(parts) == 0 {
		return "of which nothing more is known"
	}
	return strings.Join(parts, ", ")
}

// ask asks a user at a terminal. Anything but a yes is an error, and so is nobody to ask.
func (a *app) ask(question string) error {
	refused := &failure{code: exitUsage, err: fmt.Errorf("not deleted"), hint: "if you are sure, add --yes"}
	if !isTerminal(os.Stdin) || !isTerminal(os.Stderr) {
		return refused
	}
	fmt.Fprintf(a.ui.err, "redlatch: %s [y/N] ", a.ui.safe(question))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}

// mustBe refuses to treat the key of that name as something that it is not, as far as what is stored tells, and tells a
// user at a terminal if that is not far. What is not there can become anything.
func (a *app) mustBe(ctx context.Context, c *redlatch.Client, name, what string, kinds ...string) error {
	doubt, err := a.mayBe(ctx, c, name, what, kinds...)
	if doubt && isTerminal(os.Stderr) {
		a.ui.note("%s is a number, and nothing that is stored says that it is a %s", shellWord(name), what)
	}
	return err
}

// mayBe is mustBe for what takes nothing away if it is wrong. In doubt what is stored may be several things.
func (a *app) mayBe(ctx context.Context, c *redlatch.Client, name, what string, kinds ...string) (doubt bool, _ error) {
	info, err := c.Info(ctx, name)
	if err != nil {
		return false, err
	}
	l := overview.Of(info)
	if !l.Exists || l.Kind == redlatch.KindCounter || slices.Contains(kinds, l.Kind) {
		return l.Exists && l.Kind == redlatch.KindCounter, nil
	}
	return false, &failure{
		code: exitData, err: fmt.Errorf("%q is not a %s: its kind is %s; nothing has changed", name, what, l.Kind),
		hint: "redlatch show " + shellWord(name) + " shows how it stands",
	}
}
