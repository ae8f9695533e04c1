package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/spf13/cobra"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a lock, or the state of a synchronizer",
		Long: `Show who holds the lock NAME, how often and since when, and who waits for it. Of a
fenced lock show also the last token. Of a semaphore, latch, rate limiter or
barrier, show its state: which permits are taken, or how far it has come.

redlatch asks the clients who they are, and since when they hold or wait. That takes
up to two seconds if one of them gives no answer. Clients of Redisson do not say who
they are, but those that wait are counted. What a client claims to hold and Redis
does not show is marked. Holds that clients have lost within an hour are shown, with
the reason. A lease that is renewed has no end. For other leases, "ttl" says when
they end if nobody renews them.

Callers that hold what others wait for, and wait for what those hold, are shown as a
possible deadlock. To see that they still do, show looks again two seconds later.

The kind is a guess from what is stored. A semaphore and a latch are only numbers,
and often cannot be told apart. A free lock is not stored.

The exit code is 0 whether or not the lock is held.`,
		Example: `  redlatch show orders:42
  redlatch show orders:42 -o json | jq .held`,
		Args: cobra.ExactArgs(1),
	}
	a.completes(cmd, cobra.ShellCompDirectiveNoFileComp, (*admin.Admin).Objects)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, closeAll, err := a.looking(args[0])
		if err != nil {
			return err
		}
		defer closeAll()
		l, problem, err := overview.Look(cmd.Context(), client, args[0], true)
		if err != nil {
			return a.serverFailure(err)
		}
		if problem != "" {
			a.ui.note("%s", problem)
		}
		if asJSON() {
			return written(a.ui.json(l))
		}
		return written(a.ui.table(rowsOf(&l)))
	}
	return cmd
}

// looking returns a client that looks at what has this name.
func (a *app) looking(name string) (client *redlatch.Client, closeAll func(), err error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	return a.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
}

// rows is the lock or synchronizer as show prints it.
func rowsOf(l *overview.Lock) [][]string {
	rows := [][]string{{"name", l.Name}}
	switch {
	case !l.Exists:
		rows = append(rows, []string{"exists", "no: if it is a lock, it is free"})
	case overview.IsLock(l.Kind):
		rows = append(append(rows, []string{"kind", string(l.Kind)}), holderRows(l)...)
	default:
		rows = append(append(rows, []string{"kind", string(l.Kind)}), countRows(l)...)
	}
	rows = append(append(rows, deadlockRows(l)...), lostRows(l)...)
	rows = append(rows, claimRows(l)...)
	return append(rows, waiterRows(l)...)
}

// holderRows is what show prints of a lock between its kind and its queue.
func holderRows(l *overview.Lock) [][]string {
	rows := [][]string{{"held", map[bool]string{true: "yes", false: "no"}[l.Held]}}
	if l.Held {
		rows = append(rows, []string{"ttl", l.LeaseText()})
	}
	if l.Token > 0 {
		rows = append(rows, []string{"token", strconv.FormatInt(l.Token, 10)})
	}
	for _, h := range l.Holders {
		rows = append(rows, []string{"owner", h.Owner}, []string{"by", h.WhoText()})
		rows = append(rows, sinceRows(&h.Told)...)
		if h.Mode != "" {
			rows = append(rows, []string{"mode", h.Mode})
		}
		if h.Value != "" {
			rows = append(rows, []string{"value", h.Value})
		}
		if h.Mode != "" || h.Value != "" {
			rows = append(rows, []string{"ttl", h.LeaseText(h.TTL)})
		}
		rows = append(rows, []string{"count", strconv.Itoa(h.Count)})
	}
	return rows
}

// sinceRows is for how long a holder has what it has, where it got it, and what
// for.
func sinceRows(t *overview.Told) (rows [][]string) {
	if t.For != nil {
		rows = append(rows, []string{"for", t.ForText()})
	}
	if t.Site != "" {
		rows = append(rows, []string{"site", t.Site})
	}
	if t.Note != "" {
		rows = append(rows, []string{"note", t.Note})
	}
	return rows
}

// mostRows is how many waiters, and how many claims, show prints: anybody who may
// use locks can claim as many as it likes.
const mostRows = 100

// lostRows are the holds that clients say they have lost, the latest first.
func lostRows(l *overview.Lock) (rows [][]string) {
	for i, c := range slices.Backward(l.Lost) {
		if len(rows) == mostRows {
			return append(rows, []string{"lost", fmt.Sprintf("by %d more", i+1)})
		}
		rows = append(rows, []string{"lost", fmt.Sprintf("by %s, %s ago: %s%s", c.Who(), c.ForText(), c.Reason, at(c.Site))})
	}
	return rows
}

// deadlockRows are the callers that seem to wait for one another.
func deadlockRows(l *overview.Lock) (rows [][]string) {
	for _, circle := range l.Deadlocks {
		rows = append(rows, []string{"deadlock", fmt.Sprintf("possible deadlock of %d callers:", len(circle))})
		for i, w := range circle {
			text := w.Who() + " waits for " + w.Name + ", for " + overview.TTLText(w.Waited) + at(w.WaitSite)
			text += "; held by " + circle[(i+1)%len(circle)].Who() + at(w.HoldSite)
			rows = append(rows, []string{"", text})
		}
	}
	return rows
}

func at(site string) string {
	if site == "" {
		return ""
	}
	return ", at " + site
}

// claimRows are the holds that clients claim and Redis does not show.
func claimRows(l *overview.Lock) (rows [][]string) {
	for i, c := range l.Claims {
		if i == mostRows {
			return append(rows, []string{"claimed", fmt.Sprintf("by %d more", len(l.Claims)-i)})
		}
		rows = append(rows, []string{"claimed", "by " + sentence(&c) + "; " + c.Worth()})
	}
	return rows
}

// waiterRows are who waits: those in the queue, if there is one, then who else
// says so, and how many say nothing.
func waiterRows(l *overview.Lock) (rows [][]string) {
	n, left := 0, 0
	add := func(who string) bool {
		if n == mostRows {
			left++
			return false
		}
		n++
		rows = append(rows, []string{"waiter " + strconv.Itoa(n), who})
		return true
	}
	for _, w := range l.Queue {
		if !add(w.ByText(w.Client, w.Redlatch) + details(&w.Told)) {
			continue
		}
		rows = append(rows, []string{"owner", w.Owner})
		if w.Until != 0 {
			rows = append(rows, []string{"until", time.UnixMilli(w.Until).Format(time.RFC3339)})
		}
	}
	for w := range l.Unqueued {
		add(sentence(w))
	}
	if left > 0 {
		rows = append(rows, []string{"waiters", fmt.Sprintf("and %d more", left)})
	}
	if others := l.OthersText(); others != "" {
		if n > 0 {
			others = "and " + others
		}
		rows = append(rows, []string{"waiters", others})
	}
	if l.Silent != nil && *l.Silent > 0 {
		rows = append(rows, []string{"silent", overview.SilenceText(*l.Silent)})
	}
	return rows
}

// sentence says who claims something, and since when.
func sentence(c *overview.Claim) string {
	text := c.Who()
	if c.Mode != "" {
		text += ", to " + c.Mode
	}
	return text + details(&c.Told)
}

// details are for how long it has been so, where it began, and what for.
func details(t *overview.Told) (text string) {
	if t.For != nil {
		text = ", for " + t.ForText()
	}
	text += at(t.Site)
	if t.Note != "" {
		text += ": " + wire.Said(t.Note) // it must not forge what follows
	}
	return text
}
