package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/ratelimit"
)

// A Change is what Watch has seen.
type Change struct {
	What What
	At   time.Time // when it was seen, which is later than it happened; of a ChangeLost when it happened, as the client says
	// Info is what Redis had at the last look. Its kind is what it was before if
	// nothing shows that now, as when nothing is there any more.
	Info Info
	// Holder is whom it is about, as last seen. It is zero with ChangeBegins,
	// ChangeState and ChangeWaiting.
	Holder Holder
	// Reason is why a hold was lost, as the client says; empty with all others.
	Reason redlatch.LossReason
	// Waiting is how many wait, by what clients have said last and by who listens; for
	// a fair lock and a barrier it is what Redis has. It is -1 if that is not known,
	// or not yet.
	Waiting int
}

// What happened to a lock or synchronizer.
type What string

// The values of What.
const (
	// ChangeBegins: Watch begins to look, or looks again after an error. Info says how
	// it is.
	ChangeBegins What = "begins"
	// ChangeAcquired: somebody holds it who did not at the last look, or has a permit
	// that has an id. A lock that passes from one goroutine to the next in a process
	// has a new owner, too.
	ChangeAcquired What = "acquired"
	// ChangeReleased: a holder is gone before its lease was over: it has released the
	// lock, or somebody has by force. A lock that redlatch.MinHold keeps still has a
	// holder then, which nobody is.
	ChangeReleased What = "released"
	// ChangeExpired: a holder is gone, and its lease may have ended since the last
	// look. It may also have released the lock in that time.
	ChangeExpired What = "expired"
	// ChangeLost: a client of redlatch says that it has lost a hold. That holder is
	// also released or expired, if Watch has seen it hold the lock, mostly before.
	ChangeLost What = "lost"
	// ChangeState: a synchronizer has other numbers than at the last look: Info has
	// them. Or a lock is free that redlatch.MinHold kept.
	ChangeState What = "state"
	// ChangeWaiting: another number of callers waits.
	ChangeWaiting What = "waiting"
)

// String returns a line for a log: "acquired by billing@host-7 pid 4121 (owner
// ...:7)".
func (c Change) String() string {
	text := string(c.What)
	if h := c.Holder; h.Owner != "" {
		who := wire.Text(h.Owner)
		if h.By != "" {
			who = h.By + " (owner " + who + ")"
		}
		text += " by " + who
	}
	if c.Holder.Mode != "" {
		text += ", to " + wire.Text(c.Holder.Mode)
	}
	if c.Holder.Value != "" {
		text += ", value " + wire.Text(c.Holder.Value)
	}
	if c.Reason != "" {
		text += ": " + wire.Text(string(c.Reason))
	}
	if c.What == ChangeWaiting {
		text = fmt.Sprintf("%d waiting", c.Waiting)
	}
	return text
}

const (
	lookEvery = 500 * time.Millisecond // from one look at Redis to the next
	askEvery  = 5 * time.Second        // from one question to the clients to the next
	// nameWait is for how long a line is held back whose client is asked for its name:
	// a client notes that a second or two after it first holds something, and answers
	// once a second at most.
	nameWait = 1200 * time.Millisecond
	// mostSaid is of how many clients it is remembered what they have said so.
	mostSaid = 1000
	// mostLosses is how many losses are remembered as told: no more than the clients
	// of a server tell of in an hour.
	mostLosses = 4096
	// lossAge is longer than a client tells of a loss.
	lossAge = 2 * time.Hour
)

// Watch looks at what has this name, whatever it is, again and again, and yields
// what has changed: who holds it, how many wait for it, who has lost it, how it
// stands. It changes nothing.
//
// It does not see everything. It looks twice a second. What begins and ends
// between two looks is not seen: mostly so with a lock that is held for a moment.
// A thread of Redisson that releases the lock and acquires it again between two
// looks seems to have kept it. Only the clients know who waits, and what was lost.
// Watch asks them every five seconds, as Participants does. If it does not know
// the client of a new holder, it asks them once more, and yields that Change up to
// a second later. Redisson's clients do not say what they have lost, and Watch
// counts only those of their waiters that listen. What clients say are claims. So
// Watch is for operators, dashboards and tests: no program should decide by it
// whether it may go on, which only holding the lock says.
//
// Watch does not subscribe to the messages of releases. To the holders, a listener
// is somebody who waits: they would leave it turns that it never takes.
//
// The first Change is ChangeBegins. Watch looks only while the caller waits for
// the next Change: one that is slow misses what came and went meanwhile, and
// nothing is kept for it.
//
// An error is yielded with a zero Change, once until a look is answered, and Watch
// goes on: an outage, when it has lasted for redlatch.Config.OutageTimeout, and a
// key that is something else. The look that is answered begins with a
// ChangeBegins, and what has changed meanwhile follows. If the user may not use
// the channels redlatch_ask and redlatch_answer, that is such an error, too: then
// nobody is asked for five minutes. Watch ends when ctx ends, without an error. It
// ends with an error if the name cannot be used, and when the client is closed
// (redlatch.ErrClosed). When the loop is left, nothing is left behind.
//
// A look takes as many requests as Info. The question takes what Participants
// says, for one name.
func (a *Admin) Watch(ctx context.Context, name string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		key := a.client.Server.Key(name)
		if err := a.client.Usable(ctx, request.CheckKey(key)); err != nil {
			yield(Change{}, err)
			return
		}
		w := watch{
			admin: a, name: name, key: key, began: time.Now(), waiting: -1, told: map[string]time.Time{}, said: map[string]said{},
			questions: questions{news: make(chan struct{}, 1)},
		}
		defer w.asking.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		w.run(ctx, yield)
	}
}

// A watch is one loop over Watch.
type watch struct {
	admin *Admin
	name  string
	key   string // in Redis

	began time.Time // when there was nothing to tell yet
	last  Info      // of the last look that Redis answered
	at    time.Time // when that was; zero: there was none
	goes  bool      // the last look was answered
	down  bool      // it was not, which has been told

	stored  bool                 // those who wait stand in Redis
	waiting int                  // how many; -1: not known
	told    map[string]time.Time // when losses happened that have been told, by client and owner
	said    map[string]said      // by client

	questions
}

// questions are those to the clients. One is asked at a time, beside the looks:
// its answers take seconds.
type questions struct {
	asking sync.WaitGroup
	asked  time.Time     // when the clients were asked last
	busy   bool          // they are being asked, or their answer was not read yet
	quiet  time.Time     // until then they are not asked: the user may not
	failed bool          // asking has failed, which has been told
	news   chan struct{} // told when there is an answer

	mu     sync.Mutex // guards what follows
	answer *answer    // that is to be read; nil: there is none
}

// An answer is what the clients have said.
type answer struct {
	Participants

	err error
}

func (w *watch) run(ctx context.Context, yield func(Change, error) bool) {
	for {
		for _, news := range []func(context.Context) ([]Change, error){w.look, w.heard} {
			changes, err := news(ctx)
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
			if ctx.Err() != nil || err != nil && !yield(Change{}, err) || errors.Is(err, redlatch.ErrClosed) {
				return
			}
		}
		w.ask(ctx)
		_, err := request.Pause(ctx, w.admin.client.Server.Quit, w.news, time.Time{}, lookEvery)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			yield(Change{}, err)
			return
		}
	}
}

// look asks Redis, and returns what has changed since it was asked last, or an
// error that was not told yet.
func (w *watch) look(ctx context.Context) ([]Change, error) {
	e, asked := w.admin.client, time.Now()
	in, err := e.Inspector.Info(ctx, w.key)
	if err != nil {
		if w.down && !errors.Is(err, redlatch.ErrClosed) {
			return nil, nil // it has been told
		}
		w.goes, w.down = false, true
		return nil, err
	}
	w.remember(&in)
	now, before := infoOf(e, in), w.last
	w.introduce(ctx, &now)
	changes := w.differences(&before, &now)
	first := !w.goes
	w.last, w.at, w.goes, w.down = now, asked, true, false
	waiting := w.waiting
	if w.stored = w.stored || now.Kind == redlatch.KindFair || now.Kind == redlatch.KindBarrier; w.stored {
		w.waiting = len(now.Queue)
	}
	switch {
	case first:
		changes = append([]Change{{What: ChangeBegins}}, changes...)
	case w.waiting != waiting:
		changes = append(changes, Change{What: ChangeWaiting})
	}
	return w.finished(changes), nil
}

// remember corrects the kind of what does not show it now: that of a number is
// told by its permits and by who waits, and what is not there has none.
func (w *watch) remember(in *inspect.Info) {
	counts := w.last.Kind == redlatch.KindSemaphore || w.last.Kind == redlatch.KindExpirable || w.last.Kind == redlatch.KindLatch
	switch gone := in.TTL == 0 && !in.Held() && len(in.Queue) == 0; {
	case gone && w.last.Kind != "", counts && in.Kind == inspect.Counter, w.last.Kind == redlatch.KindExpirable && in.Kind == inspect.Semaphore:
		in.Kind = string(w.last.Kind)
	}
	if in.Kind == inspect.Expirable && !in.Held() {
		in.Total = in.Count
	}
}

// finished returns changes with what all have.
func (w *watch) finished(changes []Change) []Change {
	now := time.Now()
	for i := range changes {
		c := &changes[i]
		c.Info, c.Waiting = w.last, w.waiting
		if c.At.IsZero() {
			c.At = now
		}
	}
	return changes
}

// said is who a client that has no note yet has said it is, when it was asked.
type said struct {
	by string // empty: nothing
	at time.Time
}

// introduce finds out who the holders are. It waits for that, mostly for a second
// at most, if somebody holds now who did not.
func (w *watch) introduce(ctx context.Context, now *Info) {
	w.readNotes(ctx, now)
	fresh := map[string]bool{}
	nameless := func(each func(h *Holder)) {
		for i := range now.Holders {
			if h := &now.Holders[i]; h.Redlatch && h.By == "" && !wire.Kept(h.Owner) {
				each(h)
			}
		}
	}
	nameless(func(h *Holder) {
		s, asked := w.said[h.Client]
		if s.by == "" && (!asked || time.Since(s.at) >= askEvery) && holderIn(&w.last, *h) == nil && len(fresh) < mostIntroduced {
			fresh[h.Client] = true
		}
	})
	if len(fresh) > 0 && time.Now().After(w.quiet) {
		who := w.admin.client.Census.WhoAre(ctx, w.key, slices.Collect(maps.Keys(fresh)), nameWait)
		for client := range fresh {
			if len(w.said) >= mostSaid {
				clear(w.said)
			}
			w.said[client] = said{who[client].String(), time.Now()}
		}
	}
	nameless(func(h *Holder) { h.By = w.said[h.Client].by })
}

// readNotes reads what the holders' clients have noted that they are: at once, if
// somebody holds now who did not.
func (w *watch) readNotes(ctx context.Context, now *Info) {
	e := w.admin.client
	if slices.ContainsFunc(now.Holders, func(h Holder) bool { return holderIn(&w.last, h) == nil }) {
		introduce(ctx, e, now)
		return
	}
	asks := mostIntroduced
	for i := range now.Holders {
		h := &now.Holders[i]
		own(e, w.key, h)
		if !h.Redlatch {
			continue
		}
		if h.By = e.Census.By(h.Client); h.By == "" && asks > 0 {
			asks--
			e.Census.Learn(h.Client) // it may note that later than it has the lock
		}
	}
}

// holderIn returns the same holder in another Info; nil if it is none there.
func holderIn(info *Info, h Holder) *Holder {
	i := slices.IndexFunc(info.Holders, func(x Holder) bool { return x.Owner == h.Owner && x.Mode == h.Mode && x.Value == h.Value })
	if i < 0 {
		return nil
	}
	return &info.Holders[i]
}

// differences returns what has changed between two looks. Nothing has if there was
// none before.
func (w *watch) differences(before, now *Info) (changes []Change) {
	if w.at.IsZero() {
		return nil
	}
	passed, free := time.Since(w.at), false
	for _, h := range before.Holders {
		switch {
		case holderIn(now, h) != nil:
		case wire.Kept(h.Owner): // which nobody was
			free = !now.Held()
		default:
			what := ChangeReleased
			if h.TTL >= 0 && passed >= h.TTL {
				what = ChangeExpired
			}
			changes = append(changes, Change{What: what, Holder: h})
		}
	}
	for _, h := range now.Holders {
		if holderIn(before, h) == nil && !wire.Kept(h.Owner) { // which nobody is
			changes = append(changes, Change{What: ChangeAcquired, Holder: h})
		}
	}
	if free || stateOf(before) != stateOf(now) {
		changes = append(changes, Change{What: ChangeState})
	}
	return changes
}

// A state is how a synchronizer stands. What a number in Redis counts is a guess,
// which may change.
type state struct {
	n, permits, parties int
	rate                ratelimit.Rate
	generation          string
}

func stateOf(i *Info) state {
	s := state{i.Free + i.CountDowns + i.Number, i.Permits, i.Parties, i.Rate, i.Generation}
	if i.Kind == redlatch.KindExpirable { // its holders say that
		s.n = 0
	}
	return s
}

// ask asks the clients, unless they have just been asked.
func (w *watch) ask(ctx context.Context) {
	if w.busy || time.Now().Before(w.quiet) || !w.asked.IsZero() && time.Since(w.asked) < askEvery {
		return
	}
	w.busy, w.asked = true, time.Now()
	w.asking.Go(func() {
		p, err := w.admin.Participants(ctx, Question{Names: []string{w.name}})
		w.mu.Lock()
		w.answer = &answer{p, err}
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default: // it has yet to hear of the last one, and will look for this one, too
		}
	})
}

// heard reads what the clients have said, if they have, and returns what has
// changed by that, or that they cannot be asked.
func (w *watch) heard(context.Context) ([]Change, error) {
	w.mu.Lock()
	a := w.answer
	w.answer = nil
	w.mu.Unlock()
	if a == nil {
		return nil, nil
	}
	w.busy = false
	switch {
	case errors.Is(a.err, redlatch.ErrUnavailable), errors.Is(a.err, redlatch.ErrClosed): // looking tells that
		return nil, nil
	case a.err != nil:
		w.quiet = time.Now().Add(census.RefusedFor(a.err))
		if w.failed {
			return nil, nil
		}
		w.failed = true
		return nil, &census.UnaskedError{Err: a.err}
	}
	w.failed = false
	changes, waiting := w.losses(&a.Participants), max(w.waiting, 0)
	if !w.stored {
		w.waiting = a.Others[w.name]
		for i := range a.Clients {
			w.waiting += len(a.Clients[i].Waiting) + a.Clients[i].Omitted
		}
	}
	if w.waiting != waiting {
		changes = append(changes, Change{What: ChangeWaiting})
	}
	return w.finished(changes), nil
}

// losses returns those that happened since Watch began and were not told yet.
func (w *watch) losses(p *Participants) (changes []Change) {
	maps.DeleteFunc(w.told, func(_ string, at time.Time) bool { return time.Since(at) > lossAge })
	for i := range p.Clients {
		client := &p.Clients[i]
		for _, c := range slices.Backward(client.Lost) {
			at, id := p.At.Add(-max(c.For, 0)), client.Client+" "+c.Owner+" "+c.Mode
			if _, told := w.told[id]; told || at.Before(w.began) || len(w.told) >= mostLosses {
				continue
			}
			w.told[id] = at
			changes = append(changes, Change{What: ChangeLost, At: at, Reason: c.Reason, Holder: Holder{
				Owner: c.Owner, Client: client.Client, Count: c.Count, Redlatch: true, Mode: c.Mode, By: census.Identity(client.Identity).String(),
			}})
		}
	}
	slices.SortStableFunc(changes, func(x, y Change) int { return x.At.Compare(y.At) })
	return changes
}
