package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

// An elector is one invocation of elect: a runner whose command runs once in each term.
type elector struct {
	*runner

	mu      sync.Mutex     // guards what follows
	command chan os.Signal // of the command that runs; nil while there is none
	ended   *failure       // why a campaign was given up
}

func (a *app) electCommand() *cobra.Command {
	e := &elector{runner: &runner{
		app:       a,
		onLost:    choice{value: "kill"},
		killAfter: duration{Duration: 5 * time.Second},
	}}
	e.addLockFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // none of them is set
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command on one machine at a time, for as long as there is one",
		Long: `Stand for the election NAME, and run COMMAND while leading. Of all that do so one
leads at a time; when it ends, another one starts its COMMAND at once, and when its
machine dies, after 30 seconds.

If the leadership is lost while the command runs, its process group gets TERM, and
KILL after --kill-after; then redlatch stands for the election again, and starts the command
anew when it leads again. When the command ends by itself, redlatch gives the leadership up
and ends with its exit code. Outages do not end the candidacy, so --outage has no effect.

The command finds in its environment REDLATCH_HELD=true, REDLATCH_NAME, REDLATCH_OWNER
(its owner in Redis), REDLATCH_LEASE_MS, and in REDLATCH_TOKEN the
number of the term, which is higher than that of every leader before: what it writes to should
refuse lower ones. The lock is Redisson's RFencedLock, and redlatch show NAME says who leads.`,
		Example: `  redlatch elect scheduler -- ./scheduler --serve
  redlatch elect scheduler --kill-after 20s -c 'exec ./scheduler --term $REDLATCH_TOKEN'
  redlatch show scheduler`,
		Args: e.arguments,
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.Var(&e.killAfter, "kill-after", "how long after TERM to send KILL to a command that leads no longer; 0 sends KILL at once")
	f.StringVarP(&e.shell, "command", "c", "", "run this with /bin/sh -c instead of a command")
	cmd.RunE = e.elect
	e.completes(cmd, cobra.ShellCompDirectiveDefault, (*redlatch.Client).Locks)
	return cmd
}

// errCommandEnded ends the candidacy: the command has ended by itself.
var errCommandEnded = errors.New("the command has ended")

func (e *elector) elect(cmd *cobra.Command, _ []string) error {
	if help, _ := cmd.Flags().GetBool("help"); help {
		return cmd.Help()
	}
	path, err := e.check(cmd)
	if err != nil {
		return err
	}
	client, closeAll, err := e.client(redlatch.Config{WatchdogTimeout: watchdog, Identity: redlatch.Identity{Name: identityOf(e.argv[0])}})
	if err != nil {
		return err
	}
	defer closeAll()
	if err := e.checkUnder(client); err != nil {
		return err
	}
	ctx, give := context.WithCancel(context.Background())
	defer give()
	signals := make(chan os.Signal, 64)
	supervise.Notify(signals)
	go e.forward(ctx, signals, give)

	var result supervise.Result
	told := e.tellOfWait(client, e.name)
	err = client.Election(e.name).Run(ctx, func(ctx context.Context) (err error) {
		told()
		defer func() { told = e.tellOfWait(client, e.name) }()
		commands := make(chan os.Signal, 64)
		if !e.leads(commands) {
			return nil // a signal came before
		}
		defer e.leads(nil)
		held := redlatch.HoldFrom(ctx)
		if result, err = e.supervise(held, path, commands); err != nil {
			return &failure{code: exitCannotRun, err: err}
		}
		if result.Stopped || held.Err() != nil {
			return nil // with which the command has ended: stand again
		}
		return errCommandEnded
	})
	told()
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	switch {
	case errors.Is(err, errCommandEnded):
		return e.passOn(result)
	case ended != nil:
		return ended
	}
	return e.serverFailure(err)
}

// leads notes to which command signals go; nil: to none. It returns false if one has ended the
// candidacy.
func (e *elector) leads(command chan os.Signal) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.command = command
	return e.ended == nil
}

// forward passes signals on to the command. While none runs a signal ends the candidacy.
func (e *elector) forward(ctx context.Context, signals <-chan os.Signal, give func()) {
	for {
		select {
		case sig := <-signals:
			e.mu.Lock()
			if e.command == nil {
				e.ended = &failure{code: supervise.Code(sig)}
				give()
			} else {
				select {
				case e.command <- sig:
				default: // it does not keep up with 64
				}
			}
			e.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}
