package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/top"
	"github.com/redlatch/redlatch/internal/overview"
)

func (a *app) topCommand() *cobra.Command {
	interval := duration{Duration: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "Watch locks live, on a terminal: who holds them, who waits, what was lost",
		Long: `Show the locks and synchronizers whose names match PATTERN, a glob, on the whole
terminal, and keep that up to date: who holds each of them and for how long, how
many callers wait, how long the longest has waited, and how many holds were lost
lately.

Keys: the arrows move. enter shows one lock with its waiters, the lines of the
programs, and what was seen of it while top ran. s sorts by waiters, by the longest
wait, by losses or by name. / filters. r asks whether to release a lock by force,
and says who holds it. q ends top.

Each look goes over all keys of the server (SCAN), takes a few requests for each
lock, and asks all clients once, or twice while top shows one lock. A client answers
once a second at most. With many keys choose a longer --interval. What happens
between two looks is not seen. If the server goes away, top waits for it, and the
last list stays.

Without a terminal use redlatch ls --watch.`,
		Example: `  redlatch top
  redlatch top --interval 1s 'orders:*'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Var(&interval, "interval", "how long to wait after one look for the next, at least 1s")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := patternOf(args)
		switch {
		case interval.Duration < time.Second:
			return tooOften(interval)
		case !paints(os.Stdout) || !isTerminal(os.Stdin):
			return usage("top needs a terminal; redlatch ls --watch does without one")
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
		if err != nil {
			return err
		}
		defer closeAll()
		ctx, stop := untilTold(cmd.Context())
		defer stop()
		lister := overview.Lister{Client: client, Pattern: pattern, Lost: true}
		first, err := lister.List(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return a.serverFailure(err)
		}
		err = top.Run(ctx, top.Options{
			Server: a.shownAddress(), Pattern: pattern, Interval: interval.Duration,
			List: lister.List,
			Look: func(ctx context.Context, name string, deadlocks [][]overview.Wait) (top.One, error) {
				l, problem, err := overview.Look(ctx, client, name, false)
				l.Deadlocks = deadlocks
				return top.One{Rows: rowsOf(&l), Problem: problem}, err
			},
			Release: func(ctx context.Context, l overview.Lock) (bool, error) {
				return a.forceRelease(ctx, client, l.Name, l.Owners())
			},
			Safe: a.ui.safe, Keys: os.Stdin, Terminal: os.Stdout, Color: colorful(os.Stdout),
		}, first)
		if err != nil {
			return &failure{code: exitSoftware, err: err}
		}
		return nil
	}
	return cmd
}
