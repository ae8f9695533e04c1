package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

// acquiredJSON is what acquire prints.
type acquiredJSON struct {
	Name    string `json:"name"`
	Owner   string `json:"owner"`
	LeaseMs int64  `json:"lease_ms"`
	Token   int64  `json:"token,omitempty"`
}

func (a *app) acquireCommand() *cobra.Command {
	r := &runner{app: a, conflict: exitConflict}
	r.addLockFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // but for one, none of them is set
	cmd := &cobra.Command{
		Use:   "acquire NAME --lease DURATION",
		Short: "Acquire a lock for several steps of a script, and print its owner",
		Long: `Wait for the lock NAME, acquire it for --lease, and print its owner, which extend
and release need. Nothing renews the lock: it is free when its lease is over, unless
redlatch extend has raised the lease. A script that works on after that is not told.
If one command can do all of the work, redlatch run is safer: it renews the lock,
and ends the command when the lock is lost.

The exit code is 1 if acquire did not get the lock.`,
		Example: `  owner=$(redlatch acquire deploy --lease 10m --wait 5m) || exit
  ./build.sh && redlatch extend deploy --owner "$owner" --lease 10m && ./roll-out.sh
  redlatch release deploy --owner "$owner"`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.Var(&r.lease, "lease", "hold the lock this long, unless it is extended or released")
	f.VarP(&r.wait, "wait", "w", "wait this long for the lock at most; 0 tries once, for --outage if the server does not answer (default: as long as it takes)")
	f.BoolVarP(&r.try, "try", "n", false, "try once: the same as --wait 0")
	f.BoolVar(r.types["fenced"], "fenced", false, "get a fencing token, which -o json prints")
	asJSON := outputFlag(cmd)
	a.completes(cmd, cobra.ShellCompDirectiveNoFileComp, (*admin.Admin).Locks)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		r.name = args[0]
		if !r.lease.set {
			return usage("acquire needs --lease: nothing renews the lock after acquire has ended")
		}
		if err := r.checkTimes(); err != nil {
			return err
		}
		if err := checkName(r.name); err != nil {
			return err
		}
		if err := unread(os.Stdout); err != nil {
			return err
		}
		client, closeAll, err := a.client(redlatch.Config{})
		if err != nil {
			return err
		}
		if err := r.checkUnder(client); err != nil {
			closeAll()
			return err
		}
		signals := make(chan os.Signal, 64)
		supervise.Notify(signals)
		hold, err := r.acquire(client, signals)
		if err != nil {
			closeAll()
			return err
		}
		if asJSON() {
			err = a.ui.json(acquiredJSON{r.name, hold.ID(), r.lease.Milliseconds(), hold.Token()})
		} else {
			_, err = fmt.Fprintln(a.ui.out, hold.ID())
		}
		if err != nil { // nobody knows it who could release it
			_ = hold.Release(cmd.Context())
		} else {
			_, _ = hold.Detach() // of one whose lease is over by now its reader learns that when it releases it
		}
		closeAll()
		return written(err)
	}
	return cmd
}

func (a *app) extendCommand() *cobra.Command {
	var owner string
	var lease duration
	cmd := &cobra.Command{
		Use:   "extend NAME --owner OWNER --lease DURATION",
		Short: "Raise the lease of a lock that redlatch acquire has taken",
		Long: `Let the lock NAME last for --lease from now, if it does not last longer already.
OWNER is what redlatch acquire has printed. The exit code is 74 if that owner does
not have the lock any more. Then somebody else may have it.`,
		Example: `  redlatch extend deploy --owner "$owner" --lease 10m`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&owner, "owner", "", "what redlatch acquire has printed")
	cmd.Flags().Var(&lease, "lease", "let the lock last this long from now")
	a.completes(cmd, cobra.ShellCompDirectiveNoFileComp, (*admin.Admin).Locks)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !lease.set || !cmd.Flags().Changed("owner") {
			return usage("extend needs --owner and --lease")
		}
		if owner == "" {
			return errNoOwner
		}
		return a.asOwner(args[0], func(l *redlatch.Lock) error { return l.ExtendID(cmd.Context(), owner, lease.Duration) })
	}
	return cmd
}

// errNoOwner is for a script whose variable is empty, most likely because acquire
// has failed.
var errNoOwner = usage("--owner is empty: it is what redlatch acquire has printed, if it got the lock")

// asOwner does something to a lock for one who owns it.
func (a *app) asOwner(name string, do func(l *redlatch.Lock) error) error {
	return a.with(name, func(c *redlatch.Client) error { return gone(do(c.Lock(name))) })
}
