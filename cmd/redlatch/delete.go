package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/overview"
)

// deleteCommand makes the command that deletes something of that kind, when its
// user has said that he is sure. What the name has to stand for, which flags can
// change, is asked for when it runs.
func (a *app) deleteCommand(kind string, is func() thing, remove func(ctx context.Context, c *redlatch.Client, name string) (bool, error)) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete it, even if it is in use; on a terminal it asks first, elsewhere it needs --yes",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return a.with(name, func(c *redlatch.Client) error {
			l, err := a.mustBe(cmd.Context(), c, name, is())
			switch {
			case err != nil:
				return err
			case !l.Exists:
				_, err = fmt.Fprintf(a.ui.out, "%s was not there\n", overview.Printable(name))
				return written(err)
			}
			if !yes {
				now, _, err := overview.Look(cmd.Context(), c, name, false)
				if err != nil {
					return err
				}
				l.Waiting = now.Waiting // of whom clients know
				if err := a.ask(fmt.Sprintf("Delete the %s %s, %s?", kind, quoted(name), standing(&l))); err != nil {
					return err
				}
			}
			deleted, err := remove(cmd.Context(), c, name)
			if err != nil {
				return err
			}
			text := "deleted"
			if !deleted {
				text = "was not there"
			}
			_, err = fmt.Fprintf(a.ui.out, "%s %s\n", overview.Printable(name), text)
			return written(err)
		})
	}
	return cmd
}

// standing says what would be lost.
func standing(l *overview.Lock) string {
	text := "with " + l.Counts()
	if l.Kind == redlatch.KindCounter {
		text = "which is at " + l.Counts()
	}
	if n := len(l.Waiting); n > 0 {
		text += fmt.Sprintf(", for which %d wait", n)
	}
	return text
}

// ask asks a user at a terminal. Anything but a yes is an error, and so is nobody
// to ask.
func (a *app) ask(question string) error {
	refused := &failure{code: exitUsage, err: fmt.Errorf("not deleted"), hint: "if you are sure, add --yes"}
	if !isTerminal(os.Stdin) || !isTerminal(os.Stderr) {
		return refused
	}
	fmt.Fprintf(a.ui.err, "redlatch: %s [y/N] ", a.ui.safe(question))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}

// A thing is what a command takes what has a name for.
type thing struct {
	what  string          // in a user's words
	kinds []redlatch.Kind // as which it may be recognised
}

var (
	aLimiter = thing{"rate limiter", []redlatch.Kind{redlatch.KindRateLimiter}}
	aBarrier = thing{"barrier", []redlatch.Kind{redlatch.KindBarrier}}
	aLatch   = thing{"latch", []redlatch.Kind{redlatch.KindLatch, redlatch.KindCounter}}
	// What has a TTL, or less than no permits, or what somebody waits for, looks like
	// the other type, and may be either.
	leased   = thing{"semaphore whose permits have leases", []redlatch.Kind{redlatch.KindExpirable, redlatch.KindSemaphore, redlatch.KindCounter}}
	unleased = thing{"semaphore whose permits belong to nobody (--expirable is the other type)", []redlatch.Kind{redlatch.KindSemaphore, redlatch.KindCounter}}
)

// mustBe refuses to treat the key of that name as something that it is not, as far
// as what is stored tells, and tells a user at a terminal if that is not far. What
// is not there can become anything. It returns how the key stands.
func (a *app) mustBe(ctx context.Context, c *redlatch.Client, name string, is thing) (overview.Lock, error) {
	l, err := mayBe(ctx, c, name, is)
	if err == nil && l.Kind == redlatch.KindCounter && isTerminal(os.Stderr) {
		a.ui.note("%s is a number, and nothing that is stored says that it is a %s", quoted(name), is.what)
	}
	return l, err
}

// mayBeWithin is mayBe for a command that waits: for a server that does not
// answer, too, no longer than it is to. What that takes is taken off the wait.
func mayBeWithin(ctx context.Context, wait *duration, c *redlatch.Client, name string, is thing) error {
	if wait.Duration > 0 {
		start := time.Now()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait.Duration)
		defer cancel()
		defer func() { wait.Duration = max(0, wait.Duration-time.Since(start)) }()
	}
	_, err := mayBe(ctx, c, name, is)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redlatch.ErrUnavailable) {
		return nil // too short to look: the wait itself says how it stands
	}
	return err
}

// mayBe is mustBe for what takes nothing away if it is wrong, so nobody is told of
// a doubt.
func mayBe(ctx context.Context, c *redlatch.Client, name string, is thing) (overview.Lock, error) {
	info, err := admin.New(c).Info(ctx, name)
	why := "its kind is " + string(info.Kind)
	switch l := overview.Of(info); {
	case replyCode(err) == "WRONGTYPE":
		why = "what is stored there is nothing of redlatch's or Redisson's"
	case err != nil, !l.Exists, slices.Contains(is.kinds, l.Kind):
		return l, err
	}
	return overview.Lock{}, &failure{
		code: exitData, err: fmt.Errorf("%q is not a %s: %s; nothing has changed", name, is.what, why),
		hint: "redlatch show " + shellWord(name) + " shows its state",
	}
}
