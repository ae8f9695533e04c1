package sim

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/observe"
)

// closing is for how long a worker goes on, at most, when it is told that its
// client shuts down: some go on for longer than the client waits for them.
const closing = 4 * time.Second

var bg = context.Background()

// A process is one client with its workers.
type process struct {
	number   int
	links    []*link            // one to each site
	clients  []*redlatch.Client // one of each link
	client   *redlatch.Client   // the first of them
	watchdog time.Duration
	life     context.Context
	die      context.CancelFunc
	dead     bool
	maxHold  time.Duration // 0: none
	outage   time.Duration // for how long a call goes on trying
	ends     atomic.Bool   // it will shut down
	leaves   atomic.Bool   // it shuts down
	observed bool          // it hears the events of its clients
	leavers  leavers
}

// work acquires, holds and releases, over and over, until the trouble ends.
func (w *world) work(p *process, own *chance) {
	for w.now() < w.Trouble && p.life.Err() == nil && !p.leaves.Load() {
		time.Sleep(own.upTo(w.kind.pace))
		w.once(p, own)
	}
}

// once acquires and releases once.
func (w *world) once(p *process, own *chance) {
	name := object(own.n(objects))
	ctx, cancel := p.life, context.CancelFunc(func() {})
	if own.oneIn(4) {
		ctx, cancel = context.WithTimeout(ctx, own.upTo(3*time.Second))
	}
	defer cancel()
	if w.kind.once != nil {
		w.kind.once(ctx, w, p, name, own)
		return
	}
	if w.Type == "election" {
		w.stand(ctx, p, name, own)
		return
	}
	var lease time.Duration
	if own.oneIn(3) {
		lease = 200*time.Millisecond + own.upTo(maxLease-200*time.Millisecond)
	}
	if ctx == p.life && own.oneIn(4) {
		ctx, cancel = p.leavers.join(ctx)
		defer cancel()
	}
	x := w.choose(p, name, lease, own)
	call, wait := w.now(), time.Duration(-1)
	var h *redlatch.Hold
	if own.oneIn(5) {
		wait = own.upTo(time.Second)
	}
	err := w.waits(ctx, p, name, wait, func() (err error) {
		if wait >= 0 {
			h, err = x.tryAcquire(ctx, wait)
		} else {
			h, err = x.acquire(ctx)
		}
		return err
	})
	if err != nil {
		w.unexpected(err)
		return
	}
	c := claim{call: call, values: x.values, weight: x.weight, nest: w.nest(), lease: lease}
	if c.weight == 0 {
		c.weight = w.kind.capacity
	}
	if lease == 0 {
		c.lease, c.most = p.watchdog, p.maxHold
	}
	w.hold(p, x, h, c, own, 3)
}

// hold holds, perhaps acquires once more meanwhile, and releases.
func (w *world) hold(p *process, x choice, h *redlatch.Hold, c claim, own *chance, deeper int) {
	all := w.has(p, h, &c)
	w.stay(h.Context(), h, own)
	if x.lease > 0 && own.oneIn(6) {
		d := own.upTo(maxLease)
		w.lengthen(all, d)
		_ = h.Extend(bg, d)
	}
	if x.reads != nil && deeper > 0 && own.oneIn(3) && h.Err() == nil {
		defer w.read(p, x, h, c, own)() // perhaps when others may read, too
	} else if (x.nests || x.once) && deeper > 0 && own.oneIn(3) && h.Err() == nil {
		in, err := x.lock.Acquire(h.Context())
		switch {
		case err == nil && x.once:
			w.fail("process %d has acquired %s within itself", p.number, h.Name())
			fallthrough
		case err == nil:
			c.inner = true // its trust is that of the outer hold, which was asked for before
			w.hold(p, x, in, c, own, deeper-1)
		case p.leaves.Load() && errors.Is(err, redlatch.ErrClosed): // it waits for what is held, and gives nothing more
		case x.once && !errors.Is(err, redlatch.ErrReentry) && h.Err() == nil:
			w.fail("process %d acquires %s within itself: %v", p.number, h.Name(), err)
		}
	}
	if w.kind.detaches && x.lease > 0 && !c.inner && own.oneIn(8) && w.handOver(h, all, own) {
		return
	}
	w.release(p, h, all, own)
}

// read reads within what a writer holds. It returns what is left to do of that
// when the writer has released.
func (w *world) read(p *process, x choice, h *redlatch.Hold, c claim, own *chance) (later func()) {
	in, err := x.reads.Acquire(h.Context())
	if err != nil {
		return func() {}
	}
	c.inner, c.weight = true, 1
	all := w.has(p, in, &c)
	later = func() {
		w.stay(in.Context(), in, own)
		w.release(p, in, all, own)
	}
	if own.oneIn(2) {
		return later
	}
	later()
	return func() {}
}

// release releases a hold.
func (w *world) release(p *process, h *redlatch.Hold, all []*claim, own *chance) {
	w.ends(p, h, all)
	all = w.allClaims(h, all)
	w.end(all, released)
	expires := h.Expires()
	if own.oneIn(2) {
		p.leavers.leave()
	}
	err := h.Release(bg)
	w.freed(all, err)
	w.trace("process %d has released %s as %s: %v", p.number, h.Name(), h.ID(), err)
	var lost *redlatch.LostError
	if errors.As(err, &lost) && lost.Reason == redlatch.LostGone && time.Now().Before(expires) && !w.excused(all) {
		w.fail("process %d releases %s as %s, and is told that it was gone: nothing took it away", p.number, h.Name(), h.ID())
	}
}

// stand stands for an election, or resigns. Some let others go first.
func (w *world) stand(ctx context.Context, p *process, name string, own *chance) {
	if own.oneIn(6) {
		w.resign(ctx, p, name)
		return
	}
	var opts []election.Option
	if own.oneIn(4) {
		opts = append(opts, election.Standby(own.upTo(3*time.Second)))
	}
	call := w.now()
	w.unexpected(lead(ctx, election.New(p.client, name, opts...), func(ctx context.Context, h *redlatch.Hold) {
		began := w.now()
		all := w.has(p, h, &claim{call: call, weight: w.kind.capacity, nest: w.nest(), lease: p.watchdog})
		w.stay(ctx, h, own)
		w.history.mu.Lock()
		resigned := w.resigned[[2]string{p.client.ID(), name}]
		w.history.mu.Unlock()
		if errors.Is(context.Cause(ctx), election.ErrResigned) && resigned < began {
			w.fail("process %d is told that it has resigned from %s, and it has not", p.number, name)
		}
		w.ends(p, h, all) // if it knows it by now
		w.end(all, "given up")
	}))
}

// resign gives a leadership up, if the process has it. It goes on when that is
// done.
func (w *world) resign(ctx context.Context, p *process, name string) {
	led := func() (all []*claim) {
		w.history.mu.Lock()
		defer w.history.mu.Unlock()
		w.resigned[[2]string{p.client.ID(), name}] = forever
		for _, c := range w.claims {
			if c.process == p.number && c.resource == name && c.to < 0 {
				all = append(all, c)
			}
		}
		return all
	}()
	had, err := election.New(p.client, name).Resign(ctx)
	w.trace("process %d resigns from %s: %t, %v", p.number, name, had, err)
	w.unexpected(err)
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	w.resigned[[2]string{p.client.ID(), name}] = w.now()
	if err != nil || p.leaves.Load() || p.life.Err() != nil {
		return
	}
	for _, c := range led {
		switch {
		case c.to >= 0: // in the server it may be passed on to another candidate of this process
		case had:
			w.failLocked(w.now(), "process %d has resigned, and still has %s as %s", p.number, name, c.id)
		default:
			w.failLocked(w.now(), "process %d has %s as %s, and Resign says that it does not lead", p.number, name, c.id)
		}
	}
}

// slack is for how long a call may go on when its own wait, or its context, is
// over: until its driver gives up what it has just sent. Of several servers it
// gives back what it has of some.
const slack = patience + 20*time.Millisecond

// waits has a worker wait for something, and checks how long that takes. A wait
// that is negative has no end, and one of 0 waits for nobody but the server. A
// call ends when its wait is over, and without one when no answer has come for as
// long as its client is to try. It does not give up before.
func (w *world) waits(ctx context.Context, p *process, name string, wait time.Duration, f func() error) error {
	from := time.Now()
	err := f()
	now := time.Now()
	end, limited := ctx.Deadline()
	if left, ok := errors.AsType[leftError](context.Cause(ctx)); ok {
		end, limited = left.at, true
	}
	if wait > 0 && (!limited || from.Add(wait).Before(end)) {
		end, limited = from.Add(wait), true
	}
	if p.life.Err() != nil || p.leaves.Load() {
		return err
	}
	// Several locks each have a time of their own, and what was taken of them is given
	// back.
	several := len(p.links) > 1 || w.Type == "multi"
	late := slack
	if several {
		late += patience
	}
	if limited && now.Sub(end) > late {
		w.fail("process %d waits for %s for %v longer than it wants to: %v", p.number, name, now.Sub(end), err)
	}
	if several {
		return err
	}
	if errors.Is(err, redlatch.ErrUnavailable) && !limited && now.Sub(from) < p.outage {
		w.fail("process %d waits for %s, and gives up after %v: %v", p.number, name, now.Sub(from), err)
	}
	// It asks every 2.4 s at least, and what is on its way then may take three
	// seconds. Behind a holder of its own process it needs no answer until that lease
	// is over.
	silence := p.links[0].silence(from)
	if errors.Is(err, redlatch.ErrUnavailable) && silence > p.outage+maxLease+2400*time.Millisecond+3*time.Second+slack {
		w.fail("process %d waits for %s, though no answer comes for %v: %v", p.number, name, silence, err)
	}
	return err
}

// handOver detaches a hold, and has another process release it by its id. Until
// then, or until the lease is over, it is somebody's.
func (w *world) handOver(h *redlatch.Hold, all []*claim, own *chance) bool {
	expires := h.Expires()
	id, err := h.Detach()
	if err != nil {
		return false
	}
	w.history.mu.Lock()
	for _, c := range all {
		c.detached = true
	}
	w.history.mu.Unlock()
	defer time.AfterFunc(time.Until(expires), func() { w.end(all, "detached, and its lease is over") }).Stop()
	time.Sleep(own.upTo(2 * time.Second))
	living := w.alive()
	p := living[own.n(len(living))]
	w.end(all, "handed over")
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	err = w.kind.whole(p.client, h.Name()).lock.ReleaseID(ctx, id)
	w.trace("process %d has released %s as %s, which was detached: %v", p.number, h.Name(), id, err)
	if errors.Is(err, redlatch.ErrNotHeld) && time.Now().Before(expires) && !w.excused(all) {
		w.fail("process %d releases %s as %s, which was detached, and is told that it was gone: nothing took it away", p.number, h.Name(), id)
	}
	_ = h.Release(bg)
	return true
}

// unexpected notes an error that no fault explains.
func (w *world) unexpected(err error) {
	var re *driver.RunError
	several := errors.As(err, &re) && re.Code == crossSlot
	if several || errors.Is(err, redlatch.ErrInvalid) || errors.Is(err, redlatch.ErrReentry) || errors.Is(err, redlatch.ErrNotHeld) {
		w.fail("a worker gets the error %v", err)
	}
}

// stay holds, now and then for longer than a lease. A worker that is told to come
// to an end takes some time for it, if it has it still.
func (w *world) stay(ctx context.Context, h *redlatch.Hold, own *chance) {
	d := own.upTo(40 * time.Millisecond)
	if own.oneIn(10) {
		d = own.upTo(12 * time.Second)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		for end := time.Now().Add(own.upTo(closing)); h.Err() == nil && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// has notes what a hold makes its worker believe, and when it can know that this
// is over.
func (w *world) has(p *process, h *redlatch.Hold, like *claim) []*claim {
	if w.kind.together != nil {
		return w.hasMost(p, h, like)
	}
	var all []*claim
	members := h.Members()
	for _, m := range members {
		c := *like
		c.resource, c.id, c.token, c.process = m.Name(), m.ID(), m.Token(), p.number
		if like.weight > 1 && w.kind.capacity == permits {
			c.weight = 1 // each permit is a member
			c.nest += len(all)
		}
		all = append(all, &c)
		for _, value := range c.values { // each is a claim of its own
			of := c
			of.lock, of.resource, of.token = m.Name(), value, 0
			all = append(all, &of)
		}
	}
	if like.values != nil {
		all = all[1:]
	}
	w.begin(all)
	if p.life.Err() != nil {
		w.end(all, "killed")
	}
	w.hear(p, h, func() { w.ends(p, h, all) })
	context.AfterFunc(p.life, func() { w.end(all, "killed") })
	return all
}

// hear calls f when a hold has ended, as each part of it says that can be asked:
// its context, and Err. Shutdown ends the context of a hold that its worker has
// still, for as long as it may take to release it. Then only Err says when that is
// over. Nobody else may end a context so, and no hold that has ended may leave a
// context.
func (w *world) hear(p *process, h *redlatch.Hold, f func()) {
	ctx := h.Context()
	context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		own := errors.Is(cause, redlatch.ErrNotHeld) // its worker releases it: that of several permits may say so before each has ended
		shut := p.leaves.Load() && errors.Is(cause, redlatch.ErrClosed)
		if h.Err() == nil && p.life.Err() == nil && !own && !shut {
			w.fail("process %d is told that %s as %s has ended (%v), and it has not", p.number, h.Name(), h.ID(), cause)
		}
		for h.Err() == nil && p.life.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		var was, is *redlatch.LostError
		if errors.As(cause, &was) && (!errors.As(h.Err(), &is) || was.Reason != is.Reason) {
			w.fail("process %d is told that %s as %s has ended (%v), and then that it ended otherwise (%v)", p.number, h.Name(), h.ID(), cause, h.Err())
		}
		f()
	})
}

// nest returns a number for a nest. Those of the permits of one hold follow on it.
func (w *world) nest() int { return int(w.nests.Add(permits + 1)) }

// ends notes the end of a hold, if it has ended.
func (w *world) ends(p *process, h *redlatch.Hold, all []*claim) {
	if w.kind.together != nil {
		w.endsMost(p, h)
		return
	}
	err := w.ended(p, h)
	if err == nil {
		return
	}
	var lost *redlatch.LostError
	if errors.As(err, &lost) && p.life.Err() == nil {
		w.told(all, lost, w.stored)
		if p.observed && !p.leaves.Load() { // Close may drop the event
			w.history.mu.Lock()
			w.tidings = append(w.tidings, tiding{p.number, lost.Owner, lost.Reason, w.now()})
			w.history.mu.Unlock()
		}
		w.end(all, string(lost.Reason))
		return
	}
	w.end(all, err.Error())
}

// ended returns why a hold has ended, or nil. Its context ends no later than Err
// says so.
func (w *world) ended(p *process, h *redlatch.Hold) error {
	err := h.Err()
	if err != nil && h.Context().Err() == nil {
		w.fail("process %d is told by Err that %s as %s has ended (%v), and its context has not", p.number, h.Name(), h.ID(), err)
	}
	return err
}

// A tiding is that a process was told of a loss, by a hold or by an event.
type tiding struct {
	process int
	id      string
	reason  redlatch.LossReason
	at      time.Duration
}

// observe has a process hear the events of losses, too.
func (w *world) observe(p *process) {
	p.observed = true
	for _, c := range p.clients {
		observe.Add(c, observe.Hooks{Lost: func(e observe.LostEvent) {
			w.history.mu.Lock()
			defer w.history.mu.Unlock()
			w.events = append(w.events, tiding{p.number, e.Err.Owner, e.Err.Reason, w.now()})
		}})
	}
}

// checkEvents checks that there is an event of each loss that a hold was told of,
// and that nobody has by then what an event says is gone.
func (h *history) checkEvents() {
	h.mu.Lock()
	defer h.mu.Unlock()
	type news struct {
		process int
		id      string
		reason  redlatch.LossReason
	}
	heard := map[news]bool{}
	for _, e := range h.events {
		heard[news{e.process, e.id, e.reason}] = true
		for _, c := range h.claims {
			gone := e.reason == redlatch.LostGone || e.reason == redlatch.LostRevoked
			if gone && c.process == e.process && c.id == e.id && c.from <= e.at && c.to > e.at+2*time.Millisecond {
				h.failLocked(e.at, "an event tells process %d that %s as %s is lost (%s), which it has until%s", c.process, c.resource, c.id, e.reason, stamp(c.to))
			}
		}
	}
	for _, t := range h.tidings {
		if !heard[news{t.process, t.id, t.reason}] {
			h.failLocked(t.at, "process %d has lost what it had as %s (%s), and no event says so", t.process, t.id, t.reason)
		}
	}
	slices.Sort(h.wrong)
}

// excused says whether a loss may have taken one of these claims.
func (w *world) excused(all []*claim) bool {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for _, c := range all {
		for _, l := range w.losses {
			if l.hits(c, w.now()) && w.now() <= l.excuses(c) {
				return true
			}
		}
	}
	return false
}
