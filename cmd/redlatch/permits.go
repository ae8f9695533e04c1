package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
)

// permitsJSON is what semaphore acquire prints.
type permitsJSON struct {
	Name    string   `json:"name"`
	IDs     []string `json:"ids"`
	LeaseMs int64    `json:"lease_ms"`
}

// permitCommands are those about permits that have ids.
func (a *app) permitCommands() []*cobra.Command {
	return []*cobra.Command{a.permitAcquireCommand(), a.permitExtendCommand(), a.permitReleaseCommand()}
}

func (a *app) permitAcquireCommand() *cobra.Command {
	var lease, wait duration
	var of int
	cmd := &cobra.Command{
		Use:   "acquire NAME [N] --lease DURATION",
		Short: "Wait for N permits with leases (default 1), take them and print their ids; the exit code is 1 if they are not free in time",
		Args:  cobra.RangeArgs(1, 2),
	}
	cmd.Flags().Var(&lease, "lease", "hold the permits this long, unless they are extended or released")
	cmd.Flags().VarP(&wait, "wait", "w", "wait this long at most; 0 tries once, for --outage if the server does not answer (default: as long as it takes)")
	cmd.Flags().IntVar(&of, "of", 0, "make a semaphore of this many permits, if there is none; a semaphore of another number is refused")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := countArg(args, 1)
		if err != nil {
			return err
		}
		if !lease.set {
			return usage("semaphore acquire needs --lease: nothing renews the permits after it has ended")
		}
		sized := cmd.Flags().Changed("of")
		if sized && n > of {
			return usage("%d of %d permits can never be had", n, of)
		}
		if err := unread(os.Stdout); err != nil {
			return err
		}
		return a.with(args[0], func(c *redlatch.Client) error {
			defer a.tellOfWait(c, args[0])()
			if err := mayBeWithin(cmd.Context(), &wait, c, args[0], leased); err != nil {
				return err
			}
			// The server may lose its data during the wait.
			s := semaphore.NewExpirable(c, args[0], of, redlatch.Lease(lease.Duration))
			if sized {
				if err := haveOf(cmd.Context(), s, permits{n, of}); err != nil {
					return err
				}
			}
			taken, err := s.TryAcquire(cmd.Context(), n, wait.most())
			if err != nil {
				return inTime(noPermits(err, args[0]))
			}
			return written(a.handOut(args[0], taken, lease.Milliseconds(), asJSON()))
		})
	}
	return cmd
}

// handOut prints the ids of permits, for their reader to release; what cannot be
// printed is given back.
func (a *app) handOut(name string, taken *redlatch.Hold, leaseMs int64, asJSON bool) (err error) {
	var ids []string
	for _, p := range taken.Members() {
		ids = append(ids, p.ID())
	}
	if asJSON {
		err = a.ui.json(permitsJSON{name, ids, leaseMs})
	} else {
		_, err = fmt.Fprintln(a.ui.out, strings.Join(ids, "\n"))
	}
	for _, p := range taken.Members() {
		if err != nil { // nobody knows them who could release them
			_ = p.Release(context.Background())
		} else {
			_, _ = p.Detach() // of one whose lease is over by now its reader learns that when it releases it
		}
	}
	runtime.KeepAlive(taken)
	return err
}

func (a *app) permitExtendCommand() *cobra.Command {
	var lease duration
	cmd := &cobra.Command{
		Use:   "extend NAME ID... --lease DURATION",
		Short: "Raise the leases of permits by their ids; the exit code is 74 if one is not live any more",
		Args:  cobra.MinimumNArgs(2),
	}
	cmd.Flags().Var(&lease, "lease", "hold the permits this long from now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !lease.set {
			return usage("extend needs --lease")
		}
		return a.with(args[0], func(c *redlatch.Client) error {
			for _, id := range args[1:] {
				if err := semaphore.NewExpirable(c, args[0], 0).Extend(cmd.Context(), id, lease.Duration); err != nil {
					return gone(err)
				}
			}
			return nil
		})
	}
	return cmd
}

func (a *app) permitReleaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME ID...",
		Short: "Give permits back by their ids: all of them, or none if one is not live any more; then the exit code is 74",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(args[0], func(c *redlatch.Client) error {
				return gone(semaphore.NewExpirable(c, args[0], 0).Release(cmd.Context(), args[1:]...))
			})
		},
	}
}

// gone turns the loss of what was named into an exit code.
func gone(err error) error {
	if errors.Is(err, redlatch.ErrNotHeld) {
		return &failure{code: exitLost, err: err}
	}
	return err
}
