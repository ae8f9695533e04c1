package main

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// mostCompletions is how many names a shell is given.
	mostCompletions = 200
	// completionTime is how long somebody who has pressed a key waits for them.
	completionTime = time.Second
)

// A lister lists what has a name that matches a pattern.
type lister func(a *admin.Admin, ctx context.Context, pattern string) iter.Seq2[admin.Info, error]

// completes has a shell complete NAME, the first argument, by what the server has.
// A server that cannot be asked completes nothing. Names that would have to be
// quoted are left out: not every shell quotes what it is given, and what stands in
// such a name it may run.
func (a *app) completes(cmd *cobra.Command, then cobra.ShellCompDirective, list lister) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, then
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: completionTime})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer closeAll()
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		for info, err := range list(admin.New(client), ctx, wire.Literally(begun)+"*") {
			if err != nil || len(names) == mostCompletions {
				break
			}
			if quoted(info.Name) == info.Name && !slices.Contains(names, info.Name) { // the same may be listed twice
				names = append(names, info.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// lister returns one of what may be the thing.
func (is thing) lister() lister {
	// Each list goes over all names, so one that has nothing of these kinds is left
	// out.
	counters := []redlatch.Kind{redlatch.KindCounter, redlatch.KindLatch, redlatch.KindSemaphore}
	isCounter := func(kind redlatch.Kind) bool { return slices.Contains(counters, kind) }
	var lists []lister
	if slices.ContainsFunc(is.kinds, isCounter) {
		lists = append(lists, (*admin.Admin).Counters)
	}
	if slices.ContainsFunc(is.kinds, func(kind redlatch.Kind) bool { return !isCounter(kind) }) {
		lists = append(lists, (*admin.Admin).Objects)
	}
	return func(a *admin.Admin, ctx context.Context, pattern string) iter.Seq2[admin.Info, error] {
		return func(yield func(admin.Info, error) bool) {
			for _, list := range lists {
				for info, err := range list(a, ctx, pattern) {
					if (err != nil || slices.Contains(is.kinds, info.Kind)) && !yield(info, err) {
						return
					}
				}
			}
		}
	}
}
