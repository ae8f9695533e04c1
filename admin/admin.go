package admin

import (
	"context"
	"iter"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// An Admin looks, through a client, at what Redis has of locks and synchronizers,
// whoever uses them. It has nothing to close, and its methods are safe for
// concurrent use.
type Admin struct{ client *bridge.Engines }

// New returns the Admin of a client. It sends nothing.
func New(c *redlatch.Client) *Admin { return &Admin{bridge.Open(c)} }

// Info says what kind of lock or synchronizer has this name, as far as can be told
// from what is stored, who holds it, who queues for it, and in what state it is. A
// lock that is free, or was never used, has no holders; nor has a name that is not
// there. If the key is something else, the error is a *driver.RunError with the
// code WRONGTYPE.
//
// What a number in Redis counts is not stored: it is a redlatch.KindCounter,
// unless permits of it are taken that have ids, it is less than 0 or has a TTL, as
// no latch, or somebody waits for it. A barrier is found if nothing else has the
// name.
//
// Whoever knows which lock it is asks with LockInfo.
func (a *Admin) Info(ctx context.Context, name string) (Info, error) {
	key := a.client.Server.Key(name)
	if err := a.client.Usable(ctx, request.CheckKey(key)); err != nil {
		return Info{}, err
	}
	in, err := a.client.Inspector.Info(ctx, key)
	info := infoOf(a.client, in)
	introduce(ctx, a.client, &info)
	return info, err
}

// introduce asks who the holders are. That takes a second at most.
func introduce(ctx context.Context, e *bridge.Engines, info *Info) {
	who, end := e.Census.Introducer(ctx, mostIntroduced, time.Second)
	defer end()
	for i := range info.Holders {
		h := &info.Holders[i]
		if h.Redlatch {
			h.By = who(h.Client).String()
		}
		own(e, e.Server.Key(info.Name), h)
	}
}

// own adds what this client knows of a hold of its own.
func own(e *bridge.Engines, key string, h *Holder) {
	own, _ := e.Locks.Held(key, h.Owner)
	h.Since, h.Renewed, h.Note = own.Since, own.Renewed, wire.Text(own.Note)
}

const mostIntroduced = 8 // clients

// Locks lists the locks that are held and whose names match the glob pattern
// ("" or "*" for all), by SCAN on every primary. It lists a lock that is held
// during the whole listing at least once, and may list others.
//
// A lock is a hash under a name that its user has chosen, so both to recognise it
// and to tell its kind is a guess. A hash with a TTL and one field that begins
// with a UUID, and has a number as its value, is a lock. With a field "mode", and
// any number of such fields, it is a read-write lock. With fields that end with
// ":expire_time" it is a group lock, with a queue beside it a fair lock, and with
// a token beside it a fenced lock. A fair lock for which nobody waits looks like a
// plain lock. A hash of more than 10,000 fields is no lock.
//
// Keys that the server's user may not read are left out. If these are all keys,
// the error is the server's refusal. An error ends the listing. An error of SCAN
// is the driver's own: SCAN is not sent again in an outage.
func (a *Admin) Locks(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return a.list(ctx, pattern, a.client.Inspector.Locks)
}

// Objects lists what Locks does, and the synchronizers that can be recognised:
// rate limiters, barriers, and expirable semaphores of which a permit is taken. It
// may list one twice. All other synchronizers are Counters.
//
// The server goes over its keys once for each of up to five types of key, and each
// key that may belong to a lock or a synchronizer takes a request.
func (a *Admin) Objects(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return a.list(ctx, pattern, a.client.Inspector.Objects)
}

// Counters lists the numbers whose names match the glob pattern ("" or "*" for
// all) and that Objects does not list. Each of them may be a semaphore, a latch,
// or something else. Counters leaves names out that look like side keys, such as
// "{a}:value" of a rate limiter a. Each string that matches takes a request.
func (a *Admin) Counters(ctx context.Context, pattern string) iter.Seq2[Info, error] {
	return a.list(ctx, pattern, a.client.Inspector.Counters)
}

// list is what lists, as users have it.
func (a *Admin) list(ctx context.Context, pattern string, of func(ctx context.Context, pattern string) iter.Seq2[inspect.Info, error]) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := a.client.Usable(ctx, nil)
		if err != nil {
			yield(Info{}, err)
			return
		}
		for info, err := range of(ctx, a.client.Server.Pattern(pattern)) {
			if !yield(infoOf(a.client, info), err) {
				return
			}
		}
	}
}
