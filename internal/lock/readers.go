package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
)

// Readers of one process share one owner in Redis, a shared term. Whoever
// comes while it admits readers joins it without a round trip; a reader that cannot join
// is a member of a group, which waits in line like one caller, and when it gets
// the lock all its members enter at once.
//
// A shared term admits everybody for a quantum, as long as it likes while
// nobody waits to write, and nobody new after that: it drains. Those of this
// process who wait to write are in line; others are found by asking how many
// listen for the release, once in a quantum while readers come.

// sharing is what a term knows of its readers. It is guarded by term.mu.
type sharing struct {
	reads  int           // of term.count, those that only read
	shared bool          // all of them do, and others may join
	opened time.Time     // since when
	pace   time.Duration // how often to ask whether others wait
	asked  time.Time
	asking bool
	others int // how many others were found to wait
}

// A readerGroup is readers who wait together. Its members are those who do; when the
// last one leaves, the group does.
type readerGroup struct {
	l       *Spec
	ln      *entry
	o       Params
	ctx     context.Context //nolint:containedctx // ends when the last member has left
	cancel  context.CancelCauseFunc
	decided chan struct{} // closed when done is, or before: when the lock was found not to be free at once
	done    chan struct{} // closed when t or err is set

	members int   // guarded by ln.mu
	why     error // the same: why the lock was not free when the group last tried
	busy    bool  // decided is closed; belongs to the group's job

	t   *term // each member has a place in it
	err error
}

var (
	errRejoin  = errors.New("redlatch: the readers that are in let others join again")
	errNobody  = errors.New("redlatch: nobody waits any more")
	rejoinNext = 100 * time.Millisecond // between two questions whether others still wait
)

// acquireRead gets the lock to read for a caller that does not have it already.
func (c *Locks) acquireRead(ctx context.Context, l *Spec, o Params) (*Hold, error) {
	start := time.Now()
	p := waitParams{c: c, name: l.name, until: o.Until}
	ln := c.table.get(l)
	defer c.table.put(ln)
	for {
		t, pt := c.joinOrForm(ctx, ln, l, &o)
		joined := t != nil
		if !joined {
			var err error
			t, err = p.awaitGroup(ctx, pt, o.Try)
			switch {
			case errors.Is(err, errRejoin), errors.Is(err, request.ErrTooLate) && pt.o.Lease != o.Lease: // another's lease is too short
				continue
			case err != nil:
				return nil, err
			}
		}
		h, err := t.enterShared(ctx, nil, &o)
		switch {
		case err == nil:
			c.acquired(h, start, joined)
			return h, nil
		case !errors.Is(err, errRejoin):
			return nil, p.asBusy(err)
		case c.Server.Closed():
			return nil, request.ErrClosed
		case o.Try:
			return nil, p.asBusy(request.ErrWaitOver)
		}
	}
}

// joinOrForm returns a term in which the caller has a place now, or the group
// that it is a member of.
func (c *Locks) joinOrForm(ctx context.Context, ln *entry, l *Spec, o *Params) (*term, *readerGroup) {
	now := time.Now()
	ln.mu.Lock()
	if t := ln.cur; t != nil {
		t.mu.Lock()
		ok := t.admitsLocked(now, ln.writers)
		ask := ok && !t.asking && now.Sub(t.asked) >= t.pace
		if ok {
			t.count++
			t.reads++
			t.asking = t.asking || ask
		}
		t.mu.Unlock()
		if ok {
			ln.mu.Unlock()
			if ask {
				c.table.retain(ln)
				c.Server.Go(t.askOthers)
			}
			return t, nil
		}
	}
	pt := ln.forming
	fresh := pt == nil
	if fresh {
		pt = &readerGroup{l: l, ln: ln, o: *o, decided: make(chan struct{}), done: make(chan struct{})}
		pt.o.Try, pt.o.Until, pt.o.scope = false, time.Time{}, nil
		pt.ctx, pt.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		ln.forming = pt
	}
	pt.members++
	ln.mu.Unlock()
	if fresh {
		c.table.retain(ln) // for the job
		c.Server.Go(pt.run)
	}
	return nil, pt
}

// run gets the lock for the group.
func (pt *readerGroup) run() {
	c := pt.l.c
	p := waitParams{c: c, name: pt.l.name, refused: func(why error) {
		pt.ln.mu.Lock()
		pt.why = why
		pt.ln.mu.Unlock()
		if !pt.busy {
			pt.busy = true
			close(pt.decided)
		}
	}}
	var passed *term
	var err error
	if !pt.ln.gate.TryEnter() {
		passed, err = p.enter(pt.ctx, pt.ln, &pt.o)
	}
	var h *Hold
	if err == nil && passed != nil {
		h, err = c.handOff(pt.ctx, passed, pt.l, &pt.o)
	}
	if err == nil && h == nil {
		h, err = c.compete(pt.ctx, pt.ln, pt.l, &pt.o, &p)
	}
	if err == nil && c.Server.Closed() {
		h.refuse()
		err = request.ErrClosed
	}
	if errors.Is(context.Cause(pt.ctx), errRejoin) && err != nil && !c.Server.Closed() {
		err = errRejoin
	}
	pt.tell(h, err)
}

// tell tells the members. h is the hold that the job has got for them; it ends
// here.
func (pt *readerGroup) tell(h *Hold, err error) {
	ln := pt.ln
	if h == nil {
		// The line has been left: ln may be another's, unless a member is there.
		pt.leaveEntry()
		pt.err = err
		pt.finished()
		pt.cancel(errNobody)
		return
	}
	t := h.t
	left := others
	ln.mu.Lock()
	if ln.forming == pt {
		ln.forming = nil
	}
	t.mu.Lock()
	if t.state == termLive {
		t.count += pt.members
		t.reads += pt.members
		t.shareLocked(time.Now())
		pt.t = t
		// Before a member can release: the last one to do that releases the lock.
		t.removeLocked(h, holdctx.ErrReleased)
		left = t.dropLocked(true)
	} else {
		pt.err = errRejoin
	}
	t.mu.Unlock()
	pt.finished()
	ln.mu.Unlock()
	pt.cancel(errNobody)
	t.dropped(left)
}

// finished says that t or err is set.
func (pt *readerGroup) finished() {
	close(pt.done)
	if !pt.busy {
		close(pt.decided)
	}
}

// leaveEntry has newcomers form another group. Members, each of whom has a share
// of the entry, call it before they leave.
func (pt *readerGroup) leaveEntry() {
	ln := pt.ln
	if pt.l.c.table.entries.Find(ln.entryKey) != ln {
		return
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.forming == pt {
		ln.forming = nil
	}
}

// awaitGroup waits until the group has the lock, and returns the term in which
// the caller has a place then.
func (p *waitParams) awaitGroup(ctx context.Context, pt *readerGroup, once bool) (*term, error) {
	end := pt.done
	if once {
		end = pt.decided
	}
	_, err := request.Await(ctx, p.c.Server.Done, end, p.until)
	if err == nil {
		pt.ln.mu.Lock()
		err = pt.why
		pt.ln.mu.Unlock()
		if err == nil || !once {
			return pt.t, pt.err
		}
	}
	p.owner, p.ttl = pt.ln.lastSeen()
	pt.leave()
	return nil, p.asBusy(err)
}

// leave takes a member out, who may just have been given a place.
func (pt *readerGroup) leave() {
	ln := pt.ln
	ln.mu.Lock()
	select {
	case <-pt.done:
		ln.mu.Unlock()
		if pt.t != nil {
			pt.t.giveBack(true)
		}
		return
	default:
	}
	pt.members--
	last := pt.members == 0
	if last && ln.forming == pt {
		ln.forming = nil
	}
	ln.mu.Unlock()
	if last {
		pt.cancel(errNobody)
	}
}

// shareLocked lets others join. All holds of the term are to read.
func (t *term) shareLocked(now time.Time) {
	t.shared, t.opened, t.asked = true, now, now
	t.pace = min(max(handoff.QuantumMax, t.entry.budget.Calm.Sub(now)), handoff.LongestPause)
}

// admitsLocked says whether a reader of this process may join, while so many of
// it wait to write.
func (t *term) admitsLocked(now time.Time, writers int) bool {
	if t.state != termLive || !t.shared || t.count == 0 || t.lease.Left(now) <= 0 {
		return false
	}
	return now.Sub(t.opened) < handoff.QuantumMax || (writers == 0 && t.others == 0)
}

// askOthers finds out whether others wait, and if so, asks again until they do
// not or the term is over. The caller has taken a share of the entry for it.
func (t *term) askOthers() {
	c := t.c
	defer c.table.put(t.entry)
	for {
		o := t.op(lua.ReadWriteReadAsk, []string{t.id, t.lock.channel, c.Server.Own(&t.entry.news, t.lock.channel)})
		o.Single = true
		reply, err := o.Run(context.Background())
		t.mu.Lock()
		if err == nil {
			t.others = max(0, int(reply.Int))
		}
		if !c.Server.SeenByScripts() && time.Since(t.opened) >= handoff.ReignMax {
			t.others = max(1, t.others) // they may listen at another node
		}
		again := t.state == termLive && t.others > 0
		t.asking, t.asked = again, time.Now()
		gone := err == nil && reply.Int < 0
		t.mu.Unlock()
		if gone {
			c.Clock.Check(&t.lease)
		}
		if !again {
			break
		}
		t.entry.listen(c, t.lock.channel) // to hear when they have had their turn
		if !c.Server.Pause(rejoinNext) || !t.live() {
			break
		}
	}
	t.entry.reopen()
}

// reopen sends the members of a waiting group back to the term that they could
// not join, if it lets them now.
func (ln *entry) reopen() {
	ln.mu.Lock()
	pt, t := ln.forming, ln.cur
	if pt == nil || t == nil {
		ln.mu.Unlock()
		return
	}
	t.mu.Lock()
	ok := t.admitsLocked(time.Now(), ln.writers)
	t.mu.Unlock()
	if ok {
		ln.forming = nil
	}
	ln.mu.Unlock()
	if ok {
		pt.cancel(errRejoin)
	}
}

// enterSide lines up at the gate. Readers of this process see it if somebody
// waits to write.
func (p *waitParams) enterSide(ctx context.Context, ln *entry, l *Spec, o *Params) (*term, error) {
	if !l.kind.stops {
		return p.enter(ctx, ln, o)
	}
	p.c.table.retain(ln)
	defer p.c.table.put(ln)
	ln.mu.Lock()
	ln.writers++
	ln.mu.Unlock()
	passed, err := p.enter(ctx, ln, o)
	ln.mu.Lock()
	ln.writers--
	ln.mu.Unlock()
	if err != nil {
		ln.reopen()
	}
	return passed, err
}
