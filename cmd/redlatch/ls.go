package main

import (
	"context"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/spf13/cobra"
)

func (a *app) lsCommand() *cobra.Command {
	var all, watching bool
	interval := duration{Duration: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List locks that are held, and synchronizers",
		Long: `List the locks that are held, and the rate limiters, barriers and semaphores
that can be told from other things, whose names match PATTERN: a glob as KEYS and
SCAN take it (quote it from the shell). Without one, all.

There is a line for each holder of a lock: readers and writer of a read-write
lock, and each value of a group that is locked. A synchronizer has one line.

BY, FOR and WAITERS are what the clients say, which are asked: it takes up to two
seconds if one of them gives no answer. Clients of Redisson do not say who they
are; of the first 64 locks that they hold, those that wait are counted.

A lock is a hash that somebody named, so what is a lock, and of which kind, is a
guess by its fields, its companions and its time to live. Semaphores and latches
are mere numbers, unless permits are taken that have ids: --all lists every
number that matches, and so those of other programs, too. The list is not a
snapshot: locks come and go while it is read.

With --watch the list is made again and again, until it is interrupted (ctrl-C).
A terminal shows the last one; else they follow one another, with an empty line
after each. A server that goes away is waited for. Callers that wait for one another
for longer than two seconds are shown as a possible deadlock.`,
		Example: `  redlatch ls
  redlatch ls --watch --interval 5 'orders:*'
  redlatch ls --all 'ports:*'
  redlatch ls 'orders:*' -o json | jq -r '.[].name'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also numbers: semaphores and latches, and those of other programs")
	cmd.Flags().BoolVar(&watching, "watch", false, "list again and again, until it is interrupted")
	cmd.Flags().Var(&interval, "interval", "with --watch: how long from one list to the next, at least 1s")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := "*"
		if len(args) == 1 {
			pattern = args[0]
		}
		switch {
		case interval.set && !watching:
			return usage("--interval goes with --watch")
		case interval.Duration < time.Second:
			return usage("--interval %v is too short; it must be at least 1s", interval.Duration)
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
		if err != nil {
			return err
		}
		defer closeAll()
		lister := overview.Lister{Client: client, Pattern: pattern, All: all}
		look := func(ctx context.Context) (overview.Listing, error) {
			l, err := lister.List(ctx)
			if err != nil {
				err = a.serverFailure(err)
			}
			return l, err
		}
		if watching {
			w := watcher{app: a, interval: interval.Duration, json: asJSON(), look: look}
			return w.run(cmd.Context())
		}
		l, err := look(cmd.Context())
		if err != nil {
			return err
		}
		for _, remark := range l.Remarks() {
			a.ui.note("%s", remark)
		}
		if asJSON() {
			return written(a.ui.json(l.Locks))
		}
		return written(a.ui.table(listTable(l.Locks)))
	}
	return cmd
}

func listTable(found []overview.Lock) [][]string {
	rows := [][]string{{"NAME", "KIND", "COUNT", "BY", "FOR", "TTL", "WAITERS", "OWNER"}}
	for _, l := range found {
		if !overview.IsLock(l.Kind) {
			rows = append(rows, []string{l.Name, l.Stands(), "-", "-", "-", overview.TTLText(l.TTL), l.WaitersText(), "-"})
			continue
		}
		for _, h := range l.Holders {
			ttl := overview.TTLText(h.TTL)
			if h.Renewed != nil && *h.Renewed {
				ttl = "renewed"
			}
			rows = append(rows, []string{l.Name, l.What(&h), strconv.Itoa(h.Count), h.ByText(h.Client, h.Redlatch), h.ForText(), ttl, l.WaitersText(), h.Owner})
		}
	}
	return rows
}
