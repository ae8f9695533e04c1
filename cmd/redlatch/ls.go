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
		Long: `List the locks that are held, and the rate limiters, barriers and semaphores that
can be recognised. PATTERN is a glob for their names, as in KEYS and SCAN. Quote it,
so that the shell leaves it alone. Without PATTERN, list all.

There is a line for each holder of a lock: each reader and the writer of a
read-write lock, and each value of a group that is locked. A synchronizer has one
line.

BY, FOR and WAITERS are what the clients answer when redlatch asks them. That takes
up to two seconds if one of them gives no answer. Clients of Redisson do not say who
they are. Those of them that wait are counted, for the first 64 locks that they
hold.

A lock is a hash under a name that somebody chose. So what is a lock, and of which
kind, is a guess from its fields, the keys beside it and its time to live.
Semaphores and latches are only numbers, unless permits with ids are taken. --all
lists every number whose name matches, also those of other programs. The list is not
a snapshot: locks come and go while it is read.

With --watch the list is made again and again, until it is interrupted (ctrl-C). A
terminal shows the last list. Otherwise the lists follow one another, with an empty
line after each. If the server goes away, ls waits for it. Callers that wait for one
another for longer than two seconds are shown as a possible deadlock.`,
		Example: `  redlatch ls
  redlatch ls --watch --interval 5 'orders:*'
  redlatch ls --all 'ports:*'
  redlatch ls 'orders:*' -o json | jq -r '.[].name'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list numbers, too: semaphores and latches, and those of other programs")
	cmd.Flags().BoolVar(&watching, "watch", false, "list again and again, until it is interrupted")
	cmd.Flags().Var(&interval, "interval", "with --watch: how long from one list to the next, at least 1s")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := patternOf(args)
		switch {
		case interval.set && !watching:
			return usage("--interval goes with --watch")
		case interval.Duration < time.Second:
			return tooOften(interval)
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

// patternOf returns which locks a command is to look at.
func patternOf(args []string) string {
	if len(args) == 0 {
		return "*"
	}
	return args[0]
}

// tooOften refuses an --interval at which a command would do little but look.
func tooOften(interval duration) *failure {
	return usage("--interval %v is too short; it must be at least 1s", interval.Duration)
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
			if h.IsRenewed() {
				ttl = "renewed"
			}
			rows = append(rows, []string{l.Name, l.What(&h), strconv.Itoa(h.Count), h.WhoText(), h.ForText(), ttl, l.WaitersText(), h.Owner})
		}
	}
	return rows
}
