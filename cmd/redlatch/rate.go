package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ratelimit"
)

// rateFlag is a rate as N/INTERVAL.
type rateFlag struct{ ratelimit.Rate }

var errRate = errors.New("write it as N/INTERVAL, such as 100/1m for 100 permits in each minute")

func (r *rateFlag) Set(s string) error {
	n, interval, ok := strings.Cut(s, "/")
	permits, err := strconv.Atoi(n)
	var d duration
	if !ok || err != nil || permits < 1 || d.Set(interval) != nil || d.Duration == 0 {
		return errRate
	}
	r.Permits, r.Interval = permits, d.Duration
	return nil
}

func (r *rateFlag) String() string {
	if r.Permits == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%v", r.Permits, r.Interval)
}

// Type names the value in the help.
func (r *rateFlag) Type() string { return "N/INTERVAL" }

func (a *app) rateCommand() *cobra.Command {
	return a.family(
		aLimiter, "rate", "Set a rate limiter, or wait for its permits",
		`A rate limiter, Redisson's RRateLimiter, gives at most N permits in every INTERVAL,
to all machines together.`,
		`  redlatch rate set api 100/1m
  redlatch rate update api 200/1m
  redlatch rate get api
  redlatch rate take api && curl https://api.example.com/
  redlatch rate take api 5 --rate 100/1m --wait 10s
  redlatch rate delete api`,
		a.rateSetCommand("set NAME N/INTERVAL", "Give it a rate, unless it has one already; then the exit code is 1", func(cmd *cobra.Command, l *ratelimit.Limiter, r ratelimit.Rate) (bool, error) {
			return l.TrySetRate(cmd.Context(), r)
		}),
		a.rateSetCommand("update NAME N/INTERVAL", "Change the rate, if it has one; what was taken still counts, and what no flag sets stays as it is", func(cmd *cobra.Command, l *ratelimit.Limiter, r ratelimit.Rate) (bool, error) {
			// UpdateRate stores a rate as a whole, and a user who gives no flag wants to
			// change none of the rest.
			had, err := l.Config(cmd.Context())
			if err != nil {
				return false, err
			}
			if !cmd.Flags().Changed("per-client") {
				r.PerClient = had.PerClient
			}
			if !cmd.Flags().Changed("keep-alive") {
				r.KeepAlive = had.KeepAlive
			}
			return true, l.UpdateRate(cmd.Context(), r)
		}),
		a.countCommand("get NAME", "Show how many permits could be taken now, or how many each client gets", 1, func(ctx context.Context, c *redlatch.Client, name string, _ int) (countJSON, error) {
			l, err := mayBe(ctx, c, name, aLimiter)
			switch {
			case err != nil:
				return countJSON{}, err
			case !l.Exists:
				return countJSON{}, noRate(redlatch.ErrUninitialized, name)
			case l.Rate.PerClient:
				return countJSON{Name: name, Count: l.Rate.Permits, PerClient: true}, nil
			}
			return countJSON{Name: name, Count: *l.Count}, nil
		}),
		a.rateTakeCommand(),
		a.deleteCommand("rate limiter", func() thing { return aLimiter }, func(ctx context.Context, c *redlatch.Client, name string) (bool, error) {
			return ratelimit.New(c, name, ratelimit.Rate{}).Delete(ctx)
		}))
}

func (a *app) rateSetCommand(use, short string, set func(*cobra.Command, *ratelimit.Limiter, ratelimit.Rate) (bool, error)) *cobra.Command {
	var rate rateFlag
	var keep duration
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(2)}
	cmd.Flags().BoolVar(&rate.PerClient, "per-client", false, "give that many permits to each client, instead of to all together; each run of redlatch is a client of its own, so this limits programs only")
	cmd.Flags().Var(&keep, "keep-alive", "delete the limiter when nobody has taken a permit for this long; 0 means never")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := rate.Set(args[1]); err != nil {
			return usage("%q is no rate: %v", args[1], err)
		}
		rate.KeepAlive = keep.Duration
		return a.with(args[0], func(c *redlatch.Client) error {
			if _, err := mayBe(cmd.Context(), c, args[0], aLimiter); err != nil {
				return err
			}
			done, err := set(cmd, ratelimit.New(c, args[0], ratelimit.Rate{}), rate.Rate)
			if err == nil && !done {
				return &failure{code: exitConflict, err: fmt.Errorf("%q has a rate already; nothing has changed", args[0]), hint: "redlatch rate update changes it"}
			}
			return noRate(err, args[0])
		})
	}
	return cmd
}

// noRate says of a rate limiter that has no rate how it gets one.
func noRate(err error, name string) error {
	if !errors.Is(err, redlatch.ErrUninitialized) {
		return err
	}
	return &failure{
		code: exitData, err: fmt.Errorf("there is no rate limiter %q", name),
		hint: fmt.Sprintf("redlatch rate set %s N/INTERVAL makes one, and so does rate take --rate", shellWord(name)),
	}
}

func (a *app) rateTakeCommand() *cobra.Command {
	var wait duration
	var rate rateFlag
	cmd := &cobra.Command{
		Use:   "take NAME [N]",
		Short: "Wait for N permits (default 1) and take them; the exit code is 1 if they are not free in time",
		Args:  cobra.RangeArgs(1, 2),
	}
	cmd.Flags().VarP(&wait, "wait", "w", "wait this long at most; 0 tries once, for --outage if the server does not answer (default: as long as it takes)")
	cmd.Flags().Var(&rate, "rate", "give it this rate, if it has none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := countArg(args, 1)
		if err != nil {
			return err
		}
		return a.with(args[0], func(c *redlatch.Client) error {
			l := ratelimit.New(c, args[0], rate.Rate)
			defer a.tellOfWait(c, args[0])()
			if err := mayBeWithin(cmd.Context(), &wait, c, args[0], aLimiter); err != nil {
				return err
			}
			return inTime(noRate(l.TryAcquire(cmd.Context(), n, wait.most()), args[0]))
		})
	}
	return cmd
}

// countArg returns the number that may follow the name.
func countArg(args []string, unsaid int) (int, error) {
	if len(args) < 2 {
		return unsaid, nil
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 {
		return 0, usage("%q is not a number of 1 or more", args[1])
	}
	return n, nil
}

// inTime turns the end of a wait into an exit code.
func inTime(err error) error {
	if errors.Is(err, redlatch.ErrBusy) {
		return &failure{code: exitConflict, err: err}
	}
	return err
}

// inWait is inTime for a wait that a context bounds, of which whoever wrote --wait
// knows nothing.
func inWait(err error) error {
	var busy *redlatch.BusyError
	if errors.As(err, &busy) && errors.Is(busy.Cause, context.DeadlineExceeded) {
		plain := *busy
		plain.Cause = nil
		err = &plain
	}
	return inTime(err)
}

// with does something that may take long.
func (a *app) with(name string, do func(c *redlatch.Client) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	client, closeAll, err := a.client(redlatch.Config{})
	if err != nil {
		return err
	}
	defer closeAll()
	return a.serverFailure(do(client))
}
