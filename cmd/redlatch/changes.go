package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/overview"
)

func (a *app) watchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Print what happens to a lock or a synchronizer, as it is seen",
		Long: `Print a line for each change of the lock or synchronizer NAME, whoever uses it, until
it is interrupted (ctrl-C): who acquires and releases it, whose lease ends, who has
lost it, how many wait, and how a synchronizer stands. The first line says how it is.

redlatch looks twice a second, and what begins and ends between two looks is not
seen. Every five seconds it asks the clients who waits and what they have lost.
Clients of Redisson do not answer, but those that wait are counted. The users of the
lock notice nothing.

If the server goes away, watch says so and waits for it.`,
		Example: `  redlatch watch orders:42
  redlatch watch orders:42 -o json | jq -r .change`,
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
		ctx, stop := untilTold(cmd.Context())
		defer stop()
		begun := false
		for change, err := range admin.New(client).Watch(ctx, args[0]) {
			var unasked *census.UnaskedError
			switch {
			case errors.As(err, &unasked):
				a.ui.note("who waits and what was lost is not known: %v%s", err, rightsHint(err))
			case err != nil && !begun: // something is wrong with the command line, or with the user's rights
				return a.serverFailure(err)
			case err != nil:
				a.ui.note("%v; looking again", err)
			case asJSON():
				err = a.ui.json(documentOf(&change))
			default:
				_, err = fmt.Fprintln(a.ui.out, change.At.Format(time.TimeOnly)+"  "+a.ui.safe(lineOf(&change)))
			}
			if err != nil && change.What != "" {
				return written(err)
			}
			begun = true
		}
		return nil
	}
	return cmd
}

// rightsHint says what the user lacks, if that is what is wrong.
func rightsHint(err error) string {
	if replyCode(err) == "NOPERM" || lacksRight(err) {
		return "; redlatch acl --watch prints the rights for that"
	}
	return ""
}

// A changeDocument is a change as JSON.
type changeDocument struct {
	At      time.Time     `json:"at"`
	Change  string        `json:"change"`
	Owner   string        `json:"owner,omitempty"`
	Client  string        `json:"client,omitempty"`
	By      string        `json:"by,omitempty"`
	Mode    string        `json:"mode,omitempty"`
	Value   string        `json:"value,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Waiters *int          `json:"waiters,omitempty"`
	Lock    overview.Lock `json:"lock"`
}

func documentOf(c *admin.Change) changeDocument {
	d := changeDocument{
		At: c.At.UTC().Round(time.Millisecond), Change: string(c.What), Owner: c.Holder.Owner, Client: c.Holder.Client, By: c.Holder.By,
		Mode: c.Holder.Mode, Value: c.Holder.Value, Reason: string(c.Reason), Lock: overview.Of(c.Info),
	}
	if c.Waiting >= 0 {
		d.Waiters = &c.Waiting
	}
	return d
}

// lineOf is a change in a few words.
func lineOf(c *admin.Change) string {
	text := c.String()
	if c.What != admin.ChangeBegins && c.What != admin.ChangeState {
		return text
	}
	l := overview.Of(c.Info)
	switch {
	case !l.Exists:
		return text + ": not there, so if it is a lock, it is free"
	case !overview.IsLock(l.Kind):
		return text + ": " + l.Stands()
	case !l.Held:
		return text + ": " + string(l.Kind) + ", free"
	}
	var holders []string
	for i := range l.Holders {
		h := &l.Holders[i]
		holders = append(holders, h.WhoText())
	}
	return text + ": " + string(l.Kind) + ", held by " + strings.Join(holders, ", ")
}
