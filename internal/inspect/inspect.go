// Package inspect reads what Redis has of locks and synchronizers: who holds them,
// who waits, how they stand; and lists them.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// An Inspector asks what is stored of locks and synchronizers. It changes nothing.
type Inspector struct {
	Server *request.Server
	ID     string // of the client
}

// Lock reads what has a name as a lock of a kind.
func (x *Inspector) Lock(ctx context.Context, name, kind string) (Info, error) {
	reply, err := x.askLock(ctx, name, mostShown)
	if err != nil {
		return Info{}, err
	}
	s, err := parseStored(name, reply)
	if err != nil {
		return Info{}, err
	}
	return x.lockInfo(ctx, s, kind)
}

// askLock asks for the hash that is a lock, and what is beside it. One with more
// fields than most is refused, and so many waiters are read.
func (x *Inspector) askLock(ctx context.Context, name string, most int) (driver.Reply, error) {
	call := x.question(lua.LockInfo, name, wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockToken, name))
	call.Args = []string{strconv.Itoa(most)}
	return call.Run(ctx)
}

// lockInfo reads what is stored as a lock of this kind.
func (x *Inspector) lockInfo(ctx context.Context, s *stored, kind string) (Info, error) {
	info, err := s.info(kind)
	if err == nil {
		err = x.readerTTLs(ctx, &info)
	}
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// readerTTLs asks for how long each reader's holds last: the longest of its
// keys. A reader without any is gone, and waits for somebody to notice.
func (x *Inspector) readerTTLs(ctx context.Context, info *Info) error {
	const most = 500 // keys for one request
	for i := range info.Holders {
		h := &info.Holders[i]
		if h.Mode != wire.ModeRead {
			continue
		}
		h.TTL = 0
		for first := 1; first <= h.Count; first += most {
			keys := make([]string, 0, min(most, h.Count))
			for n := first; n < first+most && n <= h.Count; n++ {
				keys = append(keys, wire.ReadTimeout(info.Name, h.Owner, n))
			}
			call := x.question(lua.LockTTLs, keys...)
			reply, err := call.Run(ctx)
			if err != nil {
				return err
			}
			for _, r := range reply.List {
				h.TTL = Longer(h.TTL, lasting(r.Int))
			}
		}
	}
	return nil
}

// question prepares a request that changes nothing.
func (x *Inspector) question(s *script.Script, keys ...string) request.Call {
	return x.Server.Question(s, keys)
}

// Locks lists what Locks of package admin says.
func (x *Inspector) Locks(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return x.list(ctx, walk{"hash", orAll(pattern), func(ctx context.Context, key string) (Info, bool, error) {
		info, is, err := x.hashAt(ctx, key)
		return info, is && info.Kind != RateLimiter, err
	}})
}

// Objects lists what Objects of package admin says.
func (x *Inspector) Objects(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	pattern = orAll(pattern)
	walks := []walk{{"hash", pattern, x.hashAt}}
	walks = append(walks, sideWalks("hash", wire.Barrier+":", pattern, "", func(key string) []string { return wire.PrefixedNames(wire.Barrier, key) }, x.barrierInfo)...)
	walks = append(walks, sideWalks("zset", "", pattern, ":"+wire.PermitTimeout, func(key string) []string { return wire.SuffixedNames(key, wire.PermitTimeout) }, x.permitsAt)...)
	return x.list(ctx, walks...)
}

// Counters lists what Counters of package admin says.
func (x *Inspector) Counters(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return x.list(ctx, walk{"string", orAll(pattern), x.counterAt})
}

// orAll returns a pattern, that of all names if it is empty.
func orAll(pattern string) string { return cmp.Or(pattern, "*") }

// How many fields a lock has at most, and an expirable semaphore permits, that a
// listing recognises, or that somebody asks for by its name: nobody shall read
// somebody's millions.
const (
	mostListed = 10_000
	mostShown  = 100_000
)

func (x *Inspector) hashAt(ctx context.Context, key string) (Info, bool, error) {
	if wire.NamesOwners(key) {
		return Info{}, false, nil
	}
	reply, err := x.askLock(ctx, key, mostListed)
	if err != nil {
		return Info{}, false, err
	}
	info, err := x.hashInfo(ctx, key, reply)
	return info, err == nil && (info.Kind == RateLimiter || info.looksLikeLock()), err
}

func (x *Inspector) permitsAt(ctx context.Context, name string) (Info, bool, error) {
	info, is, err := x.numberInfo(ctx, name, mostListed)
	return info, is && info.Kind == Expirable, err
}

func (x *Inspector) counterAt(ctx context.Context, key string) (Info, bool, error) {
	if wire.IsSideKey(key) {
		return Info{}, false, nil
	}
	info, is, err := x.numberInfo(ctx, key, mostListed)
	return info, is && info.Kind != Expirable, err
}

// A walk goes over keys of a type, and looks what they belong to.
type walk struct {
	kind, pattern string
	look          func(ctx context.Context, key string) (info Info, is bool, err error)
}

// A listing is what walks have met so far.
type listing struct {
	yield   func(Info, error) bool
	read    bool  // the server has let something be read,
	refused error // or not
}

// list goes on walks on every primary.
func (x *Inspector) list(ctx context.Context, walks ...walk) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		primaries, err := x.Server.Driver.Primaries(ctx)
		if err != nil {
			yield(Info{}, &listError{err})
			return
		}
		l := listing{yield: yield}
		for _, p := range primaries {
			for _, w := range walks {
				if !w.scan(ctx, p, &l) {
					return
				}
			}
		}
		if l.refused != nil && !l.read {
			yield(Info{}, l.refused)
		}
	}
}

// A listError is the driver's error where no script was to be run.
type listError struct{ err error }

func (e *listError) Error() string { return "redlatch: " + wire.ServerText(e.err.Error()) }

func (e *listError) Unwrap() error { return e.err }

// scan goes over the keys of one primary and says whether to go on.
func (w *walk) scan(ctx context.Context, p driver.Primary, l *listing) bool {
	for cursor := uint64(0); ; {
		keys, next, err := p.Scan(ctx, cursor, w.kind, w.pattern, 512)
		if err != nil {
			l.yield(Info{}, &listError{err})
			return false
		}
		for lot := range slices.Chunk(keys, request.MostAtATime) {
			if !l.look(ctx, w, lot) {
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// look looks what some keys belong to, all at a time, and says whether to go on.
// It leaves out what the user of the server may not read.
func (l *listing) look(ctx context.Context, w *walk, keys []string) (more bool) {
	all := make([]func() bool, len(keys))
	request.AtATime(len(keys), func(i int) bool {
		info, is, err := w.look(ctx, keys[i])
		all[i] = func() bool { return l.add(ctx, info, is, err) }
		return true
	})
	for _, add := range all {
		if !add() {
			return false
		}
	}
	return true
}

// add adds what a key belongs to, and says whether to go on.
func (l *listing) add(ctx context.Context, info Info, is bool, err error) (more bool) {
	switch {
	case err == nil:
		l.read = true
		return !is || l.yield(info, nil)
	case errors.Is(err, request.ErrUnavailable), errors.Is(err, request.ErrClosed), ctx.Err() != nil:
		l.yield(Info{}, err)
		return false
	case !isWrongType(err):
		l.refused = err
	}
	return true
}
