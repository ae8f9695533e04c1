package overview

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// A Listing is what was found at a time.
type Listing struct {
	At        time.Time
	Locks     []Lock // by name
	Asked     bool   // the clients were asked
	Answered  int    // clients of redlatch that gave an answer
	Silent    int    // clients that gave none; -1 if that is not known
	Deadlocks [][]Wait
	Looked    map[string]Looked
	Problem   string // why not all clients could be asked, or what they said compared; empty if nothing is wrong
}

// Named returns the lock or synchronizer of that name which is listed; nil if
// there is none. A barrier it returns only if nothing else has its name, as
// whoever looks at that name alone sees it. It stands before the other.
func (listing *Listing) Named(name string) *Lock {
	for i := range slices.Backward(listing.Locks) {
		if listing.Locks[i].Name == name {
			return &listing.Locks[i]
		}
	}
	return nil
}

// A Looked is one lock or synchronizer that was asked for by its name, or why it
// is not known.
type Looked struct {
	Lock

	Err error
}

// Remarks are what is to be said of the whole listing, a line each.
func (listing *Listing) Remarks() (lines []string) {
	if listing.Problem != "" {
		lines = append(lines, listing.Problem)
	}
	if listing.Silent > 0 {
		lines = append(lines, SilenceText(listing.Silent))
	}
	for _, circle := range listing.Deadlocks {
		lines = append(lines, circleText(circle))
	}
	return lines
}

// SilenceText says that so many clients gave no answer.
func SilenceText(n int) string {
	return Plural(n, "client") + " gave no answer: what they hold and wait for is not known, but for what is stored"
}

// A Lister lists locks and synchronizers, again and again. One goroutine uses it
// at a time.
type Lister struct {
	Client  *redlatch.Client
	Pattern string // glob; "" is for all
	All     bool   // numbers, too, of which nothing more can be told
	Lost    bool   // also what clients have lost lately, if it is free now
	// Names are looked at by themselves besides, whether or not they are listed: with
	// what is claimed of them and not stored. The clients are asked once for all of
	// that.
	Names []string

	vigil vigil
}

// List finds what matches, and asks all clients once what they say of it.
func (lister *Lister) List(ctx context.Context) (Listing, error) {
	lists := []iter.Seq2[admin.Info, error]{admin.New(lister.Client).Objects(ctx, lister.Pattern)}
	if lister.All {
		lists = append(lists, admin.New(lister.Client).Counters(ctx, lister.Pattern))
	}
	found := Listing{At: time.Now(), Locks: []Lock{}}
	for _, list := range lists {
		for info, err := range list {
			if err != nil {
				return Listing{}, err
			}
			found.Locks = append(found.Locks, Of(info))
		}
	}
	// SCAN may return a key twice.
	found.Locks = slices.CompactFunc(sorted(found.Locks), func(x, y Lock) bool { return x.Name == y.Name && x.Kind == y.Kind })
	if len(found.Locks) == 0 && !lister.Lost && len(lister.Names) == 0 {
		return found, nil // there is nothing to ask about
	}
	t := ask(ctx, lister.Client, questionAbout(lister.Pattern, lister.Names, found.Locks))
	if lister.Lost {
		found.Locks = sorted(append(found.Locks, t.lostOnly(found.Locks)...))
	}
	found.Deadlocks, found.Silent, found.Problem = lister.vigil.look(t), t.Silent, t.problem
	found.Asked, found.Answered = !t.At.IsZero(), t.answered()
	for i := range found.Locks {
		lock := &found.Locks[i]
		t.addTo(lock)
		lock.Deadlocks = through(lock.Name, found.Deadlocks)
		lock.Claims = slices.DeleteFunc(lock.Claims, func(c Claim) bool { return c.Evidence == string(admin.EvidenceNotStored) })
	}
	found.Looked = make(map[string]Looked, len(lister.Names))
	for _, name := range lister.Names {
		found.Looked[name] = lister.look(ctx, name, t, found.Deadlocks)
	}
	return found, nil
}

// ListWith is List, with these Names.
func (lister *Lister) ListWith(ctx context.Context, names []string) (Listing, error) {
	lister.Names = names
	return lister.List(ctx)
}

// look is how one of the names stands.
func (lister *Lister) look(ctx context.Context, name string, t *told, deadlocks [][]Wait) Looked {
	info, ok := t.infoOf(name)
	if !ok {
		var err error
		if info, err = admin.New(lister.Client).Info(ctx, name); err != nil {
			return Looked{Err: err}
		}
	}
	lock := Of(info)
	t.addTo(&lock)
	lock.Deadlocks = through(name, deadlocks)
	return Looked{Lock: lock}
}

func sorted(all []Lock) []Lock {
	slices.SortStableFunc(all, func(x, y Lock) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind)) })
	return all
}

// Look returns how one lock or synchronizer stands, and what is wrong with what
// clients say of it: nothing, if it is empty. It has the possible deadlocks only
// if suspects is true: if there may be one, it takes seconds to see whether it
// stands.
func Look(ctx context.Context, client *redlatch.Client, name string, suspects bool) (l Lock, problem string, err error) {
	info, err := admin.New(client).Info(ctx, name)
	if err != nil {
		return Lock{}, "", err
	}
	t := ask(ctx, client, questionOf(name))
	if fresh, ok := t.infoOf(name); ok {
		info = fresh
	}
	l = Of(info)
	t.addTo(&l)
	if suspects {
		l.Deadlocks = t.suspects(ctx, client, name)
	}
	return l, t.problem, nil
}
