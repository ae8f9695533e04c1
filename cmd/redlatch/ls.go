package main

import (
	"cmp"
	"iter"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/spf13/cobra"
)

func (a *app) lsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List locks that are held, and synchronizers",
		Long: `List the locks that are held, and the rate limiters, barriers and semaphores
that can be told from other things, whose names match PATTERN: a glob as KEYS and
SCAN take it (quote it from the shell). Without one, all.

There is a line for each holder of a lock: readers and writer of a read-write
lock, and each value of a group that is locked. A synchronizer has one line.

A lock is a hash that somebody named, so what is a lock, and of which kind, is a
guess by its fields, its companions and its time to live. Semaphores and latches
are mere numbers, unless permits are taken that have ids: --all lists every
number that matches, and so those of other programs, too. The list is not a
snapshot: locks come and go while it is read.`,
		Example: `  redlatch ls
  redlatch ls --all 'ports:*'
  redlatch ls 'orders:*' -o json | jq -r '.[].name'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also numbers: semaphores and latches, and those of other programs")
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
		lists := []iter.Seq2[redlatch.Info, error]{client.Objects(cmd.Context(), pattern)}
		if all {
			lists = append(lists, client.Counters(cmd.Context(), pattern))
		}
		found := []lockJSON{}
		for _, list := range lists {
			for info, err := range list {
				if err != nil {
					return a.serverFailure(err)
				}
				found = append(found, lockOf(info))
			}
		}
		slices.SortStableFunc(found, func(x, y lockJSON) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind)) })
		// SCAN may return a key twice.
		found = slices.CompactFunc(found, func(x, y lockJSON) bool { return x.Name == y.Name && x.Kind == y.Kind })
		if asJSON() {
			return written(a.ui.json(found))
		}
		return written(a.ui.table(listTable(found)))
	}
	return cmd
}

func listTable(found []lockJSON) [][]string {
	rows := [][]string{{"NAME", "KIND", "TTL", "COUNT", "BY", "OWNER"}}
	for _, l := range found {
		if !isLock(l.Kind) {
			rows = append(rows, []string{l.Name, l.stands(), ttlText(l.TTL), "-", "-", "-"})
			continue
		}
		for _, h := range l.Holders {
			rows = append(rows, []string{l.Name, l.what(h), ttlText(h.TTL), h.count(), h.library(), h.Owner})
		}
	}
	return rows
}
