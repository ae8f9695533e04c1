package lock

import (
	"context"
	"slices"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

// Locks are the locks of a client.
type Locks struct {
	env
	table
	queuers
}

// New returns the locks of a client.
func New(o Options) *Locks {
	c := &Locks{env: env{Options: o, watchdogMs: wire.Millis(o.Watchdog), renewals: make(map[*script.Script]*renew.Kind)}}
	c.lossWork = worker.NewQueue(0, nil)
	c.table.env = &c.env
	c.queuers.start(&c.table)
	for _, k := range kinds {
		if s := k.renew; c.renewals[s] == nil {
			c.renewals[s] = &renew.Kind{Renew: func(batch []*renew.Lease) { c.renewLocks(s, batch) }}
		}
		if !slices.Contains(c.spaces, k.space) {
			c.spaces = append(c.spaces, k.space)
		}
	}
	return c
}

// Revoke ends the hold of this client that has an owner id of a lock, and says
// whether there was one. Its context has ended then.
func (c *Locks) Revoke(name, owner string) bool {
	t := c.holder(name, owner)
	return t != nil && t.lose(holdctx.Revoked)
}

// Held returns what this client holds of a lock with an owner id, if it does, as one claim.
func (c *Locks) Held(name, owner string) (all claim.Claim, held bool) {
	if wireClient(owner) != c.ID {
		return all, false
	}
	t := c.holder(name, owner)
	if t == nil {
		return all, false
	}
	return t.claim()
}

// Has says whether this client has, or is about to have, an owner id of a lock. If not, the id may be that of a hold of this
// client that was detached.
func (c *Locks) Has(name, owner string) (has, detached bool) {
	has = c.holder(name, owner) != nil
	return has, !has && wireClient(owner) == c.ID && c.detached.may(owner)
}

// holder returns the term of this client that has an owner id of a lock, or nil.
func (c *Locks) holder(name, owner string) *term {
	if t := c.peek(name, owner); t != nil && t.lock.key == name {
		return t
	}
	return c.ofPart(name, owner)
}

// AwaitReleases ends the waiting of all callers, now that the server is stopped, and waits until all
// holds are released, and their locks in Redis. It fails if ctx ends, or the client is closed.
func (c *Locks) AwaitReleases(ctx context.Context) error {
	c.wake()
	return request.AwaitAll(ctx, c.Server.Over, c.entries.Idle, c.own.Idle)
}
