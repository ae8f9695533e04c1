package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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
		Short: "Watch locks live: who holds them, who waits, what was lost",
		Long: `Show the locks and synchronizers whose names match PATTERN, a glob, on
the whole terminal, and keep that up to date: who holds each, for how long, how
many wait and how long the longest, and how many holds were lost lately.

Keys: the arrows move; enter shows one lock with its waiters, the lines of the
programs, and what was seen of it while top ran; s sorts by waiters, by the
longest wait, by losses or by name; / filters; r asks whether to release a lock
by force, and says whose it is; q ends it.

Each time it goes over all keys of the server (SCAN), takes a few requests for
each lock, and asks all clients once, twice while it shows one lock. A client
answers once a second at most. With many keys choose a longer --interval. What
happens between two looks is not seen. A server that goes away is waited for, and
the last list stays.

Without a terminal see redlatch ls --watch.`,
		Example: `  redlatch top
  redlatch top --interval 1s 'orders:*'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Var(&interval, "interval", "how long to wait after one look for the next, at least 1s")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := "*"
		if len(args) == 1 {
			pattern = args[0]
		}
		switch {
		case interval.Duration < time.Second:
			return usage("--interval %v is too short; it must be at least 1s", interval.Duration)
		case !paints(os.Stdout) || !isTerminal(os.Stdin):
			return usage("top needs a terminal; redlatch ls --watch does without one")
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
		if err != nil {
			return err
		}
		defer closeAll()
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
