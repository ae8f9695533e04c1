package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/redisson"
)

// underVariable is where a command finds the owners of all locks that redlatch
// runs hold around it.
const underVariable = "REDLATCH_UNDER"

// under returns the owners of the locks under which this program runs.
func under() []string {
	return strings.FieldsFunc(os.Getenv(underVariable), func(r rune) bool { return r == ',' })
}

// checkUnder refuses to wait for a lock that is held until this program has ended.
// It asks only if there is such a lock; what cannot be asked refuses nothing.
func (r *runner) checkUnder(client *redlatch.Client) error {
	owners := under()
	if len(owners) == 0 || r.permits.n > 0 || r.try || r.wait.set && r.wait.Duration == 0 {
		return nil
	}
	for _, name := range r.names() {
		if r.ours(client, name, owners) {
			return usage("this command runs under the lock %s already, which is held until the command has ended: it would wait for itself for ever", quoted(name))
		}
	}
	return nil
}

// ours says whether these owners have the lock, so that nobody else can. Of
// --redlock they have so many of the servers that the others are no majority:
// which of them the command above has is chance.
func (r *runner) ours(client *redlatch.Client, name string, owners []string) bool {
	servers := r.voters
	if servers == nil {
		servers = []*redlatch.Client{client}
	}
	var held atomic.Int64
	var asking sync.WaitGroup
	for _, server := range servers {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), mostAsking)
			defer cancel()
			var info admin.Info
			if r.group != nil { // others may have the group's other values
				info, _ = admin.LockInfo(ctx, redisson.GroupLock(server, name, r.group))
			} else {
				info, _ = admin.New(server).Info(ctx, name)
			}
			if slices.ContainsFunc(info.Holders, func(h admin.Holder) bool {
				besides := h.Mode == "read" && *r.types["shared"]
				return slices.Contains(owners, h.Owner) && !besides
			}) {
				held.Add(1)
			}
		})
	}
	asking.Wait()
	majority := len(servers)/2 + 1
	return len(servers)-int(held.Load()) < majority
}

// untilSignal is a command that waits, and whose context a signal ends: it leaves
// what it waits for, so that nobody waits for it in turn, and the exit code is
// 128+n. A second signal ends it at once.
func untilSignal(wait func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		signals := make(chan os.Signal, 1)
		supervise.Notify(signals)
		defer signal.Stop(signals)
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		go func() {
			select {
			case sig := <-signals:
				signal.Stop(signals)
				cancel(&signalled{sig})
			case <-ctx.Done():
			}
		}()
		cmd.SetContext(ctx)
		err := wait(cmd, args)
		if by := (*signalled)(nil); err != nil && errors.As(context.Cause(ctx), &by) {
			interrupted(by.signal)()
			return &failure{code: supervise.Code(by.signal)}
		}
		return err
	}
}

// signalled is why a context has ended: a signal came.
type signalled struct{ signal os.Signal }

func (s *signalled) Error() string { return s.signal.String() }

// interrupted returns what ends this process by the signal, if somebody at a
// terminal has pressed Ctrl-C: then a script around it ends as well.
func interrupted(sig os.Signal) func() {
	return supervise.Result{Interrupted: sig == os.Interrupt && isTerminal(os.Stderr)}.Raise
}

const (
	// tellAfter is how long a wait lasts before a user is told what it is for.
	tellAfter = time.Second
	// lookAgain is how long after that the next look is.
	lookAgain = 5 * time.Second
)

// tellOfWait tells a user at a terminal who has what is waited for, or how it
// stands, and that the server does not answer, until the function that it returns
// is called.
func (a *app) tellOfWait(client *redlatch.Client, names ...string) (stop func()) {
	if a.ui.quiet || !isTerminal(os.Stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		told := map[string]string{}
		if text := unreachable(ctx, client, names[0]); text != "" {
			a.ui.note("waiting for %s%s", quoted(names[0]), text)
		}
		for pause := tellAfter; ; pause = lookAgain {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			for _, name := range names {
				who, text := whatFor(ctx, client, name)
				if ctx.Err() != nil {
					return
				}
				if who == noAnswer || who != "" && who != told[name] {
					told[name] = who
					a.ui.note("waiting for %s%s", quoted(name), text)
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

const noAnswer = "no answer"

// unreachable says that the server cannot be reached, if that is known within a
// moment. One that is slow is given its time.
func unreachable(ctx context.Context, client *redlatch.Client, name string) string {
	brief, cancel := context.WithTimeout(ctx, tellAfter/4)
	defer cancel()
	_, err := admin.New(client).Info(brief, name)
	var run *driver.RunError
	if ctx.Err() != nil || !errors.As(err, &run) || run.Outcome != driver.NotExecuted {
		return ""
	}
	return fmt.Sprintf(": the server does not answer: %v", run.Err)
}

// whatFor says for whom a wait for a lock is, and that in words; or that nobody
// answers.
func whatFor(ctx context.Context, client *redlatch.Client, name string) (who, text string) {
	ctx, cancel := context.WithTimeout(ctx, mostAsking)
	defer cancel()
	l, _, err := overview.Look(ctx, client, name, false)
	switch {
	case errors.Is(err, redlatch.ErrUnavailable):
		return noAnswer, fmt.Sprintf(": the server does not answer: %v", driver.Failure(err).Err)
	case err != nil:
		return "", ""
	case !overview.IsLock(l.Kind):
		who = l.Stands()
		if n := len(l.Holders); n > 0 && l.Holders[0].By != "" { // else nobody knows whose the permits are
			who += ", held by " + l.HoldersText()
		}
		return who, ": " + who
	case len(l.Holders) == 0:
		return "", ""
	}
	h := &l.Holders[0]
	text = ", held by " + l.HoldersText()
	if h.For != nil {
		text += " for " + h.ForText()
	}
	return h.Owner, text
}
