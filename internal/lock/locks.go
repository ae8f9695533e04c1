package lock

import (
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lock/fair"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/lock/wait"
)

// Locks are the locks of a client.
type Locks struct {
	*wait.Table

	queuers *fair.Queuers
}

// New returns the locks of a client.
func New(o term.Options) *Locks {
	c := wait.NewTable(term.NewEnv(o, kinds), kinds)
	return &Locks{Table: c, queuers: fair.New(c)}
}

// Revoke ends the hold of this client that has an owner id of a lock, and says
// whether there was one. Its context has ended then.
func (c *Locks) Revoke(name, owner string) bool {
	t := c.Holder(name, owner)
	return t != nil && t.Lose(holdctx.Revoked)
}

// Held returns what this client holds of a lock with an owner id, if it does, as
// one claim.
func (c *Locks) Held(name, owner string) (all claim.Claim, held bool) {
	if !c.Made(owner) {
		return all, false
	}
	t := c.Holder(name, owner)
	if t == nil {
		return all, false
	}
	return t.Claim()
}

// Has says whether this client has, or is about to have, an owner id of a lock. If
// not, the id may be that of a hold of this client that was detached.
func (c *Locks) Has(name, owner string) (has, detached bool) {
	has = c.Holder(name, owner) != nil
	return has, !has && c.Made(owner) && c.MayBeDetached(owner)
}
