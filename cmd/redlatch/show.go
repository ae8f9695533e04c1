package main

import (
	"github.com/redlatch/redlatch"
	"github.com/spf13/cobra"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a lock",
		Long: `Show who holds the lock NAME, how often, and for how long if nobody renews it.

The exit code is 0 whether or not the lock is held.`,
		Example: `  redlatch show orders:42
  redlatch show orders:42 -o json | jq .held`,
		Args: cobra.ExactArgs(1),
	}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName(args[0]); err != nil {
			return err
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout})
		if err != nil {
			return err
		}
		defer closeAll()
		info, err := client.Lock(args[0]).Info(cmd.Context())
		if err != nil {
			return a.serverFailure(err)
		}
		l := lockOf(info)
		if asJSON() {
			return written(a.ui.json(l))
		}
		rows := [][]string{{"name", printable(l.Name)}, {"kind", l.Kind}, {"held", map[bool]string{true: "yes", false: "no"}[l.Held]}}
		if l.Held {
			rows = append(rows, []string{"ttl", l.ttl()})
		}
		for _, h := range l.Holders {
			rows = append(rows, []string{"owner", printable(h.Owner)}, []string{"by", h.library()}, []string{"count", h.count()})
		}
		return written(a.ui.table(rows))
	}
	return cmd
}
