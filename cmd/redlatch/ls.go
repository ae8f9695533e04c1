package main

import (
	"cmp"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/spf13/cobra"
)

func (a *app) lsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `List the locks that are held and match PATTERN, a glob as KEYS and SCAN take
it (quote it from the shell); without one, all.

There is a line for each holder: readers and writer of a read-write lock, and
each value of a group that is locked.

A lock is a hash that somebody named, so what is a lock, and of which kind, is a
guess by its fields, its companions and its time to live. The list is not a
snapshot: locks come and go while it is read.`,
		Example: `  redlatch ls
  redlatch ls 'orders:*' -o json | jq -r '.[].name'`,
		Args: cobra.MaximumNArgs(1),
	}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := "*"
		if len(args) == 1 {
			pattern = args[0]
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout})
		if err != nil {
			return err
		}
		defer closeAll()
		locks := []lockJSON{}
		for info, err := range client.Locks(cmd.Context(), pattern) {
			if err != nil {
				return a.serverFailure(err)
			}
			locks = append(locks, lockOf(info))
		}
		slices.SortFunc(locks, func(x, y lockJSON) int { return cmp.Compare(x.Name, y.Name) })
		// SCAN may return a key twice.
		locks = slices.CompactFunc(locks, func(x, y lockJSON) bool { return x.Name == y.Name })
		if asJSON() {
			return written(a.ui.json(locks))
		}
		return written(a.ui.table(lockTable(locks)))
	}
	return cmd
}

func lockTable(locks []lockJSON) [][]string {
	rows := [][]string{{"NAME", "KIND", "TTL", "COUNT", "BY", "OWNER"}}
	for _, l := range locks {
		for _, h := range l.Holders {
			rows = append(rows, []string{printable(l.Name), l.what(h), l.ttlText(h.TTL), h.count(), h.library(), printable(h.Owner)})
		}
	}
	return rows
}
