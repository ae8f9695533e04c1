package lock

import (
	"context"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Members of one client and, where slots count, of one slot are taken with one
// request, all of them or none, if nobody of this process has or wants one of
// them. Who has to wait for a member does that as for any lock.

// Joint returns the locks that can be taken together with the first one, and that;
// nil if there are none.
func Joint(ctx context.Context, order []*Spec) []*Spec {
	first := order[0]
	var locks []*Spec
	for _, lock := range order {
		switch {
		case lock.Env != first.Env, lock.Kind.Joint == nil, lock.Kind.Joint != first.Kind.Joint, lock.Wish.Lease != first.Wish.Lease, lock.Wish.Fenced, lock.Within(ctx):
			continue
		case request.SlotsCount(lock.Env.Server) && wire.Slot(lock.Key) != wire.Slot(first.Key):
			continue
		}
		locks = append(locks, lock)
	}
	if len(locks) < 2 || locks[0] != first {
		return nil
	}
	return locks
}

// Together takes joint locks, if all are free. It returns their holds, or which
// one is not free, with the error that says so, or an error of the request; or
// nothing if the locks are to be taken one by one.
func Together(ctx context.Context, locks []*Spec, want *term.Params) (holds []*term.Hold, missing *Spec, err error) {
	all := make([]*term.Lock, len(locks))
	for i, lock := range locks {
		all[i] = &lock.Lock
	}
	holds, i, err := locks[0].locks.Together(ctx, all, want)
	if i >= 0 {
		missing = locks[i]
	}
	return holds, missing, err
}
