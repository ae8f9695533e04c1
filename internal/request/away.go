package request

import (
	"context"
	"time"
)

// away are the batches of a node that are in flight, and how promptly the node
// answers. It is guarded by sender.mu.
//
// To go to the driver itself costs a caller less than to have a worker go. But no
// driver both can be left and keeps the answer: Traits.Direct stays, and
// Traits.Interruptible drops it. So a caller that may want to leave goes itself
// only while the node is prompt: it is back at once. From the moment the node is
// not, workers go. Only those who are in the driver at that moment may be late.
type away struct {
	first batch     // of a ring of all, in the order in which they were sent
	heard time.Time // when the latest one ended, if it was answered promptly; zero: it was not
	left  time.Time // when a driver last dropped an answer
}

// promptly is how long a prompt answer takes at most. For so long it shows that
// the node is prompt.
const promptly = 10 * time.Millisecond

func (gone *away) start() { gone.first.prev, gone.first.next = &gone.first, &gone.first }

func (gone *away) add(b *batch, now time.Time) {
	b.sent = now
	b.prev, b.next = gone.first.prev, &gone.first
	b.prev.next, b.next.prev = b, b
}

// remove notes that a batch has ended: with an answer, or because its caller has
// left the driver, or neither.
func (gone *away) remove(b *batch, heard, left bool) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	now := time.Now()
	gone.heard = time.Time{}
	if heard && now.Sub(b.sent) <= promptly {
		gone.heard = now
	}
	if left {
		gone.left = now
	}
}

// prompt says whether a caller that goes to the driver now is likely to be back
// before it could want to leave: the latest answer was prompt, none is overdue,
// and the caller has time for one. Where callers have left before their answers
// came, others will: a member of a RedLock that is farther away than the majority
// is left each time.
func (gone *away) prompt(ctx context.Context, now time.Time) bool {
	overdue := gone.first.next != &gone.first && now.Sub(gone.first.next.sent) > promptly
	if overdue || now.Sub(gone.heard) > promptly || now.Sub(gone.left) < quietAfter {
		return false
	}
	end, ends := ctx.Deadline()
	return !ends || end.Sub(now) > promptly
}
