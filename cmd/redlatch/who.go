package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/wire"
)

// mostAsking is how long a command waits for the names of holders.
const mostAsking = 2 * time.Second

// identityOf names a client after the command that it runs. The base name is all
// that is told: arguments may be secrets, and anybody can read it who may use the
// server.
func identityOf(command string) string {
	const most = 100 // bytes: redlatch.New refuses longer ones
	if name := wire.Text(filepath.Base(command)); len(name) <= most {
		return name
	}
	return "" // it is redlatch then
}

// infoOf says how a lock stands, and who holds it of those who can be known: an
// error counts as nobody.
func infoOf(ctx context.Context, client *redlatch.Client, name string) admin.Info {
	ctx, cancel := context.WithTimeout(ctx, mostAsking)
	defer cancel()
	info, _ := admin.New(client).Info(ctx, name)
	if slices.ContainsFunc(info.Holders, func(h admin.Holder) bool { return h.Redlatch && h.By == "" }) {
		// It has not noted yet who it is, but says so if it is asked.
		asked, _, _ := overview.Look(ctx, client, name, false)
		for _, h := range asked.Holders {
			for i := range info.Holders {
				if h.Owner == info.Holders[i].Owner {
					info.Holders[i].By = h.By
				}
			}
		}
	}
	info.Holders = slices.DeleteFunc(info.Holders, func(h admin.Holder) bool { return h.By == "" })
	return info
}

// busyWith says who holds the lock that could not be had, where that is known.
func (r *runner) busyWith(client *redlatch.Client, err error) error {
	var busy *redlatch.BusyError
	if !errors.As(err, &busy) || busy.Owner == "" || wire.Kept(busy.Owner) {
		return err
	}
	owner := strings.TrimSuffix(busy.Owner, ":write")
	if busy.By != "" { // it is a lock, for a client has noted who it is that has it
		return heldBy(busy.Name, busy.By, owner)
	}
	info := infoOf(context.Background(), client, busy.Name)
	switch {
	case info.Kind == redlatch.KindRateLimiter:
		return fmt.Errorf("%q is not a lock but a rate limiter: while it exists, nobody can get the lock", busy.Name)
	case info.Kind == redlatch.KindGroup && r.group == nil:
		return fmt.Errorf("%q is not a lock but a group of locks, some of which are held; --group acquires such locks", busy.Name)
	}
	now := slices.IndexFunc(info.Holders, func(h admin.Holder) bool { return h.Owner == owner })
	if now < 0 && len(info.Holders) > 0 && info.Kind != redlatch.KindGroup { // of a group it may be another value's
		now = 0 // the lock has changed hands since it was last asked for
	}
	if now < 0 {
		return err
	}
	return heldBy(busy.Name, info.Holders[now].By, info.Holders[now].Owner)
}

// heldBy says who holds a lock. When its lease ends is not told: it is most likely
// renewed.
func heldBy(name, by, owner string) error {
	return fmt.Errorf("lock %q is held by %s (%s)", name, by, owner)
}
