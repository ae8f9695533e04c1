package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
)

// Readers of one process share one owner in Redis, a shared tenure. Whoever
// comes while it admits readers joins it without a round trip; who cannot join
// is a member of a party, which waits in line like one caller, and when it gets
// the lock all its members enter at once.
//
// A shared tenure admits everybody for a quantum, as long as it likes while
// nobody waits to write, and nobody new after that: it drains. Those of this
// process who wait to write are in line; others are found by asking how many
// listen for the release, once in a quantum while readers come.

// sharing is what a tenure knows of its readers. It is guarded by tenure.mu.
type sharing struct {
	reads  int           // of tenure.count, those that only read
	shared bool          // all of them do, and others may join
	opened time.Time     // since when
	pace   time.Duration // how often to ask whether others wait
	asked  time.Time
	asking bool
	others int // how many others were found to wait
}

// A party is readers who wait together. Its members are those who do; when the
// last one leaves, the party does.
type party struct {
	l       *Spec
	ln      *line
	o       Params
	at      callsite.Site
	ctx     context.Context //nolint:containedctx // ends when the last member has left
	cancel  context.CancelCauseFunc
	decided chan struct{} // closed when done is, or before: when the lock was found not to be free at once
	done    chan struct{} // closed when t or err is set

	members int   // guarded by ln.mu
	why     error // the same: why the lock was not free when the party last tried
	busy    bool  // decided is closed; belongs to the party's job

	t   *tenure // each member has a place in it
	err error
}

var (
	errRejoin  = errors.New("redlatch: the readers that are in let others join again")
	errNobody  = errors.New("redlatch: nobody waits any more")
	rejoinNext = 100 * time.Millisecond // between two questions whether others still wait
)

// acquireRead gets the lock to read for a caller that does not have it already.
func (c *Locks) acquireRead(ctx context.Context, l *Spec, o *Params) (*Hold, error) {
	start := time.Now()
	at := o.At
	p := patience{c: c, name: l.name, until: o.Until}
	ln := c.lines.get(l)
	defer c.lines.put(ln)
	for {
		t, pt := c.joinOrForm(ctx, ln, l, o, at)
		joined := t != nil
		if !joined {
			var err error
			t, err = p.awaitParty(ctx, pt, o.Once)
			switch {
			case errors.Is(err, errRejoin), errors.Is(err, request.ErrTooLate) && pt.o.Lease != o.Lease: // another's lease is too short
				continue
			case err != nil:
				return nil, err
			}
		}
		h, err := t.enterShared(ctx, nil, o, &p, at)
		switch {
		case err == nil:
			c.acquired(h, start, joined)
			return h, nil
		case !errors.Is(err, errRejoin):
			return nil, p.asBusy(err)
		case c.open() != nil:
			return nil, request.ErrClosed
		case o.Once:
			return nil, p.asBusy(request.ErrWaitOver)
		}
	}
}

// joinOrForm returns a tenure in which the caller has a place now, or the party
// that it is a member of.
func (c *Locks) joinOrForm(ctx context.Context, ln *line, l *Spec, o *Params, at callsite.Site) (*tenure, *party) {
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
				c.lines.retain(ln)
				c.Server.Go(t.askOthers)
			}
			return t, nil
		}
	}
	pt := ln.forming
	fresh := pt == nil
	if fresh {
		pt = &party{l: l, ln: ln, o: *o, at: at, decided: make(chan struct{}), done: make(chan struct{})}
		pt.o.Once, pt.o.scope = false, nil
		pt.ctx, pt.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		ln.forming = pt
	}
	pt.members++
	ln.mu.Unlock()
	if fresh {
		c.lines.retain(ln) // for the job
		c.Server.Go(pt.run)
	}
	return nil, pt
}

// run gets the lock for the party.
func (pt *party) run() {
	c := pt.l.c
	p := patience{c: c, name: pt.l.name, refused: func(why error) {
		pt.ln.mu.Lock()
		pt.why = why
		pt.ln.mu.Unlock()
		if !pt.busy {
			pt.busy = true
			close(pt.decided)
		}
	}}
	passed, err := p.enter(pt.ctx, pt.ln, &pt.o, pt.at)
	var h *Hold
	if err == nil && passed != nil {
		h, err = c.takeOver(pt.ctx, passed, pt.l, &pt.o, p.until, pt.at)
	}
	if err == nil && h == nil {
		h, err = c.compete(pt.ctx, pt.ln, pt.l, &pt.o, &p, pt.at)
	}
	if err == nil && c.open() != nil {
		h.refuse()
		err = request.ErrClosed
	}
	if errors.Is(context.Cause(pt.ctx), errRejoin) && err != nil && c.open() == nil {
		err = errRejoin
	}
	pt.settle(h, err)
}

// settle tells the members. h is the hold that the job has got for them; it ends
// here.
func (pt *party) settle(h *Hold, err error) {
	ln := pt.ln
	if h == nil {
		// The line has been left: ln may be another's, unless a member is there.
		pt.leaveLine()
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
	if t.state == tenureLive {
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
func (pt *party) finished() {
	close(pt.done)
	if !pt.busy {
		close(pt.decided)
	}
}

// leaveLine has newcomers form another party. Members, each of whom has a share
// of the line, call it before they leave.
func (pt *party) leaveLine() {
	pt.l.c.lines.mu.Lock()
	ln := pt.l.c.lines.m[lineKey{pt.l.name, true}]
	pt.l.c.lines.mu.Unlock()
	if ln != pt.ln {
		return
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.forming == pt {
		ln.forming = nil
	}
}

// awaitParty waits until the party has the lock, and returns the tenure in which
// the caller has a place then.
func (p *patience) awaitParty(ctx context.Context, pt *party, once bool) (*tenure, error) {
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
func (pt *party) leave() {
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

// shareLocked lets others join. All holds of the tenure are to read.
func (t *tenure) shareLocked(now time.Time) {
	t.shared, t.opened, t.asked = true, now, now
	t.pace = min(max(handoff.QuantumMax, t.line.turns.Calm.Sub(now)), handoff.LongestPause)
}

// admitsLocked says whether a reader of this process may join, while so many of
// it wait to write.
func (t *tenure) admitsLocked(now time.Time, writers int) bool {
	if t.state != tenureLive || !t.shared || t.count == 0 || t.lease.Left(now) <= 0 {
		return false
	}
	return now.Sub(t.opened) < handoff.QuantumMax || (writers == 0 && t.others == 0)
}

// askOthers finds out whether others wait, and if so, asks again until they do
// not or the tenure is over. The caller has taken a share of the line for it.
func (t *tenure) askOthers() {
	c := t.c
	defer c.lines.put(t.line)
	for {
		o := t.op(lua.ReadWriteReadAsk, []string{t.id, t.lock.channel, c.Server.Own(&t.line.news, t.lock.channel)})
		o.Single = true
		reply, err := o.Run(context.Background())
		t.mu.Lock()
		if err == nil {
			t.others = max(0, int(reply.Int))
		}
		if !c.Server.SeenByScripts() && time.Since(t.opened) >= handoff.ReignMax {
			t.others = max(1, t.others) // they may listen at another node
		}
		again := t.state == tenureLive && t.others > 0
		t.asking, t.asked = again, time.Now()
		gone := err == nil && reply.Int < 0
		t.mu.Unlock()
		if gone {
			c.Clock.Check(&t.lease)
		}
		if !again {
			break
		}
		t.line.listen(c, t.lock.channel) // to hear when they have had their turn
		if !c.Server.Pause(rejoinNext) || !t.live() {
			break
		}
	}
	t.line.reopen()
}

// reopen sends the members of a waiting party back to the tenure that they could
// not join, if it lets them now.
func (ln *line) reopen() {
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
func (p *patience) enterSide(ctx context.Context, ln *line, l *Spec, o *Params, at callsite.Site) (*tenure, error) {
	if l.side != writing {
		return p.enter(ctx, ln, o, at)
	}
	p.c.lines.retain(ln)
	defer p.c.lines.put(ln)
	ln.mu.Lock()
	ln.writers++
	ln.mu.Unlock()
	passed, err := p.enter(ctx, ln, o, at)
	ln.mu.Lock()
	ln.writers--
	ln.mu.Unlock()
	if err != nil {
		ln.reopen()
	}
	return passed, err
}
