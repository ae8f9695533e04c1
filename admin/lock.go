package admin

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/revoke"
)

// LockInfo asks the server who holds a lock, through the lock's client. It changes
// nothing. If the key of that name is something else, or a lock of another kind
// that is stored in another way, the error is a *driver.RunError with the code
// WRONGTYPE.
//
// Of several locks as one it asks for the members, all at the same time, each
// through its own client. The errors of those that could not be asked are joined;
// in Info.Members these have nothing but their names.
func LockInfo(ctx context.Context, lock *redlatch.Lock) (Info, error) {
	return lockInfo(ctx, bridge.OpenLock(lock))
}

func lockInfo(ctx context.Context, l bridge.Lock) (Info, error) {
	if l.Err != nil {
		return Info{}, l.Err
	}
	if l.Members != nil {
		return membersInfo(ctx, l)
	}
	info, err := stored(ctx, &l)
	if err != nil {
		return Info{}, err
	}
	info = only(&l, info)
	introduce(ctx, l.Client, &info)
	return info, nil
}

func membersInfo(ctx context.Context, l bridge.Lock) (Info, error) {
	info := Info{Name: l.Name, Kind: redlatch.Kind(l.Kind), Members: make([]Info, len(l.Members))}
	err := l.Each(func(i int) (err error) {
		info.Members[i], err = lockInfo(ctx, l.Members[i])
		info.Members[i].Name = l.Members[i].Name
		return err
	})
	return info, err
}

// stored is the Info of all that has the lock's name: both sides of a read-write
// lock, all values of a group.
func stored(ctx context.Context, l *bridge.Lock) (Info, error) {
	if err := l.Client.Usable(ctx, l.Spec.Err); err != nil {
		return Info{}, err
	}
	info, err := l.Client.Inspector.Lock(ctx, l.Spec.Key, l.Kind)
	return infoOf(l.Client, info), err
}

// only leaves in info what is of this lock.
func only(l *bridge.Lock, info Info) Info {
	if l.Spec.Whole() || !info.Held() {
		return info
	}
	holders := info.Holders
	info.Holders, info.TTL = nil, 0
	for _, h := range holders {
		if value, ok := l.Spec.Owns(h.Mode, h.Value); ok {
			h.Value = value
			info.Holders = append(info.Holders, h)
			info.TTL = inspect.Longer(info.TTL, h.TTL)
		}
	}
	slices.SortStableFunc(info.Holders, func(x, y Holder) int { return strings.Compare(x.Value, y.Value) })
	return info
}

// ForceRelease releases a lock for its holder, through the lock's client, and
// returns whether there was one. A holder that is a client of redlatch is asked to
// let go first. Its hold is lost with reason redlatch.LostRevoked, and its context
// has ended before the lock is given away, unless the client does not answer
// within a second. A holder that uses Redisson is not told.
//
// A hash whose owner is none of redlatch or Redisson is no lock: ForceRelease
// changes nothing, and the error is a *driver.RunError with the code WRONGTYPE.
//
// ForceRelease takes the lock only from the owners that it has found. A hold that
// begins meanwhile stays. Of a fair lock, also of one that nobody holds, it
// removes the waiters at the front of the queue that have died. Of a group lock it
// releases the values; a client of redlatch that holds one of them loses all
// values that it has acquired together with it.
//
// Of several locks as one it releases every member, whoever holds it, each through
// its own client. It returns whether anybody held one, and the errors, joined.
func ForceRelease(ctx context.Context, lock *redlatch.Lock) (bool, error) {
	return forceRelease(ctx, bridge.OpenLock(lock))
}

func forceRelease(ctx context.Context, l bridge.Lock) (bool, error) {
	if l.Err != nil {
		return false, l.Err
	}
	if l.Members != nil {
		var held atomic.Bool
		err := l.Each(func(i int) error {
			was, err := forceRelease(ctx, l.Members[i])
			if was {
				held.Store(true)
			}
			return err
		})
		return held.Load(), err
	}
	all, err := stored(ctx, &l)
	if err != nil {
		return false, err
	}
	holders := make([]revoke.Holder, len(all.Holders))
	for i, h := range all.Holders {
		holders[i] = revoke.Holder{Client: h.Client, Owner: h.Owner, Mode: h.Mode, Value: h.Value, Redlatch: h.Redlatch}
	}
	return l.Client.Control.Release(ctx, l.Spec, holders)
}
