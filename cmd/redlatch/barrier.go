package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
)

func (a *app) barrierCommand() *cobra.Command {
	var wait duration
	await := &cobra.Command{
		Use:   "wait NAME N",
		Short: "Wait until N callers have come, this one included; the exit code is 1 if one of them leaves, or the time is over",
		Long: `Wait until N callers have come, this one included, and print how many were still to
come. That is 0 for the last one, which can do what has to be done once. If one of
them leaves before, or its machine dies, the exit code is 1 for all. For one that a
signal ends it is 128+n.`,
		Args: cobra.ExactArgs(2),
	}
	await.Flags().VarP(&wait, "wait", "w", "wait this long at most (default: as long as it takes)")
	await.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := countArg(args, 0)
		if err != nil {
			return err
		}
		return a.with(args[0], func(c *redlatch.Client) error {
			defer a.tellOfWait(c, args[0])()
			if wait.most() == 0 {
				return usage("--wait 0: who comes to a barrier waits for the others; give a time, or leave it out")
			}
			ctx, cancel := wait.bound(cmd.Context())
			defer cancel()
			missing, err := barrier.New(c, args[0], n).Await(ctx)
			switch {
			case errors.Is(err, barrier.ErrBroken):
				return &failure{code: exitConflict, err: err}
			case err != nil:
				return inWait(err)
			}
			_, err = fmt.Fprintln(a.ui.out, missing)
			return written(err)
		})
	}
	reset := &cobra.Command{
		Use:   "reset NAME N",
		Short: "Send the waiting callers away, and make it a barrier of N",
		Args:  cobra.ExactArgs(2),
	}
	reset.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := countArg(args, 0)
		if err != nil {
			return err
		}
		return a.with(args[0], func(c *redlatch.Client) error { return barrier.New(c, args[0], n).Reset(cmd.Context()) })
	}
	return a.family(
		aBarrier, "barrier", "Wait until all callers have come",
		`At a barrier, callers wait until N of them have come. Then all of them go on, and
the barrier can be used again. Only redlatch has barriers, and Redisson has none.`,
		`  redlatch barrier wait migrated 3 && ./serve.sh
  redlatch barrier reset migrated 4`, await, reset)
}
