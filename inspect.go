package redlatch

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
)

// Info asks the server who holds the lock. It changes nothing. If the key of that name
// is something else, or a lock of another kind that is stored in another way, the error
// is a *driver.RunError with the code WRONGTYPE.
func (l *Lock) Info(ctx context.Context) (Info, error) {
	info, err := l.stored(ctx)
	if err != nil {
		return Info{}, err
	}
	info = l.only(info)
	l.c.introduce(ctx, &info)
	return info, nil
}

// stored is Info about all that has the lock's name: both sides of a read-write
// lock, all values of a group.
func (l *Lock) stored(ctx context.Context) (Info, error) {
	if err := l.c.usable(ctx, l.spec.Err()); err != nil {
		return Info{}, err
	}
	info, err := l.c.inspector.Lock(ctx, l.spec.Key(), string(l.kind))
	return l.c.infoOf(info), err
}

// only leaves in info what is of this lock.
func (l *Lock) only(info Info) Info {
	if l.spec.Whole() || !info.Held() {
		return info
	}
	holders := info.Holders
	info.Holders, info.TTL = nil, 0
	for _, h := range holders {
		if value, ok := l.spec.Owns(h.Mode, h.Value); ok {
			h.Value = value
			info.Holders = append(info.Holders, h)
			info.TTL = inspect.Longer(info.TTL, h.TTL)
		}
	}
	slices.SortStableFunc(info.Holders, func(x, y Holder) int { return strings.Compare(x.Value, y.Value) })
	return info
}

// Info says what kind of lock or synchronizer has this name, as far as can be told from
// what is stored, who holds it, who queues for it, and in what state it is. A lock that
// is free, or was never used, has no holders; nor has a name that is not there. If the
// key is something else, the error is a *driver.RunError with the code WRONGTYPE.
//
// What a number in Redis counts is not stored: it is a KindCounter, unless
// permits of it are taken that have ids, it is less than 0 or has a TTL, as no
// latch, or somebody waits for it. A barrier is found if nothing else has the
// name.
//
// A caller that knows the kind asks the object itself, as with Lock.Info.
func (c *Client) Info(ctx context.Context, name string) (Info, error) {
	key := c.server.Key(name)
	if err := c.usable(ctx, request.CheckKey(key)); err != nil {
		return Info{}, err
	}
	in, err := c.inspector.Info(ctx, key)
	info := c.infoOf(in)
	c.introduce(ctx, &info)
	return info, err
}

// introduce asks who the holders are. That takes a second at most.
func (c *Client) introduce(ctx context.Context, info *Info) {
	who, end := c.census.Introducer(ctx, mostIntroduced, time.Second)
	defer end()
	for i := range info.Holders {
		h := &info.Holders[i]
		if h.Redlatch {
			h.By = who(h.Client).String()
		}
		h.Since, h.Renewed = c.locks.Since(c.server.Key(info.Name), h.Owner)
	}
}

const mostIntroduced = 8 // clients

// Locks lists the locks that are held and whose names match the glob pattern
// ("" or "*" for all), by SCAN on every primary. It lists a lock that is held
// during the whole listing at least once, and may list others.
//
// A lock is a hash under a name that its user has chosen, so both to recognise it and
// to tell its kind is a guess. A hash with a TTL and one field that begins with a UUID,
// and has a number as its value, is a lock. With a field "mode", and any number of such
// fields, it is a read-write lock. With fields that end with ":expire_time" it is a
// group lock, with a queue beside it a fair lock, and with a token beside it a fenced
// lock. A fair lock for which nobody waits looks like a plain lock. A hash of more than
// 10,000 fields is no lock.
//
// Keys that the server's user may not read are left out. If these are all keys, the
// error is the server's refusal. An error ends the listing. An error of SCAN is the
// driver's own: SCAN is not sent again in an outage.
func (c *Client) Locks(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, c.inspector.Locks)
}

// Objects lists what Locks does, and the synchronizers that can be recognised: rate
// limiters, barriers, and expirable semaphores of which a permit is taken. It may list
// one twice. All other synchronizers are Counters.
//
// The server goes over its keys once for each of up to five types of key, and each key
// that may belong to a lock or a synchronizer takes a request.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, c.inspector.Objects)
}

// Counters lists the numbers whose names match the glob pattern ("" or "*" for all)
// and that Objects does not list. Each of them may be a semaphore, a latch, or
// something else. Counters leaves names out that look like side keys, such as
// "{a}:value" of a rate limiter a. Each string that matches takes a request.
func (c *Client) Counters(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return c.list(ctx, pattern, c.inspector.Counters)
}

// list is what lists, as users have it.
func (c *Client) list(ctx context.Context, pattern string, of func(ctx context.Context, pattern string) iter.Seq2[inspect.Info, error]) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := c.usable(ctx, nil)
		if err != nil {
			yield(Info{}, err)
			return
		}
		for info, err := range of(ctx, c.server.Pattern(pattern)) {
			if !yield(c.infoOf(info), err) {
				return
			}
		}
	}
}
