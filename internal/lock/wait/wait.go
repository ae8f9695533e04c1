package wait

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/gate"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// The way to a lock: line up with the other callers of this process, try,
// subscribe, try again, and then sleep until there is a message, the lock's
// TTL is over or two seconds have passed, and try. Messages are hints, so
// there is always a timer behind them; a subscription that does not work
// degrades to polling.

// Alone gets a lock that one at a time has for a caller that does not have it
// already.
func (c *Table) Alone(ctx context.Context, l *term.Lock, want term.Params) (*term.Hold, error) {
	p := c.NewWaiter(l, &want)
	e := c.Get(l)
	var passed *term.Term
	var err error
	if !e.gate.TryEnter() {
		if passed, err = p.enterCounted(ctx, e, l, &want); err != nil {
			return nil, err
		}
	}
	if c.Join() { // Close waits until the caller has given back what it gets too late
		defer c.Part()
	}
	var h *term.Hold
	if passed != nil {
		h, err = c.handOff(ctx, passed, l, &want)
	}
	if h == nil && err == nil {
		h, err = c.compete(ctx, e, l, &want, &p)
	}
	if p.intent != nil {
		p.intent.over()
	}
	if p.shown != nil {
		e.retract(p.shown)
	}
	return p.End(h, err)
}

// End tells the caller how it went.
func (p *Waiter) End(h *term.Hold, err error) (*term.Hold, error) {
	if err != nil {
		return nil, p.GiveUpError(err)
	}
	if p.c.Server.Closed() {
		// Close came while the request was in flight. Nobody works under this
		// hold yet, so its lock need not wait for its TTL.
		h.Term().Refuse()
		return nil, request.ErrClosed
	}
	return h, nil
}

// compete tries for the lock against other processes. The caller is inside the
// gate; on failure it no longer is.
func (c *Table) compete(ctx context.Context, e *Entry, l *term.Lock, want *term.Params, p *Waiter) (*term.Hold, error) {
	t := e.newTerm(l, want)
	var late request.Lateness
	var slowest time.Duration // of the tries of who spins
	tries := 0
	for {
		if e.budget.Owed > 0 {
			if err := p.yieldOwed(ctx, e, t, want.Try); err != nil {
				t.Withdraw()
				return nil, err
			}
		}
		call := t.Taking(l.Kind.Take, t.Args[:2], want, &e.refused)
		facts, err := Take(ctx, t, &call, 2)
		if err != nil {
			return nil, err // Take has left the gate, or will
		}
		if facts == nil {
			h, trusted := e.start(ctx, t, want, true)
			switch {
			case h != nil:
				return h, nil
			case !trusted: // the reply came too late
				err = late.Again(ctx, c.Server, want.Try, want.Until)
			case c.Server.Closed():
				err = request.ErrClosed
			}
			if err != nil {
				e.Leave()
				return nil, err
			}
			t = e.newTerm(l, want)
			continue
		}
		ttl, owner := wire.FromMillis(facts[0].Int), facts[1].Str
		p.Saw(call.Sent, owner, ttl)
		e.saw(p.seen)
		c.ReapFound(l, owner)
		tries++
		switch {
		case want.Try, p.InVain():
			err = request.ErrWaitOver
		case l.Kind.Pause != nil:
			p.Publish(ctx, e, t)
			d := l.Kind.Pause(t, tries)
			slowest = max(slowest, time.Since(call.Sent))
			if last := time.Until(want.Until) - 2*slowest - time.Millisecond; !want.Until.IsZero() && last > 0 {
				d = min(d, last) // for a last try that is answered in time
			}
			_, err = request.Pause(ctx, c.Server.Done, nil, want.Until, d)
		default:
			if p.notNow(request.ErrWaitOver) {
				c.Events.Refused(owner)
			}
			p.Publish(ctx, e, t)
			e.Listen(c.Env, l.Channel)
			p.announce(ctx, l)
			err = p.sleep(ctx, e, ttl)
		}
		if err != nil {
			t.Withdraw()
			return nil, err
		}
	}
}

// Waiter says how long a caller waits.
type Waiter struct {
	c     *Table
	start time.Time // since when,
	until time.Time // and until when; zero: as long as its context lasts

	key   string // of the lock
	seen         // who had it when the caller last saw it
	ahead ahead  // those before the caller

	silent func() error // why nobody can have it, if servers do not answer; nil: what has the key says so
	denied error        // why the server refuses it to those before the caller; nil: it does not

	// What is shown to those who ask who waits: see claims.go.
	lock  *term.Lock    // nil: it waits for others, who are shown themselves
	at    callsite.Site // where it was asked for
	shown *takingWait   // nil until the caller has to wait inside the gate

	intent  *writerIntent // what was announced; nil: nothing
	inquiry inquiry       // about the holder
	// refused is called when the lock turns out not to be free, and says whether
	// anybody waits for it; may be nil: the caller does.
	refused func(why error) bool
}

// An ahead is those who wait before a caller.
type ahead struct {
	seen         // who had the lock when they last saw it
	entry *Entry // at whose gate the caller waits behind them; nil: at none
}

// NewWaiter begins the waiting of a caller, unless that is a part of a longer one.
func (c *Table) NewWaiter(l *term.Lock, want *term.Params) Waiter {
	p := Waiter{c: c, key: l.Key, start: time.Now(), until: want.Until, lock: l, at: want.At, inquiry: inquiry{never: want.Try || want.Hasty}, refused: want.Refused}
	if want.Refused != nil {
		p.lock = nil
	}
	if want.Since.IsZero() {
		want.Since = p.start
	}
	return p
}

// notNow says that the caller would have to wait, and returns whether anybody
// does.
func (p *Waiter) notNow(why error) bool { return p.refused == nil || p.refused(why) }

// GiveUpError turns the end of the caller's waiting into a fact.Busy, unless the
// server does not even say whether anybody has the lock. Other errors stay what
// they are.
func (p *Waiter) GiveUpError(err error) error {
	seen := p.seen
	switch {
	case p.owner != "":
	case p.silent != nil:
		err = request.During(p.silent(), err)
	default:
		why := p.c.Server.NoAnswer(p.key, nil)
		if why == nil {
			why = p.denied
		}
		if why == nil { // it had no time to ask
			seen = p.ahead.seen
		}
		err = request.During(why, err)
	}
	return handoff.GaveUp(err, seen.busy(p.c.Server.Name(p.key)))
}

// enter lines up at the gate of an entry that somebody is in. It returns what the
// caller was let in with: a term that is passed on, or nil. On failure the entry
// has been left.
func (p *Waiter) enter(ctx context.Context, e *Entry, want *term.Params) (*term.Term, error) {
	var passed *term.Term
	in, err := false, request.ErrWaitOver
	if !want.Try {
		want.Asks.Over()
		how := p.waiting(e, want)
		p.ahead.entry = e
		passed, in, err = p.lineUp(ctx, &e.gate, turn{until: p.until}, &how, func(waited time.Duration) {
			if t := e.current(); t != nil {
				p.c.Events.SlowWait(p.c.Server.Name(p.key), waited, want.At, t.Site())
			}
		})
	}
	if err == nil {
		if passed == nil {
			p.ahead.seen = e.lastSeen()
		}
		return passed, nil
	}
	p.NoteHolder(e)
	switch {
	case !in:
		e.Put()
	case passed == nil:
		e.Leave()
	default:
		passed.Drop()
	}
	return nil, p.GiveUpError(err)
}

// enterCounted lines up at the gate. Readers of this process see it if somebody
// waits to write.
func (p *Waiter) enterCounted(ctx context.Context, e *Entry, l *term.Lock, want *term.Params) (*term.Term, error) {
	if !l.Kind.Stops {
		return p.enter(ctx, e, want)
	}
	e.Retain()
	defer e.Put()
	e.Lock()
	e.writers++
	e.Unlock()
	passed, err := p.enter(ctx, e, want)
	e.Lock()
	e.writers--
	e.Unlock()
	if err != nil {
		e.Readmit()
	}
	return passed, err
}

// NoteHolder notes what is known of the lock by those before the caller, which
// leaves.
func (p *Waiter) NoteHolder(e *Entry) {
	p.seen = e.lastSeen()
	p.denied = e.refused.Why()
}

// waiting says how a caller waits for those in e to ask the server, or to release
// what they have.
func (p *Waiter) waiting(e *Entry, want *term.Params) request.Waiting {
	how := request.Waiting{Key: p.key, Asks: &e.refused, Since: want.Since, Until: p.until, Stop: p.c.Server.Done, Held: e}
	if e.Space == queueSpace { // of several servers
		how.Key = ""
	}
	return how
}

// A turn is how a caller waits at a gate for its own.
type turn struct {
	until time.Time       // zero: as long as its context lasts
	over  <-chan struct{} // closed when there will be none: a hold has ended, or only its context, with the client; may be nil
}

// lineUp waits at a gate. before is how the caller waits for the answers that
// those before it are owed, nil if they may owe one for ever; slow is called once
// after Options.SlowWait, unless it is nil. They stand apart from the turn, or all
// that they refer to would be allocated, also by who need not wait. lineUp returns
// what the caller was let in with. If it fails, in says whether the caller is
// inside nevertheless: it was let in while it gave up.
func (p *Waiter) lineUp(ctx context.Context, g *gate.Gate[*term.Term], turn turn, before *request.Waiting, slow func(time.Duration)) (passed *term.Term, in bool, err error) {
	tk, ok := p.c.tickets.Get().(*ticket)
	if !ok {
		tk = &ticket{Ticket: gate.NewTicket[*term.Term]()}
		tk.Who = tk
	}
	tk.shownWait = p.shownFor(ctx)
	if in = g.Enter(tk.Ticket); !in {
		p.notNow(request.ErrWaitOver)
		err = p.await(ctx, tk, turn, before, slow)
		if in = err == nil || !g.Cancel(tk.Ticket); in {
			passed = tk.Take()
		}
	}
	tk.Ctx = nil
	p.c.tickets.Put(tk)
	return passed, in, err
}

// A ticket is a place in a gate's queue, and an alarm that wakes who waits there.
// Most who wait are let in long before it would ring. So it stays set for whoever
// has the place next, who sets it again only to an earlier time, or after it has
// rung: to set a timer and to stop it for each of them took a tenth of a
// hand-off's time.
type ticket struct {
	*gate.Ticket[*term.Term]
	shownWait // guarded by the gate

	alarm *time.Timer
	rings time.Time   // what it was last set to
	rang  atomic.Bool // it has rung since, or one that it was set to before has
}

// longestAlarm is for how long an alarm may outlast who has set it.
const longestAlarm = 10 * time.Second

// wakeAt has w woken at that time, or before it.
func (tk *ticket) wakeAt(at, now time.Time) {
	if tk.alarm != nil && !tk.rang.Load() && !at.Before(tk.rings) {
		return
	}
	d := min(at.Sub(now), longestAlarm)
	tk.rings = now.Add(d)
	tk.rang.Store(false)
	if tk.alarm == nil {
		tk.alarm = time.AfterFunc(d, func() {
			tk.rang.Store(true)
			tk.Wake()
		})
	} else {
		tk.alarm.Reset(d)
	}
}

// await waits until w is let in. Close wakes who waits at the gate of an entry,
// whose turn has no over: a channel that all listen to costs every hand-off time.
func (p *Waiter) await(ctx context.Context, tk *ticket, turn turn, before *request.Waiting, slow func(time.Duration)) error {
	warn := p.c.SlowWait
	if slow == nil {
		warn = 0
	}
	var closed <-chan struct{}
	if turn.over != nil {
		closed = p.c.Server.Done
	}
	var look time.Time
	if before != nil {
		look = before.Since.Add(p.c.Server.Outage)
	}
	for now := p.start; ; now = time.Now() {
		switch waited := now.Sub(p.start); {
		case p.c.Server.Closed():
			return request.ErrClosed
		case p.waitOver(turn.until, now):
			return request.ErrWaitOver
		case warn > 0 && waited >= warn:
			warn = 0
			slow(waited)
		}
		if before != nil {
			if !now.Before(look) {
				var err error
				if look, err = before.Look(p.c.Server, now); err != nil {
					return err
				}
			}
			tk.wakeAt(look, now)
		}
		if warn > 0 {
			tk.wakeAt(p.start.Add(warn), now)
		}
		p.rings(ctx, tk, now)
		if !turn.until.IsZero() {
			tk.wakeAt(turn.until, now)
		}
		select {
		case <-tk.Woken():
			if tk.In() {
				return nil
			}
		case <-ctx.Done():
			return request.ContextError(ctx)
		case <-closed:
		case <-turn.over:
			if p.c.Server.Closed() {
				return request.ErrClosed
			}
			return term.ErrNotNested
		}
	}
}

// waitOver says whether a wait until then is over, or is in vain.
func (p *Waiter) waitOver(until, now time.Time) bool {
	return !until.IsZero() && (!now.Before(until) || p.ahead.entry != nil && p.ahead.entry.inVain(p.start, until))
}

// yieldOwed waits until this process owes nobody a turn, or has waited for long
// enough to see whether the turns are being taken. A caller that does not wait
// does not take another's turn either.
func (p *Waiter) yieldOwed(ctx context.Context, e *Entry, t *term.Term, once bool) error {
	for e.budget.Owed > 0 {
		d := e.budget.Owes(e.news.Foreign(), time.Now())
		if d == 0 {
			return nil
		}
		why := handoff.OwedError(e.budget.Owed)
		if once {
			return why
		}
		p.notNow(why)
		p.Publish(ctx, e, t)
		if listens(t.Lock.Kind) {
			e.Listen(t.Env, t.Lock.Channel)
		}
		if _, err := p.Pause(ctx, e, d); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits until it is time to try again for a lock that is busy for ttl.
func (p *Waiter) sleep(ctx context.Context, e *Entry, ttl time.Duration) error {
	d := request.Jittered(request.LongestPause)
	if ttl >= 0 {
		d = min(d, ttl+time.Millisecond)
	}
	_, err := p.Pause(ctx, e, d)
	return err
}
