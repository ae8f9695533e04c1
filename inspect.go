package redlatch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// Info asks the server who holds the lock. It changes nothing. It fails with a
// *RunError of code WRONGTYPE if what has the lock's name is something else, or
// a lock of another kind that is stored in another way.
func (l *Lock) Info(ctx context.Context) (Info, error) {
	info, err := l.stored(ctx)
	if err != nil {
		return Info{}, err
	}
	return l.only(info), nil
}

// stored is Info about all that has the lock's name: both sides of a read-write
// lock, all values of a group.
func (l *Lock) stored(ctx context.Context) (Info, error) {
	if ctx == nil {
		return Info{}, errNilContext
	}
	if err := l.spec.Err(); err != nil {
		return Info{}, err
	}
	if err := l.c.open(); err != nil {
		return Info{}, err
	}
	reply, err := l.c.askLock(ctx, l.Name(), mostShown)
	if err != nil {
		return Info{}, err
	}
	s, err := parseStored(l.Name(), reply)
	if err != nil {
		return Info{}, err
	}
	return l.c.lockInfo(ctx, s, l.kind)
}

// only leaves in info what is of this lock.
func (l *Lock) only(info Info) Info {
	if l.spec.Whole() {
		return info
	}
	holders := info.Holders
	info.Holders, info.TTL = nil, 0
	for _, h := range holders {
		if value, ok := l.spec.Owns(h.Mode, h.Value); ok {
			h.Value = value
			info.Holders = append(info.Holders, h)
			info.TTL = max(info.TTL, h.TTL)
		}
	}
	slices.SortStableFunc(info.Holders, func(x, y Holder) int { return strings.Compare(x.Value, y.Value) })
	return info
}

// Info says what kind of lock or synchronizer has this name, as far as what is
// stored tells, who holds it, who queues for it, and how it stands. A lock that is
// free, or was never used, has no holders; so has what is not there. It fails with
// a *RunError of code WRONGTYPE if the key is something else.
//
// What a number in Redis counts is not stored: it is a KindCounter, unless
// permits of it are taken that have ids, it is less than 0 or has a TTL, as no
// latch, or somebody waits for it. A barrier is found if nothing else has the
// name.
//
// Who knows the kind asks the object itself, as with Lock.Info.
func (c *Client) Info(ctx context.Context, name string) (Info, error) {
	if ctx == nil {
		return Info{}, errNilContext
	}
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	if err := c.open(); err != nil {
		return Info{}, err
	}
	return c.infoOf(ctx, name)
}

// askLock asks for the hash that is a lock, and what is beside it. One with more
// fields than most is refused, and so many waiters are read.
func (c *Client) askLock(ctx context.Context, name string, most int) (driver.Reply, error) {
	o := c.question(lua.LockInfo, name, wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockToken, name))
	o.Args = []string{strconv.Itoa(most)}
	return o.Run(ctx)
}

// lockInfo reads what is stored as a lock of this kind.
func (c *Client) lockInfo(ctx context.Context, s *stored, kind string) (Info, error) {
	info, err := s.info(kind)
	if err == nil {
		err = c.readerTTLs(ctx, &info)
	}
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// readerTTLs asks for how long each reader's holds last: the longest of its
// keys. A reader without any is gone, and waits for somebody to notice.
func (c *Client) readerTTLs(ctx context.Context, info *Info) error {
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
			o := c.question(lua.LockTTLs, keys...)
			reply, err := o.Run(ctx)
			if err != nil {
				return err
			}
			for _, r := range reply.List {
				if ttl := lasting(r.Int); ttl < 0 || ttl > h.TTL {
					h.TTL = ttl
				}
			}
		}
	}
	return nil
}

// question prepares a request that changes nothing.
func (c *Client) question(s *script.Script, keys ...string) request.Call {
	return c.server.Question(s, keys)
}

// Locks lists the locks that are held and whose names match the glob pattern
// ("" or "*" for all), by SCAN on every primary. It sees a lock that is held
// during the whole listing at least once, and may see others.
//
// A lock is a hash under a name that its user has chosen, so recognising one is
// a guess, and so is its kind: a hash with a TTL and one field that begins with
// a UUID and has a number as its value. With a field "mode" and any number of
// such fields it is a read-write lock; with fields that end with ":expire_time"
// a group lock; with a queue beside it a fair lock, and with a token beside it a
// fenced one. A fair lock for which nobody waits cannot be told from a plain
// lock. A hash of more than 10,000 fields is none.
func (c *Client) Locks(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, func(pattern string) []walk {
		return []walk{{"hash", pattern, func(ctx context.Context, key string) (Info, bool, error) {
			info, is, err := c.hashAt(ctx, key)
			return info, is && info.Kind != KindRateLimiter, err
		}}}
	})
}

// Objects lists what Locks does, and the synchronizers that can be told from
// other things: rate limiters, which have their fields; barriers, whose keys are
// redlatch's; and expirable semaphores of which a permit is taken. The same may be
// seen twice.
//
// All others are Counters. The server goes over its keys once for each of up to
// five types of key, and each key that may belong to something takes a request.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, func(pattern string) []walk {
		walks := []walk{{"hash", pattern, c.hashAt}}
		for _, glob := range sideGlobs(wire.Barrier+":", pattern, "") {
			walks = append(walks, walk{"hash", glob, c.barrierAt})
		}
		for _, glob := range sideGlobs("", pattern, ":"+wire.PermitTimeout) {
			walks = append(walks, walk{"zset", glob, c.permitsAt})
		}
		return walks
	})
}

// Counters lists the numbers whose names match the glob pattern ("" or "*" for
// all) and that Objects does not list: any of them may be a semaphore or a latch,
// or something else. Names that look like side keys, such as "{a}:value" of a rate
// limiter a, are left out. Each string that matches takes a request.
func (c *Client) Counters(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, func(pattern string) []walk {
		return []walk{{"string", pattern, c.counterAt}}
	})
}

// How many fields a lock has at most, and an expirable semaphore permits, that a
// listing recognises, or that somebody asks for by its name: nobody shall read
// somebody's millions.
const (
	mostListed = 10_000
	mostShown  = 100_000
)

func (c *Client) hashAt(ctx context.Context, key string) (Info, bool, error) {
	reply, err := c.askLock(ctx, key, mostListed)
	if err != nil {
		return Info{}, false, err
	}
	info, err := c.hashInfo(ctx, key, reply)
	return info, err == nil && (info.Kind == KindRateLimiter || info.looksLikeLock()), err
}

func (c *Client) barrierAt(ctx context.Context, key string) (Info, bool, error) {
	names := wire.PrefixedNames(wire.Barrier, key)
	if len(names) == 0 {
		return Info{}, false, nil
	}
	return c.barrierInfo(ctx, names[0]) // what has another name has the same keys
}

func (c *Client) permitsAt(ctx context.Context, key string) (Info, bool, error) {
	for _, name := range wire.SuffixedNames(key, wire.PermitTimeout) {
		info, is, err := c.numberInfo(ctx, name, mostListed)
		if err != nil || (is && info.Kind == KindExpirable) {
			return info, is, err
		}
	}
	return Info{}, false, nil
}

func (c *Client) counterAt(ctx context.Context, key string) (Info, bool, error) {
	if wire.IsSideKey(key) {
		return Info{}, false, nil
	}
	info, is, err := c.numberInfo(ctx, key, mostListed)
	return info, is && info.Kind != KindExpirable, err
}

// A walk goes over keys of a type, and looks what they belong to.
type walk struct {
	kind, pattern string
	look          func(ctx context.Context, key string) (info Info, is bool, err error)
}

// list goes on walks on every primary.
func (c *Client) list(ctx context.Context, pattern string, walks func(pattern string) []walk) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if ctx == nil {
			yield(Info{}, errNilContext)
			return
		}
		if err := c.open(); err != nil {
			yield(Info{}, err)
			return
		}
		if pattern == "" {
			pattern = "*"
		}
		primaries, err := c.server.Driver.Primaries(ctx)
		if err != nil {
			yield(Info{}, &listError{err})
			return
		}
		for _, p := range primaries {
			for _, w := range walks(pattern) {
				if !w.scan(ctx, p, yield) {
					return
				}
			}
		}
	}
}

// A listError is the driver's error where no script was to be run.
type listError struct{ err error }

func (e *listError) Error() string { return "redlatch: " + wire.ServerText(e.err.Error()) }

func (e *listError) Unwrap() error { return e.err }

// scan goes over the keys of one primary and says whether to go on.
func (w *walk) scan(ctx context.Context, p driver.Primary, yield func(Info, error) bool) bool {
	for cursor := uint64(0); ; {
		keys, next, err := p.Scan(ctx, cursor, w.kind, w.pattern, 512)
		if err != nil {
			yield(Info{}, &listError{err})
			return false
		}
		for _, key := range keys {
			info, is, err := w.look(ctx, key)
			switch {
			case err != nil && (errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed) || ctx.Err() != nil):
				yield(Info{}, err)
				return false
			case err != nil || !is:
				continue
			case !yield(info, nil):
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}
