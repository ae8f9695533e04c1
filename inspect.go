package redlatch

import (
	"context"
	"errors"
	"iter"

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
	if l.err != nil {
		return Info{}, l.err
	}
	if err := l.c.open(); err != nil {
		return Info{}, err
	}
	return l.c.info(ctx, l.name, l.kindName())
}

// only leaves in info what is of this lock.
func (l *Lock) only(info Info) Info {
	switch {
	case l.group != nil:
		return l.group.only(info)
	case l.side != neither:
		return l.side.only(info)
	}
	return info
}

// kindName returns what Info.Kind says of this lock.
func (l *Lock) kindName() string {
	if l.kind.name == KindLock && l.fenced {
		return KindFenced
	}
	return l.kind.name
}

// Info says what kind of lock has this name, as far as what is stored tells,
// who holds it, and who queues for it. A lock that is free, or was never used,
// has no holders. It fails with a *RunError of code WRONGTYPE if the key is
// something else.
//
// Who knows the kind asks the lock itself: see Lock.Info.
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
	return c.info(ctx, name, "")
}

// info reads a lock as one of this kind; "" is a guess by what is stored.
func (c *Client) info(ctx context.Context, name, kind string) (Info, error) {
	o := c.question(infoScript, name, wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockToken, name))
	reply, err := o.run(ctx)
	if err != nil {
		return Info{}, err
	}
	s, err := readStored(name, reply)
	if err != nil {
		return Info{}, err
	}
	if kind == "" {
		kind = s.guess()
	}
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
			o := c.question(ttlsScript, keys...)
			reply, err := o.run(ctx)
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
func (c *Client) question(s *Script, keys ...string) op {
	return op{c: c, script: s, keys: keys, args: []string{}, lease: c.cfg.WatchdogTimeout, stop: c.done}
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
// lock.
func (c *Client) Locks(ctx context.Context, pattern string) iter.Seq2[Info, error] {
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
		primaries, err := c.redis.Primaries(ctx)
		if err != nil {
			yield(Info{}, &listError{err})
			return
		}
		for _, p := range primaries {
			if !c.scan(ctx, p, pattern, yield) {
				return
			}
		}
	}
}

// A listError is the driver's error where no script was to be run.
type listError struct{ err error }

func (e *listError) Error() string { return withoutArgs("redlatch: " + e.err.Error()) }

func (e *listError) Unwrap() error { return e.err }

// scan lists the locks of one primary and says whether to go on.
func (c *Client) scan(ctx context.Context, p Primary, pattern string, yield func(Info, error) bool) bool {
	for cursor := uint64(0); ; {
		keys, next, err := p.Scan(ctx, cursor, pattern, 512)
		if err != nil {
			yield(Info{}, &listError{err})
			return false
		}
		for _, key := range keys {
			info, err := c.info(ctx, key, "")
			switch {
			case err != nil && (errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed) || ctx.Err() != nil):
				yield(Info{}, err)
				return false
			case err != nil || !info.looksLikeLock():
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
