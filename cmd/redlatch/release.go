package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/spf13/cobra"
)

func (a *app) releaseCommand() *cobra.Command {
	var force bool
	var owner string
	cmd := &cobra.Command{
		Use:   "release NAME --owner OWNER | --force",
		Short: "Release a lock of redlatch acquire, or take a lock away from its holder",
		Long: `With --owner, release the lock NAME if OWNER has it. OWNER is what redlatch acquire
has printed. If OWNER does not have the lock any more, the exit code is 74.

With --force, take the lock away from whoever holds it, so that the next caller can
have it.

A holder that uses redlatch is asked first. It has ended its section, or has been
told, before the lock is given away. But redlatch does not wait for a holder that
does not answer within a second. A Redisson holder is not told at all: it goes on as
if it had the lock. So release only the locks of holders that you know to be dead.

Of a fair lock, waiters that have died are removed, also if nobody holds it.

The readers and the writer of a read-write lock are all released. A group of locks
is refused, because its values cannot be told from what is stored.

With --force the exit code is 0 also if nobody held the lock.`,
		Example: `  redlatch release deploy --owner "$owner"
  redlatch release orders:42 --force`,
		Args: cobra.ExactArgs(1),
	}
	a.completes(cmd, cobra.ShellCompDirectiveNoFileComp, (*admin.Admin).Locks)
	cmd.Flags().BoolVar(&force, "force", false, "release the lock, whoever holds it")
	cmd.Flags().StringVar(&owner, "owner", "", "release the lock if this owner has it, which redlatch acquire has printed")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := checkName(name); err != nil {
			return err
		}
		switch owned := cmd.Flags().Changed("owner"); {
		case owned && force:
			return usage("--force and --owner contradict each other")
		case owned && owner == "":
			return errNoOwner
		case owned:
			err := a.asOwner(name, func(l *redlatch.Lock) error { return l.ReleaseID(cmd.Context(), owner) })
			if err != nil {
				return err
			}
			return a.printReleased(name, true, asJSON())
		case !force:
			return &failure{
				code: exitUsage,
				err:  fmt.Errorf("not released: %s may be working, and would work on without the lock", a.whoHolds(cmd.Context(), name)),
				hint: "if you are sure, type: redlatch release --force " + shellWord(name),
			}
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout})
		if err != nil {
			return err
		}
		defer closeAll()
		released, err := a.forceRelease(cmd.Context(), client, name, anybody)
		if err != nil {
			return err
		}
		return a.printReleased(name, released, asJSON())
	}
	return cmd
}

func (a *app) printReleased(name string, released, asJSON bool) error {
	if asJSON {
		return written(a.ui.json(struct {
			Name     string `json:"name"`
			Released bool   `json:"released"`
		}{name, released}))
	}
	text := "was not held"
	if released {
		text = "released"
	}
	_, err := fmt.Fprintf(a.ui.out, "%s %s\n", overview.Printable(name), text)
	return written(err)
}

// whoHolds names the holder of a lock as far as that can be known at once. Without
// a server nobody is known.
func (a *app) whoHolds(ctx context.Context, name string) string {
	client, closeAll, err := a.client(redlatch.Config{OutageTimeout: time.Second})
	if err != nil {
		return fmt.Sprintf("whoever holds %q", name)
	}
	defer closeAll()
	var by []string
	for _, h := range infoOf(ctx, client, name).Holders {
		if !slices.Contains(by, h.By) {
			by = append(by, h.By)
		}
	}
	if len(by) == 0 {
		return fmt.Sprintf("whoever holds %q", name)
	}
	return fmt.Sprintf("%s, who holds %q,", strings.Join(by, " and "), name)
}

// anybody stands for all owners.
const anybody = ""

// forceRelease releases a lock as what it looks like: who waits for it is woken as
// its type does that. If other owners have it than those, it is left to them: that
// is looked at just before.
func (a *app) forceRelease(ctx context.Context, client *redlatch.Client, name, owners string) (released bool, err error) {
	info, err := admin.New(client).Info(ctx, name)
	if err != nil {
		return false, a.serverFailure(err)
	}
	switch now := overview.Of(info); {
	case owners == anybody || now.Owners() == owners:
	case !now.Held:
		return false, nil
	default:
		return false, fmt.Errorf("%s has it now", now.HoldersText())
	}
	locks, err := locksOf(client, info.Kind, name)
	if err != nil {
		return false, err
	}
	for _, lock := range locks {
		ok, err := admin.ForceRelease(ctx, lock)
		if err != nil {
			return released, a.serverFailure(err)
		}
		released = released || ok
	}
	return released, nil
}

// locksOf returns what is to be released of a lock of a kind.
func locksOf(client *redlatch.Client, kind redlatch.Kind, name string) ([]*redlatch.Lock, error) {
	switch {
	case !overview.IsLock(kind):
		return nil, &failure{
			code: exitData, err: fmt.Errorf("%q is not a lock: its kind is %s, and only locks are released", name, kind),
			hint: "redlatch show " + shellWord(name) + " shows its state",
		}
	case kind == redlatch.KindFair:
		return []*redlatch.Lock{client.FairLock(name)}, nil
	case kind == redlatch.KindReadWrite:
		rw := client.ReadWriteLock(name)
		return []*redlatch.Lock{rw.Write(), rw.Read()}, nil
	case kind == redlatch.KindGroup:
		return nil, &failure{
			code: exitData, err: fmt.Errorf("%q is a group of locks: what is stored does not tell which of its values to release", name),
			hint: "a program that knows the values can give their redisson.GroupLock to admin.ForceRelease",
		}
	}
	return []*redlatch.Lock{client.Lock(name)}, nil
}

// shellWord is s as an argument of a command, for a POSIX shell.
func shellWord(s string) string {
	if strings.HasPrefix(s, "-") { // else it is taken for a flag
		return "-- " + quoted(s)
	}
	return quoted(s)
}

// quoted quotes s for a POSIX shell if it needs to be. A name with control
// characters is written as it is shown.
func quoted(s string) string {
	if overview.Printable(s) != s {
		return "$'" + overview.Printable(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s)) + "'"
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_:./@%+,", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
