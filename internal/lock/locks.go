package lock

import (
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
)

// Locks are the locks of a client.
type Locks struct {
	*table

	queuers *queuers
}

// New returns the locks of a client.
func New(o Options) *Locks {
	c := newTable(newEnv(o, kinds), kinds)
	return &Locks{table: c, queuers: newQueuers(c)}
}

// Revoke ends the hold of this client that has an owner id of a lock, and says
// whether there was one. Its context has ended then.
func (c *Locks) Revoke(name, owner string) bool {
	t := c.holder(name, owner)
	return t != nil && t.lose(holdctx.Revoked)
}

// Held returns what this client holds of a lock with an owner id, if it does, as one claim.
func (c *Locks) Held(name, owner string) (all claim.Claim, held bool) {
	if !c.Made(owner) {
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
	return has, !has && c.Made(owner) && c.MayBeDetached(owner)
}
