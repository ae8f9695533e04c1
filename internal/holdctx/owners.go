package holdctx

import (
	"context"
	"slices"
)

// Owners is a context key. Whatever is held, and whoever owns several holds, adds
// the owner ids of what is live of it, and lets the question pass: so it comes to
// all that a context descends from.
type Owners struct{ ids []string }

// Add adds an owner id.
func (o *Owners) Add(id string) {
	if !slices.Contains(o.ids, id) {
		o.ids = append(o.ids, id)
	}
}

// OwnersAbove returns the owner ids of the live holds that ctx, if it is not nil,
// descends from, the nearest one first. It runs code of users: their contexts are
// asked, too. So no mutex may be locked.
func OwnersAbove(ctx context.Context) []string {
	if ctx == nil {
		return nil
	}
	var o Owners
	ctx.Value(&o)
	return o.ids
}
