package main

import (
	"context"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/spf13/cobra"
)

func (a *app) latchCommand() *cobra.Command {
	return a.family(
		aLatch, "latch", "Set a count-down latch, count it down, or wait for it",
		`A count-down latch, Redisson's RCountDownLatch, is set to a count. A caller that
waits for it goes on when it has been counted down to 0. A latch that was never set
is at 0.`,
		`  redlatch latch set workers 3
  redlatch latch down workers
  redlatch latch wait workers --wait 10m && ./all-are-ready.sh
  redlatch latch delete workers`,
		a.countCommand("set NAME N", "Set the count, unless the latch is being counted down; then the exit code is 1", 2,
			func(ctx context.Context, c *redlatch.Client, name string, n int) (countJSON, error) {
				if n < 1 {
					return countJSON{}, usage("a latch counts down from 1 or more")
				}
				if _, err := a.mustBe(ctx, c, name, aLatch); err != nil {
					return countJSON{}, err
				}
				l := latch.New(c, name)
				set, err := l.TrySetCount(ctx, n)
				if err != nil {
					return countJSON{}, err
				}
				if !set {
					n, err = l.Count(ctx)
				}
				return countJSON{Name: name, Count: n, Set: &set}, err
			}),
		a.countCommand("down NAME", "Count down by one, and show the count", 1, func(ctx context.Context, c *redlatch.Client, name string, _ int) (countJSON, error) {
			if _, err := a.mustBe(ctx, c, name, aLatch); err != nil {
				return countJSON{}, err
			}
			l := latch.New(c, name)
			if err := l.CountDown(ctx); err != nil {
				return countJSON{}, err
			}
			n, err := l.Count(ctx)
			return countJSON{Name: name, Count: n}, err
		}),
		a.latchWaitCommand(),
		a.deleteCommand("latch", func() thing { return aLatch }, func(ctx context.Context, c *redlatch.Client, name string) (bool, error) {
			return latch.New(c, name).Delete(ctx)
		}))
}

func (a *app) latchWaitCommand() *cobra.Command {
	var wait duration
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until the count is 0; the exit code is 1 if --wait is over before",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().VarP(&wait, "wait", "w", "wait this long at most; 0 looks once, for --outage if the server does not answer (default: as long as it takes)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(args[0], func(c *redlatch.Client) error {
			defer a.tellOfWait(c, args[0])()
			if err := mayBeWithin(cmd.Context(), &wait, c, args[0], aLatch); err != nil {
				return err
			}
			return awaitLatch(cmd.Context(), latch.New(c, args[0]), &wait)
		})
	}
	return cmd
}

// awaitLatch waits for the latch. A wait of 0 only looks.
func awaitLatch(ctx context.Context, l *latch.Latch, wait *duration) error {
	if wait.most() == 0 {
		missing, err := l.Count(ctx)
		if err == nil && missing > 0 {
			err = inTime(&redlatch.BusyError{Name: l.Name(), Kind: redlatch.KindLatch})
		}
		return err
	}
	ctx, cancel := wait.bound(ctx)
	defer cancel()
	return inWait(l.Wait(ctx))
}
