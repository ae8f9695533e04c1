package redlatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// Info says who holds a lock, at the moment at which the server was asked.
type Info struct {
	Name    string   // the key
	Kind    string   // "lock"
	Holders []Holder // none if the lock is free
	// TTL is how long the lock lasts unless its holder renews it; -1 if it
	// never ends, which neither redlatch nor Redisson does to a lock.
	TTL time.Duration
}

// Held says whether anybody holds the lock.
func (i Info) Held() bool { return len(i.Holders) > 0 }

// A Holder is one owner of a lock.
type Holder struct {
	Owner    string // the field in Redis
	Client   string // the client's UUID, first part of Owner; empty if Owner has another shape
	Count    int    // how often the owner has entered
	Redlatch bool   // whether the client is of redlatch, which can be told by the UUID's version
}

// Info asks the server who holds the lock. It changes nothing.
func (l *Lock) Info(ctx context.Context) (Info, error) {
	if ctx == nil {
		return Info{}, errNilContext
	}
	if l.err != nil {
		return Info{}, l.err
	}
	if err := l.c.open(); err != nil {
		return Info{}, err
	}
	if l.side != neither {
		return l.sideInfo(ctx)
	}
	return l.c.info(ctx, l.name, l.keys)
}

func (c *Client) info(ctx context.Context, name string, keys []string) (Info, error) {
	o := op{c: c, script: infoScript, keys: keys, args: []string{}, lease: c.cfg.WatchdogTimeout, stop: c.done}
	reply, err := o.run(ctx)
	if err != nil {
		return Info{}, err
	}
	if reply.Kind != ReplyList || len(reply.List)%2 == 0 {
		return Info{}, fmt.Errorf("redlatch: unexpected answer %+v to %s", reply, infoScript.Name())
	}
	info := Info{Name: name, Kind: "lock"}
	switch ms := reply.List[0].Int; ms {
	case -2:
		return info, nil
	case -1:
		info.TTL = -1
	default:
		info.TTL = time.Duration(ms) * time.Millisecond
	}
	for i := 1; i < len(reply.List); i += 2 {
		h := Holder{Owner: reply.List[i].Str}
		h.Client, h.Redlatch = wire.ClientOf(h.Owner)
		h.Count, err = strconv.Atoi(reply.List[i+1].Str)
		if err != nil {
			return Info{}, &RunError{
				Outcome: Refused, Code: "WRONGTYPE",
				Err: fmt.Errorf("key %q is a hash but not a lock: field %q has value %q", name, h.Owner, reply.List[i+1].Str),
			}
		}
		info.Holders = append(info.Holders, h)
	}
	return info, nil
}

// Locks lists the locks that are held and whose names match the glob pattern
// ("" or "*" for all), by SCAN on every primary. It sees a lock that is held
// during the whole listing at least once, and may see others.
//
// A lock is a hash under a name that its user has chosen, so recognising one is
// a guess: a hash with a TTL, one field of the shape "<uuid>:<number>", and a
// number as its value.
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
			yield(Info{}, fmt.Errorf("redlatch: %w", err))
			return
		}
		for _, p := range primaries {
			if !c.scan(ctx, p, pattern, yield) {
				return
			}
		}
	}
}

// scan lists the locks of one primary and says whether to go on.
func (c *Client) scan(ctx context.Context, p Primary, pattern string, yield func(Info, error) bool) bool {
	for cursor := uint64(0); ; {
		keys, next, err := p.Scan(ctx, cursor, pattern, 512)
		if err != nil {
			yield(Info{}, fmt.Errorf("redlatch: %w", err))
			return false
		}
		for _, key := range keys {
			info, err := c.info(ctx, key, []string{key})
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

func (i Info) looksLikeLock() bool {
	return len(i.Holders) == 1 && i.TTL > 0 && i.Holders[0].Client != "" && i.Holders[0].Count > 0
}
