package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

// watchdog is the lease of a lock that run keeps, unless a file says another:
// Redisson's default.
const watchdog = 30 * time.Second

// A runner is one invocation of run.
type runner struct {
	*app
	name    string
	argv    []string
	shell   string           // --command
	types   map[string]*bool // which type of lock; see lockFlags
	multi   []string         // --multi, instead of name
	permits permits          // --permits
	group   []string         // --group
	redlock []string         // --redlock
	voters  []*redlatch.Client

	wait      duration
	try       bool
	lease     duration
	atLeast   duration
	onLost    choice
	killAfter duration
	conflict  int
	sysexits  bool

	told bool // the user has been told of the loss
}

func (a *app) runCommand() *cobra.Command {
	r := &runner{
		app:       a,
		onLost:    choice{value: "kill", options: []string{"kill", "warn", "ignore"}},
		killAfter: duration{Duration: 5 * time.Second},
	}
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock NAME, run COMMAND while holding it, and release it when the
command and everything in its process group has ended.

redlatch runs the command directly. A shell runs it only with -c. The command
inherits standard input, output and error. Its exit code is passed on; 128+n means
that signal n ended it. The exit code is 1 if run did not get the lock (-E changes
that), 69 if the server cannot be reached, 126 if COMMAND cannot be executed, and
127 if there is no such command.

If the lock is lost while the command runs, its process group gets TERM, and KILL
after --kill-after. Then the exit code is 74.

With --multi there is no NAME: the flag has the names of all locks. With --permits
NAME is a semaphore, which is made if there is none. With --group NAME is a group of
locks, one for each value. With --redlock it is the lock of a majority of servers
that are independent of each other.

The command finds these variables in its environment: REDLATCH_HELD=true,
REDLATCH_NAME, REDLATCH_OWNER (its owner in Redis), REDLATCH_LEASE_MS, and with
--fenced REDLATCH_TOKEN. A run that would wait for a lock under which it runs itself
is refused. On a terminal, run says after a second who has what it waits for.`,
		Example: `  redlatch run nightly-report -- ./report.sh --all
  redlatch run nightly-report --try -- ./report.sh || echo "another machine does it"
  redlatch run --multi stock,orders -- ./move.sh
  redlatch run --permits 1/4 encoder -- ./encode.sh film.mov
  redlatch run seats --group 12,13 -- ./book.sh
  redlatch run hourly --try --hold-at-least 10m -- ./count.sh
  redlatch run migrate --wait 10m -c 'dump | gzip > dump.gz'`,
		Args: r.arguments,
	}
	f := cmd.Flags()
	// Flags end at the first word that is none: what follows is the command's.
	f.SetInterspersed(false)
	f.VarP(&r.wait, "wait", "w", "wait this long for the lock at most; 0 tries once, for --outage if the server does not answer (default: as long as it takes)")
	f.BoolVarP(&r.try, "try", "n", false, "try once: the same as --wait 0")
	f.Var(&r.lease, "lease", "hold the lock this long at most, not renewed (default: 30s, renewed while the command runs)")
	f.Var(&r.atLeast, "hold-at-least", "keep the lock at least this long, even if the command ends sooner: for short jobs on machines whose clocks differ; of the other types of lock only --fenced and --spin allow it")
	f.Var(&r.onLost, "on-lost", "what to do if the lock is lost: kill the command, warn, or ignore it")
	f.Var(&r.killAfter, "kill-after", "how long after TERM to send KILL to a command that has lost the lock; 0 sends KILL at once")
	f.IntVarP(&r.conflict, "conflict-exit-code", "E", exitConflict, "exit code if run does not get the lock")
	f.BoolVar(&r.sysexits, "sysexits", false, "exit with 75 (EX_TEMPFAIL) if run does not get the lock")
	f.StringVarP(&r.shell, "command", "c", "", "run this with /bin/sh -c instead of a command")
	r.addLockFlags(f)
	cmd.RunE = r.run
	r.onLost.completes(cmd, "on-lost")
	r.completes(cmd, cobra.ShellCompDirectiveDefault, (*admin.Admin).Locks)
	return cmd
}

// arguments sorts out NAME [flags] [--] COMMAND [ARG...]. The first round of
// parsing has stopped at NAME.
func (r *runner) arguments(cmd *cobra.Command, args []string) error {
	if r.multi != nil {
		r.argv = args // the names are given
		return nil
	}
	if command := unnamed(cmd, args); command != "" {
		what := "a lock"
		if cmd.Name() == "elect" {
			what = "an election"
		}
		return usage("%s needs the name of %s before the command: redlatch %[1]s NAME -- %[3]s", cmd.Name(), what, command)
	}
	r.name = args[0]
	// What follows NAME is flags again, up to "--" or the command.
	if err := cmd.ParseFlags(args[1:]); err != nil {
		return err
	}
	r.argv = cmd.Flags().Args()
	if r.multi != nil {
		return usage("the locks are named twice: %s, and with --multi", quoted(r.name))
	}
	return nil
}

// unnamed returns the command of a line that has no name before it; empty if it
// has one.
func unnamed(cmd *cobra.Command, args []string) string {
	switch {
	case len(args) == 0:
		return "COMMAND"
	case cmd.ArgsLenAtDash() == 0 && !cmd.Flags().Changed("command") && !strings.HasPrefix(args[0], "-") && !slices.Contains(args[1:], "--"):
		return shellWord(args[0])
	}
	return ""
}

// check refuses what does not fit together, and finds the command: a lock need
// not be taken for one that is not there.
func (r *runner) check(cmd *cobra.Command) (path string, err error) {
	f := cmd.Flags()
	if err := r.checkTimes(); err != nil {
		return "", err
	}
	switch {
	case r.lease.set && r.atLeast.Duration > r.lease.Duration:
		return "", usage("--hold-at-least %v is longer than --lease %v, after which others may have the lock", r.atLeast.Duration, r.lease.Duration)
	case f.Changed("conflict-exit-code") && r.sysexits:
		return "", usage("--sysexits and --conflict-exit-code contradict each other")
	case r.conflict < 0 || r.conflict > 255:
		return "", usage("--conflict-exit-code %d is not between 0 and 255", r.conflict)
	case f.Changed("command") && len(r.argv) > 0:
		return "", usage("there is a command after --command: %q", r.argv[0])
	case !f.Changed("command") && len(r.argv) == 0:
		what := shellWord(r.name)
		if r.multi != nil {
			what = "--multi " + quoted(strings.Join(r.multi, ","))
		}
		return "", usage("%s needs a command: redlatch %[1]s %s -- COMMAND", cmd.Name(), what)
	}
	if err := r.checkLockFlags(); err != nil {
		return "", err
	}
	if f.Changed("command") {
		r.argv = []string{"/bin/sh", "-c", r.shell}
		if runtime.GOOS == "windows" {
			r.argv = []string{"cmd.exe", "/C", r.shell}
		}
	}
	path, err = exec.LookPath(r.argv[0])
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", &failure{code: exitCannotRun, err: fmt.Errorf("%s: not executable", r.argv[0])}
	case errors.Is(err, exec.ErrDot):
		return "", &failure{code: exitNotFound, err: fmt.Errorf("%s is in the current directory, not in PATH; write ./%[1]s", r.argv[0])}
	}
	return "", &failure{code: exitNotFound, err: fmt.Errorf("%s: no such command", r.argv[0])}
}

// shortestLease is that of the library, which says so only when it has a server.
const shortestLease = 20 * time.Millisecond

// checkTimes refuses a wait and a lease that cannot be.
func (r *runner) checkTimes() error {
	switch {
	case r.try && r.wait.set && r.wait.Duration > 0:
		return usage("--try and --wait %v contradict each other", r.wait.Duration)
	case r.lease.set && r.lease.Duration < shortestLease:
		return usage("--lease %v is too short to be of use; it must be at least %v", r.lease.Duration, shortestLease)
	}
	return nil
}

func (r *runner) run(cmd *cobra.Command, _ []string) error {
	if help, _ := cmd.Flags().GetBool("help"); help {
		return cmd.Help() // "run NAME --help"
	}
	path, err := r.check(cmd)
	if err != nil {
		return err
	}
	client, closeAll, err := r.clients(redlatch.Config{Identity: redlatch.Identity{Name: identityOf(r.argv[0])}})
	if err != nil {
		return err
	}
	defer closeAll()

	if err := r.checkUnder(client); err != nil {
		return err
	}
	signals := make(chan os.Signal, 64)
	supervise.Notify(signals)
	held, err := r.acquire(client, signals)
	if err != nil {
		return err
	}
	result, err := r.supervise(held, path, signals)
	lost := held.Err() // asked before the release, which ends the hold as well
	released := held.Release(context.Background())
	if !errors.Is(lost, redlatch.ErrLost) {
		lost = released
	}
	switch {
	case err != nil:
		return &failure{code: exitCannotRun, err: err}
	case errors.Is(lost, redlatch.ErrLost):
		return r.afterLoss(lost, result)
	case released != nil:
		// The work is done, and the lock frees itself in time.
		r.ui.note("the release of %q is not confirmed; the lock is free after %v at the latest: %v", strings.Join(r.names(), ","), r.leaseTime(), released)
	}
	return r.passOn(result)
}

// clients connects to the server, or to all those of --redlock, of which the first
// one is asked whom a wait is for.
func (r *runner) clients(cfg redlatch.Config) (first *redlatch.Client, closeAll func(), err error) {
	if r.redlock == nil {
		return r.client(cfg)
	}
	var ends []func()
	var shown []string
	closeAll = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, url := range r.redlock {
		server := *r.app
		server.server.url = url
		c, end, err := server.client(cfg)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		ends, r.voters, r.watchdog, shown = append(ends, end), append(r.voters, c), server.watchdog, append(shown, server.shown)
	}
	r.shown, r.chosen = strings.Join(shown, ", "), "--redlock names the servers"
	return r.voters[0], closeAll, nil
}

// most is how long the acquisition may wait still.
func (r *runner) most() time.Duration {
	if r.try {
		return 0
	}
	return r.wait.most()
}

// options are what the flags say of the hold, for what takes which of them.
type options struct {
	hold  []redlatch.HoldOption
	lock  []redlatch.LockOption
	plain []redlatch.PlainOption
}

func (r *runner) options() (o options) {
	if r.lease.set {
		lease := redlatch.Lease(r.lease.Duration)
		o.hold, o.lock, o.plain = append(o.hold, lease), append(o.lock, lease), append(o.plain, lease)
	}
	if *r.types["fenced"] {
		o.lock, o.plain = append(o.lock, redlatch.Fenced()), append(o.plain, redlatch.Fenced())
	}
	if r.atLeast.Duration > 0 {
		o.plain = append(o.plain, redlatch.MinHold(r.atLeast.Duration))
	}
	return o
}

// acquire waits for the lock. A signal ends the wait.
func (r *runner) acquire(client *redlatch.Client, signals <-chan os.Signal) (*redlatch.Hold, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type outcome struct {
		hold *redlatch.Hold
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		hold, err := r.take(ctx, client)
		done <- outcome{hold, err}
	}()
	defer r.tellOfWait(client, r.names()...)()
	var o outcome
	select {
	case o = <-done:
	case sig := <-signals:
		cancel()
		if o = <-done; o.hold != nil {
			_ = o.hold.Release(context.Background()) // Close waits for it, within bounds
		}
		r.after = interrupted(sig)
		return nil, &failure{code: supervise.Code(sig)}
	}
	if errors.Is(o.err, redlatch.ErrBusy) {
		code := r.conflict
		if r.sysexits {
			code = exitTempFail
		}
		return nil, &failure{code: code, err: r.busyWith(client, o.err)}
	}
	return o.hold, r.serverFailure(o.err)
}

// supervise runs the command.
func (r *runner) supervise(hold *redlatch.Hold, path string, signals chan os.Signal) (result supervise.Result, err error) {
	c := supervise.Command{
		Path:      path,
		Args:      r.argv,
		Env:       r.environment(hold),
		Signals:   signals,
		KillAfter: r.killAfter.Duration,
		Notice:    func(text string) { r.ui.note("%s", text) },
	}
	ctx := hold.Context()
	if r.onLost.value == "kill" {
		c.Stop = ctx.Done()
		c.MayContinue = func() bool { return hold.Err() == nil }
	}
	if r.onLost.value != "ignore" {
		note := func() {
			what := "the command goes on"
			switch {
			case r.onLost.value != "kill":
			case r.killAfter.Duration == 0:
				what = "killing the command"
			default:
				what = fmt.Sprintf("ending the command: TERM, and KILL %v later", r.killAfter.Duration)
			}
			r.ui.note("%v; %s", context.Cause(ctx), what)
		}
		noted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { defer close(noted); note() })
		defer func() {
			switch {
			case !stop():
				<-noted
			case result.Stopped: // and has ended before we came to say so
				note()
			default:
				return
			}
			r.told = true
		}()
	}
	return supervise.Run(c)
}

func (r *runner) leaseTime() time.Duration {
	if r.lease.set {
		return r.lease.Duration
	}
	return r.watchdog
}

// facts are the variables that tell the command of the lock.
var facts = []string{"REDLATCH_HELD", "REDLATCH_NAME", "REDLATCH_OWNER", "REDLATCH_LEASE_MS", "REDLATCH_TOKEN", underVariable}

// environment is the command's: ours, and what the lock adds to it. What there is
// to say of another lock, which we may be running under, is none of this one.
func (r *runner) environment(hold *redlatch.Hold) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(facts, name)
	})
	env = append(env, "REDLATCH_HELD=true", "REDLATCH_LEASE_MS="+strconv.FormatInt(r.leaseTime().Milliseconds(), 10))
	facts := r.facts(hold)
	for _, fact := range facts {
		if owners, ok := strings.CutPrefix(fact, "REDLATCH_OWNER="); ok {
			env = append(env, underVariable+"="+strings.Join(append(under(), owners), ","))
		}
	}
	return append(env, facts...)
}

// afterLoss ends the program after a loss, whenever it was noticed.
func (r *runner) afterLoss(err error, result supervise.Result) error {
	if r.onLost.value != "ignore" && !r.told {
		r.ui.note("%v; that was noticed only when the command had ended", err)
	}
	if r.onLost.value != "kill" {
		return r.passOn(result)
	}
	return &failure{code: exitLost, err: fmt.Errorf("the lock was lost; the command ended with %d", result.Code)}
}

// passOn ends the program as the command has ended.
func (r *runner) passOn(result supervise.Result) error {
	r.after = result.Raise
	if result.Code == 0 {
		return nil
	}
	return &failure{code: result.Code}
}
