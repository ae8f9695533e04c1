package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// family returns the command that has others about one type of thing. About says
// what that is, also in the help of each of them that has no text of its own, with
// those lines of the example that use it. A shell completes their NAME by what may
// be the thing. Those with --wait wait, and a signal ends that.
func (a *app) family(is thing, use, short, about, example string, members ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: about, Example: example, Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, m := range members {
		if m.Long == "" {
			m.Long = m.Short + ".\n\n" + about
		}
		for line := range strings.Lines(example) {
			if strings.Contains(line+" ", "redlatch "+use+" "+m.Name()+" ") {
				m.Example += line
			}
		}
		m.Example = strings.TrimSuffix(m.Example, "\n")
		a.completes(m, cobra.ShellCompDirectiveNoFileComp, is.lister())
		if m.Flags().Lookup("wait") != nil {
			m.RunE = untilSignal(m.RunE)
		}
	}
	cmd.AddCommand(members...)
	return cmd
}
