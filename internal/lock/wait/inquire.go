package wait

import (
	"cmp"
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A caller whose wait has an end hears at that end what the holder says of itself.
// So shortly before, the holder's client is asked, in the background: once for
// each wait, and whatever the answer, the caller waits no longer for it. A caller
// that only tries, spins, or waits without end has nothing asked.

// inquireBefore is how long before the end of a wait the holder is asked, unless
// that is in its first half.
const inquireBefore = 250 * time.Millisecond

// An inquiry says when that is. It belongs to the caller.
type inquiry struct {
	never   bool // the end of this wait is not that of the caller's
	planned bool
	at      time.Time // zero: not, or not any more
}

// due returns when the holder is to be asked; zero: not, or not any more. It is
// first called when the caller has to wait: one that does not wait pays nothing.
func (inquiry *inquiry) due(ctx context.Context, p *Waiter) time.Time {
	if inquiry.planned || inquiry.never || p.lock == nil || p.lock.Kind.Pause != nil {
		return inquiry.at
	}
	inquiry.planned = true
	end := p.until
	if d, bounded := ctx.Deadline(); bounded && (end.IsZero() || d.Before(end)) {
		end = d
	}
	if !end.IsZero() {
		wait := end.Sub(p.start)
		inquiry.at = p.start.Add(max(wait/2, wait-inquireBefore))
	}
	return inquiry.at
}

// inquire has the client asked that has the lock, as far as the caller, or those
// before it, have seen.
func (p *Waiter) inquire(e *Entry) {
	p.inquiry.at = time.Time{}
	e.inquire(p.key, p.owner)
}

// inquire has the client asked that has the lock with that key: the owner's, or if
// that is empty, of whoever was last seen with it.
func (e *Entry) inquire(key, owner string) {
	if owner = cmp.Or(owner, e.lastSeen().owner); owner != "" && !wire.Kept(owner) {
		e.ls.Events.Inquire(key, owner)
	}
}

// rings has w woken when the holder is to be asked, or has it asked if that is
// now.
func (p *Waiter) rings(ctx context.Context, tk *ticket, now time.Time) {
	e := p.ahead.entry
	if e == nil || e.Space == queueSpace { // there nobody knows whose lock it is
		return
	}
	switch at := p.inquiry.due(ctx, p); {
	case at.IsZero():
	case now.Before(at):
		tk.wakeAt(at, now)
	default:
		p.inquire(e)
	}
}

// Beside says how a caller waits beside the gate of an entry, as waiting does, and
// has the holder asked in time.
func (p *Waiter) Beside(ctx context.Context, e *Entry, want *term.Params) request.Waiting {
	how := p.waiting(e, want)
	if at := p.inquiry.due(ctx, p); !at.IsZero() {
		key := p.key // p does not escape: most readers join a term, and cost nothing
		how.At, how.Do = at, func() { e.inquire(key, "") }
	}
	if !want.Try && e.inVain(p.start, p.until) {
		how.Until = p.start // it is over
	}
	return how
}

// AskAt says when the holder is still to be asked; zero: it was asked.
func (p *Waiter) AskAt(at time.Time) { p.inquiry.at = at }

// Pause waits for d or for news, and says whether there was news.
func (p *Waiter) Pause(ctx context.Context, e *Entry, d time.Duration) (woken bool, err error) {
	if at := p.inquiry.due(ctx, p); !at.IsZero() {
		before := max(time.Until(at), 0)
		switch {
		case before > d:
		case before > 0:
			if woken, err = request.Pause(ctx, p.c.Server.Done, e.news.Wake(), p.until, before); woken || err != nil {
				return woken, err
			}
			d -= before
			fallthrough
		default:
			p.inquire(e)
		}
	}
	return request.Pause(ctx, p.c.Server.Done, e.news.Wake(), p.until, d)
}
