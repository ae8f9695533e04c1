package term

import (
	"cmp"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/wire"
)

// What a term tells of its holds.

// Claims adds the live holds to a list; listens says that their client still
// listens to releases. It returns the gates at which callers wait to nest in one
// of the holds; and fresh, if the term has yet to be taken.
func (t *nest) Claims(list *claim.List, listens bool) (nests []*gate.Gate[*Term], fresh bool) {
	now, end := time.Now(), t.Lease.End()
	t.mu.Lock()
	defer t.mu.Unlock()
	for h := t.holds; h != nil; h = h.next {
		if h.children != nil {
			nests = append(nests, h.children)
		}
		if liveLocked(h, now) {
			c := claimLocked(h, end)
			c.Listens = listens
			list.Hold(c)
		}
	}
	return nests, t.state == termNew
}

// Claim returns the claims of the live holds as one, if there are any: as long as
// the oldest, renewed if one of them is, and with the note of the newest that has
// one.
func (t *nest) Claim() (all claim.Claim, held bool) {
	now, end := time.Now(), t.Lease.End()
	t.mu.Lock()
	defer t.mu.Unlock()
	for h := t.holds; h != nil; h = h.next { // the newest first
		if !liveLocked(h, now) {
			continue
		}
		each := claimLocked(h, end)
		each.Note, each.Renewed = cmp.Or(all.Note, each.Note), all.Renewed || each.Renewed
		if held && all.Since.Before(each.Since) {
			each.Since = all.Since
		}
		all, held = each, true
	}
	return all, held
}

// liveLocked says whether the hold is live, and changes nothing if it is over.
func liveLocked(h *Hold, now time.Time) bool {
	return h.life.Why == nil && !h.life.Detached && h.t.Lease.Left(now) > 0 && h.own.over(now) == ""
}

// owned adds who has the hold, if it is live.
func owned(h *Hold, o *holdctx.Owners) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if liveLocked(h, time.Now()) {
		o.Add(h.t.ID)
	}
}

// claimLocked returns the claim of a hold whose term can be trusted until end.
func claimLocked(h *Hold, end time.Time) claim.Claim {
	t := h.t
	c := claim.Claim{
		Name: t.Lock.Key, Kind: t.Lock.what(), Mode: t.Lock.Kind.Mode, Owner: t.ID,
		Since: h.since, Until: h.own.within(end), Renewed: h.watchdog, Token: h.token, Count: countLocked(h), Site: h.at,
	}
	if h.note != nil {
		c.Note = *h.note
	}
	if h.Reads { // perhaps in a term that was taken to write
		c.Mode = wire.ModeRead
	}
	return c
}
