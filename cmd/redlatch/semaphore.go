package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/spf13/cobra"
)

// counts is what the commands about a semaphore need of one of either type.
type counts interface {
	Available(ctx context.Context) (int, error)
	TrySetPermits(ctx context.Context, n int) (bool, error)
	AddPermits(ctx context.Context, n int) error
	Delete(ctx context.Context) (bool, error)
}

// countJSON is what the commands about a semaphore or a latch print.
type countJSON struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Set   *bool  `json:"set,omitempty"`

	PerClient bool `json:"per_client,omitempty"`
}

// text is what a user reads of it.
func (c countJSON) text() string {
	if c.PerClient {
		return fmt.Sprintf("%d for each client", c.Count)
	}
	return strconv.Itoa(c.Count)
}

func (a *app) semaphoreCommand() *cobra.Command {
	expirable := new(bool)
	members := append(
		a.permitCommands(),
		a.countCommand("get NAME", "Show how many permits are free", 1, func(ctx context.Context, c *redlatch.Client, name string, _ int) (countJSON, error) {
			s := semaphoreOf(c, name, *expirable)
			if _, err := a.mustBe(ctx, c, name, semaphoreThing(*expirable)); err != nil {
				return countJSON{}, err
			}
			n, err := s.Available(ctx)
			if errors.Is(err, redlatch.ErrUninitialized) {
				n, err = 0, nil
			}
			return countJSON{Name: name, Count: n}, err
		}),
		a.countCommand("set NAME N", "Make a semaphore with N permits, unless there is one already; then the exit code is 1", 2,
			func(ctx context.Context, c *redlatch.Client, name string, n int) (countJSON, error) {
				if n < 0 {
					return countJSON{}, usage("a semaphore cannot be made with %d permits", n)
				}
				s := semaphoreOf(c, name, *expirable)
				if _, err := a.mustBe(ctx, c, name, semaphoreThing(*expirable)); err != nil {
					return countJSON{}, err
				}
				made, err := s.TrySetPermits(ctx, n)
				if err != nil {
					return countJSON{}, err
				}
				if !made {
					n, err = s.Available(ctx)
				}
				return countJSON{Name: name, Count: n, Set: &made}, err
			}),
		a.countCommand("add NAME N", "Add N permits, or take them away (-- -N), and show how many are free", 2, func(ctx context.Context, c *redlatch.Client, name string, n int) (countJSON, error) {
			s := semaphoreOf(c, name, *expirable)
			l, err := a.mustBe(ctx, c, name, semaphoreThing(*expirable))
			if err != nil {
				return countJSON{}, err
			}
			if n < 0 && !l.Exists {
				return countJSON{}, neverSet(name, *expirable)
			}
			if err := s.AddPermits(ctx, n); err != nil {
				return countJSON{}, err
			}
			left, err := s.Available(ctx)
			return countJSON{Name: name, Count: left}, err
		}),
		a.deleteCommand("semaphore", func() thing { return semaphoreThing(*expirable) }, func(ctx context.Context, c *redlatch.Client, name string) (bool, error) {
			return semaphoreOf(c, name, *expirable).Delete(ctx)
		}))
	cmd := a.family(
		semaphoreThing(true), // with or without --expirable
		"semaphore", "Look at a semaphore, change it, or take its permits",
		`A semaphore has a number of permits. A caller that finds too few of them free waits.
With --expirable the permits have ids and leases (Redisson's
RPermitExpirableSemaphore). run --permits, and acquire, extend and release, are for
those only. Without --expirable, permits belong to nobody (RSemaphore).`,
		`  redlatch semaphore set encoders 4 --expirable
  redlatch semaphore get encoders --expirable
  redlatch semaphore add encoders --expirable -- -1
  id=$(redlatch semaphore acquire encoders --lease 10m) || exit
  redlatch semaphore extend encoders "$id" --lease 10m
  redlatch semaphore release encoders "$id"
  redlatch semaphore delete encoders --expirable`, members...)
	cmd.PersistentFlags().BoolVar(expirable, "expirable", false, "the permits have leases, as those of run --permits")
	return cmd
}

// semaphoreOf returns the semaphore of that type.
func semaphoreOf(c *redlatch.Client, name string, expirable bool) counts {
	if expirable {
		return semaphore.NewExpirable(c, name, 0)
	}
	return semaphore.New(c, name, 0)
}

// semaphoreThing is what a semaphore of that type may be recognised as.
func semaphoreThing(expirable bool) thing {
	if expirable {
		return leased
	}
	return unleased
}

// neverSet says that there is no semaphore, and how one is made.
func neverSet(name string, expirable bool) error {
	flag := ""
	if expirable {
		flag = "--expirable "
	}
	return &failure{
		code: exitData, err: fmt.Errorf("there is no semaphore %q; nothing has changed", name),
		hint: fmt.Sprintf("redlatch semaphore set %s%s N makes one of N permits", flag, shellWord(name)),
	}
}

// noPermits says of a semaphore with leases that has never been given permits how
// that is done.
func noPermits(err error, name string) error {
	if errors.Is(err, redlatch.ErrUninitialized) {
		return neverSet(name, true)
	}
	return err
}

// countCommand makes a command about something with a name and a number.
func (a *app) countCommand(use, short string, args int, do func(ctx context.Context, c *redlatch.Client, name string, n int) (countJSON, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args)}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName(args[0]); err != nil {
			return err
		}
		n := 0
		if len(args) > 1 {
			var err error
			if n, err = strconv.Atoi(args[1]); err != nil {
				return usage("%q is no number", args[1])
			}
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout})
		if err != nil {
			return err
		}
		defer closeAll()
		result, err := do(cmd.Context(), client, args[0], n)
		if err != nil {
			return a.serverFailure(err)
		}
		if asJSON() {
			err = a.ui.json(result)
		} else {
			_, err = fmt.Fprintln(a.ui.out, result.text())
		}
		if err == nil && result.Set != nil && !*result.Set {
			return &failure{code: exitConflict, err: fmt.Errorf("%q is there already; nothing has changed", result.Name)}
		}
		return written(err)
	}
	return cmd
}
