package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/observe"
)

// An elector is one invocation of elect: a runner whose command runs once in each
// term.
type elector struct {
	*runner

	standby duration

	mu      sync.Mutex     // guards what follows
	command chan os.Signal // of the command that runs; nil while there is none
	held    *redlatch.Hold // under which that runs
	ended   error          // by which signal the candidacy ends; nil: by none yet
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
		Short: "Run a command on one machine at a time, on another one when that ends",
		Long: `Be a candidate in the election NAME, and run COMMAND while leading. Of all
candidates one leads at a time. When the leader ends, another one starts its COMMAND
at once. When the leader's machine dies, another one starts after 30 seconds.

With --standby a candidate lets others go first: it leads only when nobody has led
for that long. Give it to all candidates but the preferred ones. It ends no command
of a leader, and it is no promise: a preferred candidate may be cut off. 5s suit most.

If the leadership is lost while the command runs, its process group gets TERM, and
KILL after --kill-after. Then redlatch is a candidate again, and starts the command
anew when it leads again, unless a signal has told it to end. When the command ends
by itself, redlatch gives the leadership up and ends with the command's exit code.
Outages do not end the candidacy, so --outage has no effect.

The command finds these variables in its environment: REDLATCH_HELD=true,
REDLATCH_NAME, REDLATCH_OWNER (its owner in Redis), REDLATCH_LEASE_MS, and
REDLATCH_TOKEN, the number of the leadership. That number is higher than the number
of every leader before. What the command writes to should refuse lower numbers. The
lock is Redisson's RFencedLock, and redlatch show NAME says who leads.`,
		Example: `  redlatch elect scheduler -- ./scheduler --serve
  redlatch elect scheduler --kill-after 20s -c 'exec ./scheduler --term $REDLATCH_TOKEN'
  redlatch elect scheduler --standby 5s -- ./scheduler --serve
  redlatch show scheduler`,
		Args: e.arguments,
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.Var(&e.killAfter, "kill-after", "how long after TERM to send KILL to a command that leads no longer; 0 sends KILL at once")
	f.Var(&e.standby, "standby", "lead only when nobody has led for this long: others go first")
	f.StringVarP(&e.shell, "command", "c", "", "run this with /bin/sh -c instead of a command")
	cmd.RunE = e.elect
	e.completes(cmd, cobra.ShellCompDirectiveDefault, (*admin.Admin).Locks)
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
	client, closeAll, err := e.client(redlatch.Config{Identity: redlatch.Identity{Name: identityOf(e.argv[0])}})
	if err != nil {
		return err
	}
	defer closeAll()
	observe.Add(client, observe.Hooks{AcquireEnd: e.tellOfOutage()})
	if err := e.checkUnder(client); err != nil {
		return err
	}
	ctx, give := context.WithCancelCause(context.Background())
	defer give(nil)
	signals := make(chan os.Signal, 64)
	supervise.Notify(signals)
	go e.forward(ctx, signals, give)

	var result supervise.Result
	told := e.tellOfWait(client, e.name)
	err = election.New(client, e.name, election.Standby(e.standby.Duration)).Run(ctx, func(ctx context.Context, _ int64) (err error) {
		told()
		defer func() { told = e.tellOfWait(client, e.name) }()
		commands := make(chan os.Signal, 64)
		held := redlatch.HoldFrom(ctx)
		if ended := e.runs(commands, held); ended != nil {
			return ended // a signal came before
		}
		result, err = e.supervise(held, path, commands)
		ended := e.runs(nil, nil)
		switch {
		case err != nil:
			return &failure{code: exitCannotRun, err: err}
		case result.Stopped || held.Err() != nil:
			return ended // the term has ended the command: without a signal, stand again
		}
		return errCommandEnded
	})
	told()
	if errors.Is(err, errCommandEnded) {
		return e.passOn(result)
	}
	return e.serverFailure(err)
}

// tellOfOutage returns what says in a log, again and again, that the server does
// not answer: no error ends the candidacy then, and nobody would know why nothing
// runs. At a terminal tellOfWait says so.
func (e *elector) tellOfOutage() func(context.Context, observe.AcquireEndEvent) {
	if isTerminal(os.Stderr) {
		return nil
	}
	var told time.Time
	return func(_ context.Context, a observe.AcquireEndEvent) {
		if a.Outcome == observe.OutcomeUnavailable && time.Since(told) > time.Minute {
			told = time.Now()
			e.ui.note("waiting to lead %s: the server does not answer: %v", quoted(e.name), driver.Failure(a.Err).Err)
		}
	}
}

// runs notes to which command signals go, and under which hold it runs; nil: there
// is none. If a signal has ended the candidacy, it returns that.
func (e *elector) runs(command chan os.Signal, held *redlatch.Hold) (ended error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.command, e.held = command, held
	return e.ended
}

// forward passes signals on to the command. A signal ends the candidacy, too,
// while no command runs or the one that runs leads no longer: the sender means
// redlatch, which is about to wait. INT, QUIT and TERM always do, for a command
// may lose the leadership while it obeys them. The other signals may ask a leader
// for something else, such as to read its files again.
func (e *elector) forward(ctx context.Context, signals <-chan os.Signal, give context.CancelCauseFunc) {
	stops := []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM}
	for {
		select {
		case sig := <-signals:
			e.mu.Lock()
			if e.ended == nil && (e.command == nil || e.held.Err() != nil || slices.Contains(stops, sig)) {
				e.ended = &failure{code: supervise.Code(sig)}
			}
			if e.command == nil {
				give(e.ended)
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
