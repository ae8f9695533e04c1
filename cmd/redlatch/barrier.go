package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

func (a *app) barrierCommand() *cobra.Command {
	var wait duration
	await := &cobra.Command{
		Use:   "wait NAME N",
		Short: "Wait until N have come, this one among them; the exit code is 1 if one of them leaves, or the time is over",
		Long: `Wait until N have come, this one among them, and print how many were still to come: 0 for
the last one, which can do what is to be done once. If one of them leaves before, or its
machine dies, the exit code is 1 for all; for one that a signal ends it is 128+n.`,
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
			missing, err := c.Barrier(args[0], n).Await(cmd.Context(), wait.options()...)
			switch {
			case errors.Is(err, redlatch.ErrBroken):
				return &failure{code: exitConflict, err: err}
			case err != nil:
				return inTime(err)
			}
			_, err = fmt.Fprintln(a.ui.out, missing)
			return written(err)
		})
	}
	reset := &cobra.Command{
		Use:   "reset NAME N",
		Short: "Send those away who wait, and make it a barrier of N",
		Args:  cobra.ExactArgs(2),
	}
	reset.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := countArg(args, 0)
		if err != nil {
			return err
		}
		return a.with(args[0], func(c *redlatch.Client) error { return c.Barrier(args[0], n).Reset(cmd.Context()) })
	}
	return a.family(
		aBarrier, "barrier", "Wait until all have come",
		`At a barrier callers wait until N of them have come; then all go on, and the barrier is there
for the next time. It is redlatch's own; Redisson has none.`,
		`  redlatch barrier wait migrated 3 && ./serve.sh
  redlatch barrier reset migrated 4`, await, reset)
}
