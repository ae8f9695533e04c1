package main

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/spf13/cobra"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a lock, or how a synchronizer stands",
		Long: `Show who holds the lock NAME, how often, and for how long if nobody renews it;
of a fair lock also who waits, in order, and of a fenced one the last token. Of
a semaphore, latch, rate limiter or barrier, show how it stands: which permits
are taken, or how far it has come.

Of which kind it is, is a guess by what is stored. A semaphore and a latch are
mere numbers, and often cannot be told apart.

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
		info, err := client.Info(cmd.Context(), args[0])
		if err != nil {
			return a.serverFailure(err)
		}
		l := lockOf(info)
		if asJSON() {
			return written(a.ui.json(l))
		}
		return written(a.ui.table(l.rows()))
	}
	return cmd
}

// rows is the lock or synchronizer as show prints it.
func (l *lockJSON) rows() [][]string {
	rows := [][]string{{"name", l.Name}, {"kind", l.Kind}}
	if isLock(l.Kind) {
		rows = append(rows, l.holderRows()...)
	} else {
		rows = append(rows, l.countRows()...)
	}
	for i, w := range l.Queue {
		rows = append(rows, []string{"waiter " + strconv.Itoa(i+1), w.Owner}, []string{"by", library(w.Client, w.Redlatch)})
		if w.Until != 0 {
			rows = append(rows, []string{"until", time.UnixMilli(w.Until).Format(time.RFC3339)})
		}
	}
	return rows
}

// holderRows is what show prints of a lock between its kind and its queue.
func (l *lockJSON) holderRows() [][]string {
	rows := [][]string{{"held", map[bool]string{true: "yes", false: "no"}[l.Held]}}
	if l.Held {
		rows = append(rows, []string{"ttl", ttlText(l.TTL)})
	}
	if l.Token > 0 {
		rows = append(rows, []string{"token", strconv.FormatInt(l.Token, 10)})
	}
	for _, h := range l.Holders {
		rows = append(rows, []string{"owner", h.Owner}, []string{"by", h.library()})
		if h.Mode != "" {
			rows = append(rows, []string{"mode", h.Mode})
		}
		if h.Value != "" {
			rows = append(rows, []string{"value", h.Value})
		}
		if h.Mode != "" || h.Value != "" {
			rows = append(rows, []string{"ttl", ttlText(h.TTL)})
		}
		rows = append(rows, []string{"count", h.count()})
	}
	return rows
}
